"""The partitions of windowed keys, which a stream writes without their windows."""

import pytest

from headrace import Window, Windowed, serdes
from headrace.partitioning import partition_of
from headrace.topology.partitioners import partitioner_for


@pytest.mark.parametrize(
    ("serde", "size"), [(serdes.Windowed(serdes.String, 10), 8), (serdes.SessionWindowed(serdes.String), 16)]
)
def test_all_windows_of_a_key_go_to_one_partition(serde: serdes.Serde[Windowed[str]], size: int) -> None:
    choose = partitioner_for(serde)

    assert choose is not None
    windows = [Windowed("ann", Window(start, start + 10)) for start in range(0, 100, 10)]
    assert {choose("out", window, None, 7) for window in windows} == {partition_of(b"ann", 7)}
    assert choose.window_bytes == size
    assert {serde.serialize("out", window)[:-size] for window in windows} == {b"ann"}  # type: ignore[index]


def test_a_null_key_is_left_to_the_default() -> None:
    choose = partitioner_for(serdes.Windowed(serdes.String, 10))

    assert choose is not None
    assert choose("out", None, None, 7) is None


def test_other_keys_are_left_to_the_default() -> None:
    assert partitioner_for(serdes.String) is None
    assert partitioner_for(None) is None
