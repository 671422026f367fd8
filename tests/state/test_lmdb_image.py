"""The image on the disk, which processes share (`state.lmdb_image`, `state.lmdb_table`)."""

import multiprocessing
import os
import signal
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import lmdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.errors import ProcessorStateError
from headrace.state import lmdb_table
from headrace.state.image import Changes, Image, MemoryImage, Space
from headrace.state.lmdb_image import LmdbImage
from headrace.state.overlay import Overlay

# LMDB takes keys up to 511 bytes, of which one is ours.
LONG = [b"a" * 509, b"a" * 510, b"a" * 511, b"a" * 508 + b"\0\0", b"\xff" * 512, b"\0" * 600, b"b" * 5000]
short_keys = st.binary(max_size=2) | st.text("ab\0", max_size=3).map(str.encode)
long_keys = st.tuples(st.sampled_from(LONG), short_keys).map(b"".join)
keys = short_keys | long_keys
values = st.binary(max_size=3) | st.just(b"x" * 3000)
changes = st.dictionaries(keys, st.none() | values, max_size=12)


def turned(key: bytes) -> bytes:
    """Give long keys with the same beginning time keys with the same beginning."""
    return key[1:] + key[:1]


@pytest.fixture
def image(tmp_path: Path) -> Iterator[LmdbImage]:
    with LmdbImage(tmp_path / "task" / "image") as image:
        yield image


