"""Files that are not an embedded log, and paths where none can be created."""

import os
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from headrace.brokers import LocalBroker, connect
from headrace.errors import TopicError

NOBODY = 65534


def message_of_opening(path: Path) -> str:
    with pytest.raises(TopicError) as raised:
        connect(f"local:{path}")
    return str(raised.value)


@contextmanager
def without_privileges() -> Iterator[None]:
    """Run as the user nobody for a while: root may write everywhere."""
    if os.geteuid() == 0:
        os.seteuid(NOBODY)
        try:
            yield
        finally:
            os.seteuid(0)
    else:
        yield


@pytest.fixture
def read_only_folder() -> Iterator[Path]:
    """Create a folder with a log that everyone may read and no one may write to."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "topics.db"
        with LocalBroker(path) as broker:
            broker.create_topic("lines")
        path.chmod(0o444)
        Path(folder).chmod(0o555)
        yield Path(folder)
        Path(folder).chmod(0o755)


def test_folders_on_the_way_are_made(tmp_path: Path) -> None:
    with LocalBroker(tmp_path / "a" / "b" / "topics.db") as broker:
        broker.create_topic("lines")

    assert (tmp_path / "a" / "b" / "topics.db").is_file()


def test_the_path_is_relative_to_where_it_was_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with connect("local:topics.db") as broker:
        monkeypatch.chdir("/")
        broker.create_topic("lines")

    with LocalBroker(tmp_path / "topics.db") as broker:
        assert list(broker.topics()) == ["lines"]


def test_a_name_that_means_something_to_sqlite_is_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with connect("local::memory:") as broker:
        broker.create_topic("lines")

    assert (tmp_path / ":memory:").is_file()


def test_an_empty_file_becomes_a_log(path: Path) -> None:
    path.touch()
    with LocalBroker(path) as broker:
        broker.create_topic("lines")

    with LocalBroker(path) as broker:
        assert list(broker.topics()) == ["lines"]


def test_a_file_that_is_no_database_is_an_error_and_stays_as_it_is(path: Path) -> None:
    path.write_text("once upon a time " * 100)

    assert message_of_opening(path) == f"cannot open the embedded log '{path}': file is not a database"
    assert path.read_text() == "once upon a time " * 100


def test_a_database_of_something_else_is_an_error_and_stays_as_it_is(path: Path) -> None:
    other = sqlite3.connect(path)
    other.execute("CREATE TABLE photos (name)")
    other.close()
    before = path.read_bytes()

    assert message_of_opening(path) == f"'{path}': expected an embedded log, got another SQLite file"
    assert path.read_bytes() == before


@pytest.mark.parametrize("found", [0, 1, 99])
def test_another_format_is_an_error_that_names_both(path: Path, found: int) -> None:
    LocalBroker(path).close()
    later = sqlite3.connect(path)
    later.execute(f"PRAGMA user_version = {found}")
    later.close()

    assert message_of_opening(path) == (
        f"'{path}': expected an embedded log of format 2, got format {found}. "
        "Another version of Headrace wrote it. Use that version, or another file."
    )


def test_a_directory_is_an_error(tmp_path: Path) -> None:
    assert message_of_opening(tmp_path) == (
        f"cannot open the embedded log '{tmp_path}': expected a file, got a directory"
    )


def test_a_file_on_the_way_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    path = tmp_path / "file" / "topics.db"

    assert message_of_opening(path).startswith(f"cannot open the embedded log '{path}': ")


def test_a_place_where_nothing_can_be_written_is_an_error(read_only_folder: Path) -> None:
    new = read_only_folder / "new.db"
    deeper = read_only_folder / "deeper" / "new.db"
    with without_privileges():
        assert message_of_opening(new) == (
            f"cannot open the embedded log '{new}': unable to open database file "
            f"(no permission to write to '{read_only_folder}')"
        )
        assert "Permission denied" in message_of_opening(deeper)
    assert not new.exists()


def test_a_place_that_cannot_be_looked_into_is_an_error(read_only_folder: Path) -> None:
    read_only_folder.chmod(0o000)
    with without_privileges():
        assert "Permission denied" in message_of_opening(read_only_folder / "topics.db")


def test_a_log_that_cannot_be_written_is_an_error(read_only_folder: Path) -> None:
    path = read_only_folder / "topics.db"
    with without_privileges():
        message = message_of_opening(path)
    assert message.startswith(f"cannot open the embedded log '{path}': ")
    assert message.endswith(f"(no permission to write to '{path}')")


def test_a_damaged_file_is_an_error(path: Path) -> None:
    with LocalBroker(path) as broker:
        broker.create_topic("lines")
        broker.produce("lines", [(None, bytes(100)) for _ in range(2_000)])
    content = bytearray(path.read_bytes())
    content[8192:] = b"\xa5" * (len(content) - 8192)
    path.write_bytes(content)

    with pytest.raises(TopicError, match=r"cannot (open|read) the embedded log '.*': .*malformed"):  # noqa: SIM117
        with LocalBroker(path) as broker:
            list(broker.records("lines"))
    with pytest.raises(TopicError, match=r"cannot (open|read|write to) the embedded log '.*': .*malformed"):  # noqa: SIM117
        with LocalBroker(path) as broker:
            broker.produce("lines", [(None, b"")])


def test_a_closed_broker_says_so(path: Path) -> None:
    broker = LocalBroker(path)
    broker.create_topic("lines")
    broker.close()
    broker.close()

    with pytest.raises(TopicError, match=r"cannot read the embedded log '.*': Cannot operate on a closed database"):
        broker.topics()
    with pytest.raises(TopicError, match=r"cannot write to the embedded log '.*': Cannot operate on a closed database"):
        broker.create_topic("more")


def test_a_closed_log_is_one_file(path: Path) -> None:
    with LocalBroker(path) as broker:
        broker.create_topic("lines")
        broker.produce("lines", [(None, b"1")])

    assert [file.name for file in path.parent.iterdir()] == ["topics.db"]
