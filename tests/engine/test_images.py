"""Where the images of a task are."""

from pathlib import Path

import pytest

from headrace.engine.images import boot_id, current_images, image_folder


def test_images_are_apart_by_the_starts_of_machines(tmp_path: Path) -> None:
    assert image_folder(current_images(tmp_path), "app") == tmp_path / boot_id()


def test_without_a_folder_they_are_on_the_executors_own_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_LOCAL_DIRS", "/disk-1/blocks,/disk-2/blocks")

    assert image_folder(None, "app") == Path("/disk-1/blocks/headrace/app") / boot_id()


def test_or_where_temporary_files_are(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("SPARK_LOCAL_DIRS", raising=False)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))

    assert image_folder(None, "app") == tmp_path / "headrace" / "app" / boot_id()


def test_images_of_before_the_last_start_are_deleted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HEADRACE_BOOT_ID", raising=False)
    for name in ("before", boot_id()):
        (tmp_path / name / "0").mkdir(parents=True)

    assert current_images(tmp_path) == tmp_path / boot_id()
    assert current_images(tmp_path / "not there") == tmp_path / "not there" / boot_id()

    assert [folder.name for folder in tmp_path.iterdir()] == [boot_id()]
