"""How long stores keep entries."""

import struct

import pytest

from headrace.state.retention import Expiry, Retention
from headrace.state.small_state import SmallState


def retention(*, keep_oldest: bool = False) -> Retention:
    return Retention("w", SmallState(), 100, keep_oldest=keep_oldest)


@pytest.mark.parametrize(("keep_oldest", "oldest"), [(False, 901), (True, 900)])
def test_a_time_is_kept_for_the_period(keep_oldest: bool, oldest: int) -> None:
    kept = retention(keep_oldest=keep_oldest)

    assert kept.admit(1000)
    assert kept.admit(oldest)
    assert not kept.admit(oldest - 1)


def test_an_older_time_does_not_lower_the_latest_time() -> None:
    kept = retention()
    kept.admit(1000)
    kept.admit(950)

    assert (kept.latest, kept.floor) == ([1000], [901])


def test_times_can_be_kept_longer() -> None:
    kept = retention()
    kept.keep_longer(50)
    kept.admit(1000)

    assert kept.floor == [851]


def test_the_times_survive_in_the_small_state() -> None:
    before = SmallState()
    Retention("w", before, 100, keep_oldest=False).admit(1000)

    after = Retention("w", SmallState(before.values()), 100, keep_oldest=False)

    assert before.values() == {"w/latest": 1000, "w/floor": 901}
    assert not after.admit(900)


def test_nothing_expires_before_the_first_put() -> None:
    assert retention().expired_before() is None


def test_expired_entries_are_deleted_once_in_half_a_period() -> None:
    expiry = Expiry(100)

    assert [expiry.bound(floor) for floor in (10, 59, 60, 61)] == [bound(10), None, bound(60), None]


def test_no_time_key_is_negative() -> None:
    assert Expiry(100).bound(-5) == bound(0)


def bound(time: int) -> bytes:
    return struct.pack(">q", time)
