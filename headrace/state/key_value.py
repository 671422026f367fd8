"""Key-value stores."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Generic, TypeVar

from headrace.errors import SerializationError
from headrace.records import ValueAndTimestamp
from headrace.state.codec import key_encoder, plain_codec, timestamped_codec
from headrace.state.entries import PlainEntries, TimestampedEntries
from headrace.state.image import Changes
from headrace.state.overlay import Overlay
from headrace.state.setup import StoreSetup

K = TypeVar("K")
V = TypeVar("V")


class KeyValueStore(Generic[K, V]):
    """A value for every key, in the order of the keys' serialized bytes.

    A timestamped store gives and takes `ValueAndTimestamp`. `key`, `read` and `write` are for operators. They work on
    serialized keys, so that a key is serialized once for a read and a write. On a timestamped store `read` gives a
    plain (value, timestamp), `write` takes the two apart, and `find` reads a key that is not serialized yet.
    """

    def __init__(self, setup: StoreSetup, *, timestamped: bool = False) -> None:
        self.name = name = setup.name
        self.timestamped = timestamped
        self.value_is_exact = setup.value_serde.exact_type is not None
        self.key: Callable[[Any], bytes] = key_encoder(name, setup.key_serde)
        self._decode_key = setup.key_serde.decoder(name)
        codec = (timestamped_codec if timestamped else plain_codec)(name, setup.value_serde)
        self._thaw = codec.thaw
        self._overlay = overlay = Overlay(setup.image.space(name), codec.encode, codec.decode)
        entries: TimestampedEntries | PlainEntries
        if timestamped:
            entries = TimestampedEntries(name, overlay, codec, setup.key_serde, setup.value_serde, self.key)
            self.find: Callable[[Any], Any] = entries.find
        else:
            entries = PlainEntries(overlay, codec)
        # The methods themselves, so that a call does not pass through the store.
        self.read: Callable[[bytes], Any] = entries.read
        self.write: Callable[..., None] = entries.write
        self._put: Callable[[bytes, Any], None] = entries.put
        self._forget = entries.forget

    def get(self, key: K) -> V | None:
        """Return the value of a key, or None."""
        return self._shown(self.read(self.key(key)))  # type: ignore[no-any-return]

    def put(self, key: K, value: V | None) -> None:
        """Set the value of a key; None deletes it."""
        self._put(self.key(key), value)

    def put_if_absent(self, key: K, value: V | None) -> V | None:
        """Set the value of a key unless it has one. Return the value that it had, or None."""
        raw = self.key(key)
        old = self.read(raw)
        if old is None:
            self._put(raw, value)
        return self._shown(old)  # type: ignore[no-any-return]

    def put_all(self, entries: Iterable[tuple[K, V | None]]) -> None:
        """Put several entries."""
        for key, value in entries:
            self.put(key, value)

    def delete(self, key: K) -> V | None:
        """Delete a key. Return the value that it had, or None."""
        raw = self.key(key)
        old = self.read(raw)
        self._put(raw, None)
        return self._shown(old)  # type: ignore[no-any-return]

    def range(self, low: K | None = None, high: K | None = None) -> Iterator[tuple[K, V]]:
        """Walk the entries from low to high, both included. None means no bound on that side."""
        return self._entries(self._overlay.iterate(self._bound(low), self._bound(high)))

    def reverse_range(self, low: K | None = None, high: K | None = None) -> Iterator[tuple[K, V]]:
        """Walk the entries from high to low, both included."""
        return self._entries(self._overlay.iterate(self._bound(low), self._bound(high), reverse=True))

    def prefix_scan(self, prefix: Any, serialize: Callable[[Any], bytes] | None = None) -> Iterator[tuple[K, V]]:
        """Walk the entries whose serialized key starts with a prefix: bytes, or a key of the store's own type."""
        if serialize is not None:
            low = serialize(prefix)
        else:
            low = prefix if isinstance(prefix, bytes) else self.key(prefix)
        high = _after_prefix(low)
        for key, value in self._entries(self._overlay.iterate(low, high)):
            if high is not None and self.key(key) == high:
                return
            yield key, value

    def all(self) -> Iterator[tuple[K, V]]:
        """Walk all entries."""
        return self.range()

    def reverse_all(self) -> Iterator[tuple[K, V]]:
        """Walk all entries, last key first."""
        return self.reverse_range()

    def approximate_num_entries(self) -> int:
        """Return how many entries there are, approximately."""
        return len(self._overlay)

    def commit(self) -> dict[str, Changes]:
        """Hand the changes to the image and return them, by space."""
        self._forget()
        try:
            return {self.name: self._overlay.commit()}
        except SerializationError:
            raise
        except Exception as error:
            raise SerializationError(f"store '{self.name}': a value cannot be serialized: {error}") from error

    def _shown(self, entry: Any) -> Any:
        """Return an entry as users see it."""
        return ValueAndTimestamp(*entry) if self.timestamped and entry is not None else entry

    def _bound(self, key: K | None) -> bytes | None:
        return None if key is None else self.key(key)

    def _entries(self, entries: Iterator[tuple[bytes, Any]]) -> Iterator[tuple[K, V]]:
        decode_key, thaw = self._decode_key, self._thaw
        for key, value in entries:
            yield decode_key(key), self._shown(value if thaw is None else thaw(value))


def _after_prefix(prefix: bytes) -> bytes | None:
    """Return the smallest bytes that are greater than all keys with the prefix; None when there are none."""
    stripped = prefix.rstrip(b"\xff")
    return stripped[:-1] + bytes([stripped[-1] + 1]) if stripped else None
