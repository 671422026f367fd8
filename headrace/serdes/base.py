"""The serde: the base class of all serdes, and the serde that a user makes from two functions."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Generic, Self, TypeAlias, TypeVar

from headrace.errors import SerializationError
from headrace.records import Headers
from headrace.serdes.error_messages import name_of, shown, shown_bytes

T = TypeVar("T")

Data: TypeAlias = bytes | bytearray | memoryview


class Serde(Generic[T]):
    """Turn values into bytes and back.

    Give a function for each direction. Each takes ``(value)``, ``(topic, value)`` or ``(topic, value, headers)``. It is
    never called with None, which is Kafka's null in both directions.

    >>> celsius = Serde(lambda degrees: str(degrees).encode(), lambda data: float(data))
    >>> celsius.serialize("weather", 21.5)
    b'21.5'
    >>> celsius.deserialize("weather", b"21.5")
    21.5

    The serdes of this package are subclasses that override `encoder` and `decoder` instead.
    """

    exact_type: type | None = None
    """The Python type of the values, if they never change and a round trip gives back an equal value of that type."""

    uses_headers: bool = False
    """Whether a user's function takes the record's headers. Then call `serialize`, or make an encoder per record."""

    list_entry_size: int | None = None
    """The size of every value in bytes, if Kafka's list format leaves sizes out because all are the same."""

    def __init__(self, serialize: Callable[..., Data | None], deserialize: Callable[..., T]) -> None:
        self._serialize = UserFunction.of(serialize, "serialize")
        self._deserialize = UserFunction.of(deserialize, "deserialize")
        self.uses_headers = self._serialize.takes == 3 or self._deserialize.takes == 3

    def __repr__(self) -> str:
        return f"serdes.Serde({name_of(self._serialize.call)}, {name_of(self._deserialize.call)})"

    def for_keys(self) -> Serde[T]:
        """Return the serde for keys. Serdes of a schema registry name their subjects after key or value.

        There is no need to call this for a serde that is given as ``key_serde``.
        """
        return self

    def encoder(self, topic: str | None, headers: Headers | None = None) -> Callable[[T], bytes]:
        """Make the function from value to bytes for a topic, without checks, for the hot path.

        It does not take None, and its errors may be of any type. A user's function may return None for a value: then
        Kafka's null is written.
        """
        call = self._serialize.bind(topic, headers)

        def encode(value: T) -> bytes:
            data: Any = call(value)
            if type(data) is bytes or data is None:
                return data  # type: ignore[return-value]
            if isinstance(data, Data):
                return bytes(data)
            raise TypeError(f"serialize must return bytes or None, got {shown(data)}")

        return encode

    def decoder(self, topic: str | None, headers: Headers | None = None) -> Callable[[bytes], T]:
        """Make the function from bytes to value for a topic, without checks, for the hot path.

        It does not take None, and its errors may be of any type.
        """
        return self._deserialize.bind(topic, headers)

    def serialize(self, topic: str | None, value: T | None, headers: Headers | None = None) -> bytes | None:
        """Return a value's bytes, and None for None. Every error becomes a `SerializationError`."""
        if value is None:
            return None
        try:
            return self.encoder(topic, headers)(value)
        except Exception as error:
            raise self.write_error(topic, value, error) from error

    def deserialize(self, topic: str | None, data: Data | None, headers: Headers | None = None) -> T | None:
        """Return the value of some bytes, and None for None. Every error becomes a `SerializationError`."""
        if data is None:
            return None
        try:
            return self.decoder(topic, headers)(as_bytes(data))
        except Exception as error:
            raise self.read_error(topic, data, error) from error

    def write_error(self, topic: str | None, value: Any, error: Exception) -> SerializationError:
        """Make a `SerializationError` from an error that the encoder raised for a value."""
        return SerializationError(f"{self._where(topic)}: {self.write_problem(value, error)}")

    def read_error(self, topic: str | None, data: Any, error: Exception) -> SerializationError:
        """Make a `SerializationError` from an error that the decoder raised for some bytes."""
        if not isinstance(data, Data):
            return SerializationError(f"{self._where(topic)}: expected bytes, got {shown(data)}")
        return SerializationError(f"{self._where(topic)}: {self.read_problem(bytes(data), error)}")

    def write_problem(self, value: Any, error: Exception) -> str:
        """Say what was expected and what the encoder got when it raised an error."""
        return f"cannot write {shown(value)}: {type(error).__name__}: {error}"

    def read_problem(self, data: bytes, error: Exception) -> str:
        """Say what was expected and what the decoder got when it raised an error."""
        return f"cannot read {shown_bytes(data)}: {type(error).__name__}: {error}"

    def _where(self, topic: str | None) -> str:
        return repr(self) if topic is None else f"{self!r} on topic {topic!r}"


class ReadySerde(Serde[T]):
    """A serde without settings."""

    name: ClassVar[str]

    def __init__(self) -> None:
        pass  # there are no functions of a user

    def __call__(self) -> Self:
        return self

    def __repr__(self) -> str:
        return f"serdes.{self.name}"


def as_bytes(data: Data) -> bytes:
    """Return data as bytes. Refuse other types: `bytes(3)`, for one, would give three zeros."""
    if type(data) is bytes:
        return data
    if isinstance(data, Data):
        return bytes(data)
    raise TypeError("not bytes")


@dataclass(frozen=True, slots=True)
class UserFunction:
    """A user's function, and how many of topic, value and headers it takes."""

    call: Callable[..., Any]
    takes: int

    @classmethod
    def of(cls, call: Callable[..., Any], what: str) -> UserFunction:
        """Read from the signature what the function takes.

        Only required arguments count, so that ``pickle.dumps`` and ``str.encode`` with their options are functions of
        the value. An argument named ``headers`` counts even if it has a default.

        >>> UserFunction.of(lambda topic, value, headers=None: b"", "serialize").takes
        3
        """
        if not callable(call):
            raise TypeError(f"{what} must be a function, got {shown(call)}")
        try:
            parameters = inspect.signature(call).parameters.values()
        except ValueError:  # a builtin without a signature, such as int
            return cls(call, 1)
        positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
        required = [p.name for p in positional if p.default is p.empty]
        by_keyword = [p.name for p in parameters if p.kind is p.KEYWORD_ONLY and p.default is p.empty]
        takes_any = any(p.kind is p.VAR_POSITIONAL for p in parameters)
        if len(required) > 3 or by_keyword or not (positional or takes_any):
            wanted = ", ".join(required + [f"{name}=" for name in by_keyword])
            raise TypeError(
                f"{what} must take (value), (topic, value) or (topic, value, headers); {name_of(call)} takes ({wanted})"
            )
        if len(required) == 2 and [p.name for p in positional[2:3]] == ["headers"]:
            return cls(call, 3)
        return cls(call, max(1, len(required)))

    def bind(self, topic: str | None, headers: Headers | None) -> Callable[[Any], Any]:
        """Return a function of the value (or bytes) alone."""
        call = self.call
        if self.takes == 1:
            return call
        if self.takes == 2:
            return partial(call, topic)
        return lambda value: call(topic, value, [] if headers is None else headers)
