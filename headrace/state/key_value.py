"""Key-value stores."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Generic, TypeVar

from headrace.errors import SerializationError
from headrace.records import ValueAndTimestamp
from headrace.state.codec import key_encoder, plain_codec, timestamped_codec, value_maker, with_timestamp
from headrace.state.image import Changes
from headrace.state.overlay import ABSENT, Overlay
from headrace.state.setup import StoreSetup

K = TypeVar("K")
V = TypeVar("V")


class KeyValueStore(Generic[K, V]):
    """A value for every key, in the order of the keys' serialized bytes.

    A timestamped store gives and takes `ValueAndTimestamp`. `key`, `read` and `write` are for operators: they work on
    serialized keys, so that a key is serialized once for a read and a write; `read` gives a plain (value, timestamp),
    `write` takes the two apart. `find`, of a timestamped one, is a `read` of a key that is not serialized yet.
    """

    def __init__(self, setup: StoreSetup, *, timestamped: bool = False) -> None:
        self.name = name = setup.name
        key_serde, value_serde = setup.key_serde, setup.value_serde
        self.timestamped = timestamped
        codec = (timestamped_codec if timestamped else plain_codec)(name, value_serde)
        overlay = Overlay(setup.image.space(name), codec.encode, codec.decode)
        self._overlay = overlay
        self._decode_key = key_serde.decoder(name)
        self._thaw = codec.thaw
        self.value_is_exact = value_serde.exact_type is not None
        self.key: Callable[[Any], bytes] = key_encoder(name, key_serde)
        freeze, thaw, put, delete, load = codec.freeze, codec.thaw, overlay.put, overlay.delete, overlay.load
        thaw_value = codec.thaw_value
        live, unchanged, exact = overlay.live, overlay.unchanged, value_serde.exact_type
        find, take_in = overlay.find, overlay.take_in

        def read(key: bytes) -> Any:
            # The way of every aggregate: what `Overlay.get` does, without the calls.
            entry = live.get(key, ABSENT)
            if entry is ABSENT:
                data = find(key)
                return None if data is None else take_in(key, data)
            return entry

        def read_thawed(key: bytes) -> Any:
            entry = overlay.get(key)
            return None if entry is None else thaw(entry)  # type: ignore[misc]

        def read_timestamped(key: bytes) -> Any:
            # The way of every look-up: what `get` and `thaw` do, without the calls.
            entry = live.get(key, ABSENT)
            if entry is ABSENT:
                entry = load(key)
            return None if entry is None else (thaw_value(entry[0]), entry[1])  # type: ignore[misc]

        encode_key = key_serde.encoder(name) if key_serde.exact_type is not None else self.key
        key_of = self.key
        # What keys that were looked up more than once have, until something is written. Of equal keys that are no str,
        # 0.0 and -0.0 for one, the bytes may not be the same.
        known: dict[str, tuple[Callable[[], Any], int]] = {}
        is_kept = key_serde.exact_type is str

        def find_timestamped(key: Any) -> Any:
            # The way of every join with a table: what `key` and `read` do, without the calls.
            try:
                found = known.get(key)
                if found is not None:
                    return found[0](), found[1]
                raw = encode_key(key)
            except Exception:
                raw = key_of(key)  # which says what is wrong
            entry = live.get(raw, ABSENT)
            if entry is ABSENT:
                entry = load(raw)
                seen = False
            else:
                seen = is_kept
            if entry is None or thaw_value is None:
                return entry
            value = thaw_value(entry[0])
            if seen:
                known[key] = value_maker(value, entry[0], thaw_value), entry[1]
            return value, entry[1]

        def write_plain(key: bytes, value: Any) -> None:
            if known:
                known.clear()
            if value is None:
                delete(key)
            else:
                put(key, freeze(value))

        def write_timestamped(key: bytes, value: Any, timestamp: int) -> None:
            # The way of every aggregate: what `put` and `freeze` do, without the calls.
            if known:
                known.clear()
            if value.__class__ is exact:
                live[key] = (value, timestamp)
                if unchanged:
                    unchanged.discard(key)
            elif value is None:
                delete(key)
            else:
                put(key, freeze((value, timestamp)))

        def put_timestamped(key: bytes, entry: Any) -> None:
            write_plain(key, with_timestamp(name, entry))

        self.read: Callable[[bytes], Any] = read if thaw is None else read_thawed
        if thaw_value is not None:
            self.read = read_timestamped
        if timestamped:
            self.find: Callable[[Any], Any] = find_timestamped
        self._known = known
        self.write: Callable[..., None] = write_timestamped if timestamped else write_plain
        self._put: Callable[[bytes, Any], None] = put_timestamped if timestamped else write_plain

    def get(self, key: K) -> V | None:
        """Return the value of a key, or None."""
        return self._shown(self.read(self.key(key)))  # type: ignore[no-any-return]

    def put(self, key: K, value: V | None) -> None:
        """Set the value of a key; None deletes it."""
        self._put(self.key(key), value)

    def put_if_absent(self, key: K, value: V | None) -> V | None:
        """Set the value of a key that has none; return the value there was."""
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
        """Delete a key; return the value there was."""
        raw = self.key(key)
        old = self.read(raw)
        self._put(raw, None)
        return self._shown(old)  # type: ignore[no-any-return]

    def range(self, low: K | None = None, high: K | None = None) -> Iterator[tuple[K, V]]:
        """Walk the entries from low to high, both included; None leaves that side open."""
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
        """Return about how many entries there are."""
        return len(self._overlay)

    def commit(self) -> dict[str, Changes]:
        """Hand what changed to the image and return it, by space."""
        self._known.clear()
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
    """Return the least bytes that are greater than everything that starts with the prefix."""
    stripped = prefix.rstrip(b"\xff")
    return stripped[:-1] + bytes([stripped[-1] + 1]) if stripped else None