@pytest.fixture(scope="module")
def other() -> Iterator[ProcessPoolExecutor]:
    """Start another process; an environment must not be open across a fork, so it is spawned."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as executor:
        yield executor


def numbered(count: int, value: bytes = b"x") -> Changes:
    return {b"%06d" % number: value for number in range(count)}


def by_time(space: Space) -> list[bytes]:
    return [key for key, _ in space.iterate_by_time(b"", b"\xff" * 6000)]


def check_the_same(space: Space, expected: Space, low: bytes | None, high: bytes | None) -> None:
    everything = expected.between(None, None)
    assert space.between(None, None) == everything
    assert len(space) == len(everything)
    assert [space.get(key) for key, _ in everything] == [value for _, value in everything]
    assert space.get(low or b"a") == expected.get(low or b"a")
    assert space.between(low, high) == expected.between(low, high)
    for reverse in (False, True):
        assert list(space.iterate(low, high, reverse=reverse)) == list(expected.iterate(low, high, reverse=reverse))
    first, last = low or b"", high or b"\xff" * 600
    assert list(space.iterate_by_time(first, last)) == list(expected.iterate_by_time(first, last))


@settings(max_examples=150)
@given(st.lists(st.tuples(st.booleans(), changes), max_size=4), st.none() | keys, st.none() | keys)
def test_it_holds_the_same_as_the_image_in_memory(
    batches: list[tuple[bool, Changes]], low: bytes | None, high: bytes | None
) -> None:
    expected = MemoryImage().space("s", turned)
    with TemporaryDirectory() as directory:
        for registered, changed in batches:
            expected.apply(changed)
            with LmdbImage(directory) as image:
                if registered:
                    image.space("s", turned)
                image.update({"s": changed})
                check_the_same(image.space("s", turned), expected, low, high)


@settings(max_examples=50)
@given(st.lists(changes, min_size=1, max_size=4), st.integers(1, 5000))
def test_snapshots_have_all_entries(batches: list[Changes], chunk_bytes: int) -> None:
    expected = MemoryImage()
    with TemporaryDirectory() as directory, LmdbImage(directory) as image:
        for number, changed in enumerate(batches):
            expected.space(str(number % 2)).apply(changed)
            image.update({str(number % 2): changed})
        found: dict[str, list[tuple[bytes, bytes]]] = {"0": [], "1": []}
        for name, chunk in image.entries(chunk_bytes):
            assert sum(len(key) + len(value) for key, value in chunk[:-1]) < chunk_bytes
            found[name] += chunk
        assert found == {name: expected.space(name).between(None, None) for name in found}


def test_it_is_an_image_for_stores(image: LmdbImage) -> None:
    seen_by_stores: Image = image
    overlay = Overlay(seen_by_stores.space("s", turned), bytes, bytes, turned)
    overlay.put(b"a", b"1")

    committed = overlay.commit()

    assert overlay.get(b"a") is None  # until the engine says so
    overlay.live.clear()
    image.update({"s": committed})
    assert overlay.get(b"a") == b"1"
    assert list(overlay.iterate_by_time(b"", b"b")) == [(b"a", b"1")]


def test_spaces_and_meta_change_at_once_or_not_at_all(image: LmdbImage) -> None:
    image.update({"a": {b"k": b"1"}, "b": {b"k": b"2"}}, {b"version": b"7", b"": b"", b"v" * 600: b"long"})
    a, b = image.space("a"), image.space("b")

    broken: Any = {"a": {b"k": None}, "b": {b"k": 1}}
    with pytest.raises(TypeError):
        image.update(broken, {b"version": b"8"})

    assert (a.get(b"k"), b.get(b"k"), image.meta(b"version")) == (b"1", b"2", b"7")
    assert (image.meta(b""), image.meta(b"v" * 600), image.meta(b"other")) == (b"", b"long", None)
    image.update(meta={b"version": None})
    assert image.meta(b"version") is None


def test_names_of_spaces_do_not_collide(image: LmdbImage) -> None:
    image.space("s", turned)
    names = ["s", "s/position", "position/s", "data/s", "meta", "marks", ""]

    image.update({name: {b"k": name.encode()} for name in names}, {b"k": b"meta!"})

    assert [image.space(name).get(b"k") for name in names] == [name.encode() for name in names]
    assert image.meta(b"k") == b"meta!"
    assert dict(image.entries()) == {name: [(b"k", name.encode())] for name in names}


def test_too_many_stores_in_a_task_are_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lmdb_table, "_MAX_DATABASES", 5)
    with LmdbImage(tmp_path / "image") as image:
        image.space("one")
        image.space("two")
        with pytest.raises(ProcessorStateError, match="fewer partitions"):
            image.space("three", turned)


def test_entries_are_there_after_reopening(tmp_path: Path) -> None:
    with LmdbImage(tmp_path) as image:
        image.space("s", turned)
        image.update({"s": {b"1b": b"x", b"2a": b"y"}}, {b"version": b"1"})

    with LmdbImage(tmp_path) as image:
        assert image.meta(b"version") == b"1"
        assert by_time(image.space("s", turned)) == [b"2a", b"1b"]
        assert image.space("s").between(None, None) == [(b"1b", b"x"), (b"2a", b"y")]


def test_the_time_order_is_built_when_its_time_key_becomes_known(image: LmdbImage) -> None:
    image.update({"s": {b"1b": b"x", b"2a": b"y"}})
    before = image.space("s")

    space = image.space("s", turned)

    assert by_time(space) == [b"2a", b"1b"]
    assert image.space("s") is image.space("s", turned) is space
    assert before.get(b"2a") == b"y"


def test_the_time_order_is_not_built_again_while_it_is_kept(tmp_path: Path) -> None:
    asked = []

    def noted(key: bytes) -> bytes:
        asked.append(key)
        return turned(key)

    for number in range(3):
        with LmdbImage(tmp_path) as image:
            image.space("s", noted)
            image.update({"s": {b"%da" % number: b"x"}})
            image.refresh()

    assert asked == [b"0a", b"1a", b"2a"]


def test_long_keys_with_the_same_beginning_come_and_go(image: LmdbImage) -> None:
    space = image.space("s", turned)
    beginning = b"a" * 600
    image.update({"s": {beginning + b"2": b"", beginning: b"x", beginning + b"1": b"y", b"a": b"z"}})
    assert len(space) == 4
    assert space.between(beginning + b"1", None) == [(beginning + b"1", b"y"), (beginning + b"2", b"")]

    image.update({"s": {beginning + b"2": None, beginning + b"3": None, beginning + b"1": b"new"}})
    assert len(space) == 3
    assert space.between(None, None) == [(b"a", b"z"), (beginning, b"x"), (beginning + b"1", b"new")]

    image.update({"s": {beginning: None, beginning + b"1": None, b"b" * 600: None}})
    assert (len(space), space.between(None, None), by_time(space)) == (1, [(b"a", b"z")], [b"a"])


def test_the_map_grows(image: LmdbImage) -> None:
    image.space("s", turned)
    for start in range(0, 60, 20):
        image.update({"s": {b"%d" % number: bytes([number]) * (1 << 20) for number in range(start, start + 20)}})

    space = image.space("s", turned)
    assert len(space) == len(by_time(space)) == 60
    assert space.get(b"59") == b"\x3b" * (1 << 20)
    assert 60 << 20 < image.total_bytes() < 70 << 20


def test_the_total_is_about_that_of_keys_and_values(image: LmdbImage) -> None:
    assert image.total_bytes() == 0

    image.update({"a": numbered(10_000, b"x" * 50), "b": numbered(10_000, b"x" * 50)})
    assert 2 * 560_000 < image.total_bytes() < 2 * 2 * 560_000

    image.update({"a": dict.fromkeys(numbered(10_000))})
    assert image.total_bytes() < 2 * 560_000


@pytest.mark.parametrize("reverse", [False, True])
def test_an_image_may_change_during_a_walk(image: LmdbImage, reverse: bool) -> None:
    image.update({"s": numbered(5_000)})
    space = image.space("s")

    walked = []
    for number, (key, _) in enumerate(space.iterate(None, None, reverse=reverse)):
        walked.append(key)
        if number % 500 == 0:
            image.update({"s": dict.fromkeys(walked)})

    assert walked == sorted(numbered(5_000), reverse=reverse)


def test_a_walk_by_time_skips_what_is_deleted_meanwhile(image: LmdbImage) -> None:
    space = image.space("s", turned)
    image.update({"s": numbered(3_000)})

    walk = space.iterate_by_time(b"", b"\xff")
    first, _ = next(walk)
    image.update({"s": dict.fromkeys(set(numbered(3_000)) - {first, b"002999"})})

    assert [key for key, _ in walk] == [b"002999"]


def test_clear_leaves_nothing(image: LmdbImage) -> None:
    space = image.space("s", turned)
    image.update({"s": numbered(10) | {b"l" * 600: b"x", b"l" * 601: b"y"}, "other": numbered(10)}, {b"m": b"1"})

    image.clear()

    assert (list(image.entries()), len(space), by_time(space), image.meta(b"m")) == ([], 0, [], None)
    image.update({"s": {b"1b": b"x"}})
    assert (len(space), by_time(space)) == (1, [b"1b"])


def test_a_closed_image_cannot_be_read(image: LmdbImage) -> None:
    space = image.space("s")
    image.close()
    image.close()

    with pytest.raises(lmdb.Error):
        space.get(b"k")


def write_many(path: Path, batches: int) -> None:
    """Write batches that are one state each, and together more than the first map holds."""
    with LmdbImage(path) as image:
        image.space("by-time", turned)
        for batch in range(1, batches + 1):
            mine = numbered(100, b"%d " % batch + b"x" * 3_000) | {b"batch-%d" % batch: b"x" * (1 << 20)}
            image.update({"plain": mine, "by-time": mine}, {b"batch": b"%d" % batch})


def write_many_times(path: Path, times: int) -> None:
    """Write the same entry over and over."""
    with LmdbImage(path) as image:
        for number in range(times):
            image.update({"plain": {b"k": b"%d" % number + b"x" * (1 << 20)}})


def write_without_time_key(path: Path, *keys: bytes) -> None:
    with LmdbImage(path) as image:
        image.update({"s": dict.fromkeys(keys, b"new"), "made elsewhere": {b"k": b"1"}})


def die(_: bytes) -> bytes:
    os.kill(os.getpid(), signal.SIGKILL)
    while True:  # another thread may get the signal first
        signal.pause()


def die_during_an_update(path: Path) -> None:
    image = LmdbImage(path)
    image.space("s", die)
    image.update({"a": {b"k": b"2"}, "s": {b"k": b"2"}}, {b"version": b"2"})


def test_another_process_writes_and_grows_the_map_while_this_one_reads(
    image: LmdbImage, other: ProcessPoolExecutor
) -> None:
    plain, ordered = image.space("plain"), image.space("by-time", turned)
    writer = other.submit(write_many, image.path, 30)
    written = False
    while not written:
        written = writer.done()
        image.refresh()
        batch = int(image.meta(b"batch") or 0)
        for space in (plain, ordered):
            assert len(space) == (100 + batch if batch else 0)
            assert {value.split()[0] for _, value in space.between(b"0", b"9")} <= {b"%d" % batch}
        assert by_time(ordered) == sorted((key for key, _ in plain.iterate(None, None)), key=turned)
    writer.result()

    assert batch == 30
    image.update({"plain": {b"mine": b"x" * (20 << 20)}})
    assert plain.get(b"mine") == b"x" * (20 << 20)


def test_a_walk_goes_on_in_a_map_that_another_process_has_grown(image: LmdbImage, other: ProcessPoolExecutor) -> None:
    image.update({"plain": numbered(100, b"x" * 100)})
    walk = image.space("plain").iterate(None, None)
    first, _ = next(walk)

    other.submit(write_many, image.path, 20).result()
    image.refresh()

    assert [first, *(key for key, _ in walk)] == [key for key, _ in image.space("plain").iterate(None, None)]


def test_a_write_finds_the_map_that_another_process_has_grown(image: LmdbImage, other: ProcessPoolExecutor) -> None:
    other.submit(write_many, image.path, 20).result()

    image.update({"plain": {b"mine": b"1"}})

    assert len(image.space("plain")) == 121
    assert image.meta(b"batch") == b"20"


def test_a_resting_image_does_not_keep_old_pages(image: LmdbImage, other: ProcessPoolExecutor) -> None:
    space = image.space("plain")
    image.rest()

    other.submit(write_many_times, image.path, 100).result()

    assert (image.path / "data.mdb").stat().st_size < 20 << 20
    with pytest.raises(lmdb.Error):
        space.get(b"k")
    image.refresh()
    assert space.get(b"k") == b"99" + b"x" * (1 << 20)


def test_reads_see_one_state_until_a_refresh(image: LmdbImage, other: ProcessPoolExecutor) -> None:
    space = image.space("s")
    image.update({"s": {b"1b": b"x", b"2a": b"y"}})

    other.submit(write_without_time_key, image.path, b"3c").result()

    assert list(image.entries()) == [("s", [(b"1b", b"x"), (b"2a", b"y")])]
    image.refresh()
    assert space.get(b"3c") == b"new"
    assert dict(image.entries())["made elsewhere"] == [(b"k", b"1")]


def test_the_time_order_is_right_after_a_write_by_any_process(image: LmdbImage, other: ProcessPoolExecutor) -> None:
    space = image.space("s", turned)
    image.update({"s": {b"1b": b"x", b"2a": b"y"}})

    other.submit(write_without_time_key, image.path, b"3c", b"0d").result()
    assert by_time(space) == [b"2a", b"1b"]
    image.refresh()
    assert by_time(space) == [b"2a", b"1b", b"3c", b"0d"]

    other.submit(write_without_time_key, image.path, b"4a").result()
    image.total_bytes()  # opens the space that was made elsewhere, and so goes on to the latest state
    assert by_time(space) == [b"2a", b"4a", b"1b", b"3c", b"0d"]

    other.submit(write_without_time_key, image.path, b"5a").result()
    image.update({"s": {b"6a": b"z", b"2a": None}})
    assert by_time(space) == [b"4a", b"5a", b"6a", b"1b", b"3c", b"0d"]


def test_a_process_that_dies_during_an_update_leaves_nothing_of_it(image: LmdbImage) -> None:
    image.update({"a": {b"k": b"1"}}, {b"version": b"1"})
    process = multiprocessing.get_context("spawn").Process(target=die_during_an_update, args=(image.path,))
    process.start()
    process.join()
    assert process.exitcode == -signal.SIGKILL

    image.refresh()

    assert (image.space("a").get(b"k"), image.space("s").get(b"k"), image.meta(b"version")) == (b"1", None, b"1")
    image.update({"a": {b"k": b"3"}})
    assert image.space("a").get(b"k") == b"3"
