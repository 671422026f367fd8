"""Codecs: how stores keep values, and write them as bytes."""

from typing import Any

import pytest

from headrace import SerializationError, ValueAndTimestamp, serdes
from headrace.serdes import Serde
from headrace.state.codec import key_encoder, plain_codec, timestamped_codec, with_timestamp


def test_a_value_that_cannot_change_is_kept_as_it_is() -> None:
    codec, text = plain_codec("s", serdes.String), "some text"

    assert codec.freeze(text) is text
    assert codec.thaw is None
    assert codec.decode(codec.encode(text)) == text


def test_a_value_that_could_change_is_kept_as_bytes() -> None:
    codec = plain_codec("s", serdes.Json)

    assert codec.freeze([1]) == b"[1]"
    assert codec.thaw is not None
    assert codec.thaw(b"[1]") == [1]
    assert codec.decode(codec.encode(b"[1]")) == b"[1]"


def test_a_value_of_a_similar_type_is_kept_as_it_would_be_read() -> None:
    class Shouting(str):
        __slots__ = ()

    frozen = plain_codec("s", serdes.String).freeze(Shouting("hey"))

    assert type(frozen) is str
    assert frozen == "hey"


@pytest.mark.parametrize(("serde", "value"), [(serdes.Long, 5), (serdes.Json, {"a": 1})], ids=["exact", "mutable"])
def test_the_timestamp_comes_before_the_value(serde: Serde[Any], value: Any) -> None:
    codec = timestamped_codec("s", serde)

    data = codec.encode(codec.freeze(ValueAndTimestamp(value, 77)))

    assert data == (77).to_bytes(8) + (serde.serialize(None, value) or b"")
    kept = codec.decode(data)
    assert (kept if codec.thaw is None else codec.thaw(kept)) == ValueAndTimestamp(value, 77)


def test_a_put_without_a_timestamp_is_refused() -> None:
    assert with_timestamp("s", None) is None
    assert with_timestamp("s", (1, 2)) == (1, 2)
    with pytest.raises(SerializationError, match=r"^store 's': .*expected ValueAndTimestamp\(value, timestamp\), got"):
        with_timestamp("s", 1)


def test_a_key_that_its_serde_writes_as_null_is_refused() -> None:
    serde: Serde[str] = Serde(lambda text: None if text == "nothing" else text.encode(), bytes.decode)
    encode = key_encoder("s", serde)

    assert encode("a") == b"a"
    with pytest.raises(SerializationError, match=r"^store 's': expected a key, got 'nothing', which serdes"):
        encode("nothing")


def test_a_users_serde_that_fails_is_reported_with_the_store_and_the_reason() -> None:
    def refuse(value: object) -> bytes:
        raise ValueError("not today")

    codec = plain_codec("s", Serde(refuse, bytes.decode))

    with pytest.raises(SerializationError, match=r"^store 's': .*ValueError: not today") as caught:
        codec.freeze("x")
    assert isinstance(caught.value.__cause__, ValueError)
