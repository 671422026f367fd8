"""Confluent's schema registry. A message begins with the id of the schema that wrote it.

Functions import `confluent_kafka.schema_registry` when they need it: the import takes 110 ms, in every process, and
most applications use no registry. Only this module imports it.
"""

from __future__ import annotations

import os
import re
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from threading import Lock
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar
from urllib.parse import unquote

from headrace.errors import SerializationError
from headrace.serdes.error_messages import READ_HINT, shown, shown_bytes

if TYPE_CHECKING:
    from confluent_kafka.schema_registry import Schema, SchemaReference, SchemaRegistryClient

T = TypeVar("T")

RegistryAddress: TypeAlias = str | Mapping[str, Any]
"""A registry's URL, or the settings of confluent-kafka's client for it, ``url`` among them."""

FRAME = struct.Struct(">BI")
"""The bytes before the data: a byte 0 and the schema's id."""

_STRATEGIES = ("topic", "record", "topic_record")
_CREDENTIALS = re.compile(r"(?<=//)[^/\s]*@")
_ADDRESS = re.compile(r"[^\s{[\"]*(://|@)")

# Without a timeout the client waits for ever.
_DEFAULTS = {"timeout": 30}

_clients: dict[tuple[int, str], SchemaRegistryClient] = {}
_making_a_client = Lock()


def check_no_address(who: str, expected: str, given: Any) -> None:
    """Raise an error when a schema is expected and a registry was given. Do not show it: it may have a password."""
    if isinstance(given, Mapping):
        is_address = "url" in given and "type" not in given
    else:
        is_address = isinstance(given, str) and _ADDRESS.match(given) is not None
    if is_address:
        raise ValueError(f"{who}: expected {expected}, got the address of a registry. The schema is the first argument")


@dataclass(frozen=True)
class Registry:
    """The settings of a registry. Serdes carry them to other processes, and each process makes its own client.

    >>> Registry.of("http://user:secret@registry:8081", "serdes.Avro")
    Registry(url='http://registry:8081')
    """

    url: str
    settings: Mapping[str, Any] = field(repr=False)

    @classmethod
    def of(cls, address: RegistryAddress, who: str) -> Registry:
        """Take the credentials out of the URL, because the URL is shown and logged."""
        given = {"url": address} if isinstance(address, str) else address
        if not isinstance(given, Mapping) or not isinstance(given.get("url"), str):
            raise TypeError(f"{who}: registry: expected a URL or settings with a 'url', got {type(address).__name__}")
        url = _CREDENTIALS.sub("", given["url"])
        # These errors do not show the URL, because it may have a password.
        if not url.startswith(("http://", "https://", "mock://")):
            raise ValueError(f"{who}: registry: expected a URL that begins with http:// or https://")
        if "@" in url:
            raise ValueError(
                f"{who}: registry: expected a URL without / and @ in its password. Write them as %2F and %40"
            )
        settings = {**_DEFAULTS, **given, "url": url}
        credentials = _CREDENTIALS.search(given["url"])
        if credentials is not None:
            user, _, password = credentials[0][:-1].partition(":")
            settings.setdefault("basic.auth.user.info", f"{unquote(user)}:{unquote(password)}")
        return cls(url, settings)

    @property
    def client(self) -> SchemaRegistryClient:
        """Return this process's client. It remembers all schemas and ids that the registry has returned."""
        key = os.getpid(), repr(sorted(self.settings.items()))
        client = _clients.get(key)
        if client is None:
            with _making_a_client:
                client = _clients.get(key) or _clients.setdefault(key, self._make_client())
        return client

    def _make_client(self) -> SchemaRegistryClient:
        from confluent_kafka.schema_registry import SchemaRegistryClient

        try:
            return SchemaRegistryClient.new_client(dict(self.settings))
        except (TypeError, ValueError, OSError) as error:
            raise SerializationError(f"the settings of the registry at {self.url} are not valid: {error}") from None

    def ask(self, about: str, question: Callable[[SchemaRegistryClient], T], not_found: str) -> T:
        """Ask the registry and return its answer, or raise an error that begins with `about`."""
        from confluent_kafka.schema_registry import SchemaRegistryError

        try:
            return question(self.client)
        except SerializationError:
            raise
        except SchemaRegistryError as error:
            raise SerializationError(f"{about}: {self._refusal(error, not_found)}") from error
        except Exception as error:  # of the network, of TLS, of a login
            reason = _CREDENTIALS.sub("", f"{type(error).__name__}: {error}")
            raise SerializationError(f"{about}: the registry at {self.url} cannot be reached: {reason}") from error

    def _refusal(self, error: Any, not_found: str) -> str:
        status, said = error.http_status_code, error.error_message
        if status == 404:
            return f"the registry at {self.url} has no such {not_found}"
        if status == 409:
            return (
                f"the registry at {self.url} rejects the schema because it is not compatible with earlier versions: "
                f"{said}. Give new fields a default"
            )
        if status in (401, 403):
            return f"the registry at {self.url} rejects the credentials: {said}"
        return f"the registry at {self.url} returns an error: {said} (HTTP {status})"

    def schema(self, schema_id: int, kind: str) -> Schema:
        """Return the schema with an id, or raise an error when it is of another kind."""
        about = f"schema id {schema_id}"
        schema = self.ask(about, lambda client: client.get_schema(schema_id), f"schema. {READ_HINT}")
        if schema.schema_type != kind:
            raise SerializationError(f"{about}: expected a schema of type {kind}, got {schema.schema_type}")
        return schema

    def references(self, schema: Schema) -> dict[str, str]:
        """Return all schemas that a schema refers to, directly or through others, by name."""
        found: dict[str, str] = {}
        for reference in schema.references or []:
            referred = self._referred(reference).schema
            found |= {**self.references(referred), str(reference.name): referred.schema_str or ""}
        return found

    def _referred(self, reference: SchemaReference) -> Any:
        subject, version = str(reference.subject), reference.version or 1
        about = f"subject '{subject}', version {version}"
        return self.ask(about, lambda client: client.get_version(subject, version), "version")


@dataclass(frozen=True)
class Registration:
    """The subject of a serde's schema, and how the schema is registered."""

    registry: Registry
    strategy: str
    record_name: str | None
    auto_register: bool
    use_latest: bool
    role: str = "value"
    """`key` or `value`."""

    @classmethod
    def of(
        cls,
        who: str,
        registry: RegistryAddress,
        strategy: str,
        record_name: str | None,
        auto_register: bool,
        use_latest: bool,
    ) -> Registration:
        """Check the arguments of a serde."""
        if strategy not in _STRATEGIES:
            raise ValueError(f"{who}: subject: expected one of {', '.join(_STRATEGIES)}, got {shown(strategy)}")
        if strategy != "topic" and record_name is None:
            raise ValueError(f"{who}: subject={strategy!r} needs a schema with a name")
        return cls(Registry.of(registry, who), strategy, record_name, auto_register, use_latest)

    def for_keys(self) -> Registration:
        """Return the registration of the same serde for keys."""
        return replace(self, role="key")

    def subject(self, topic: str | None) -> str:
        """Name the subject of a topic."""
        if self.strategy == "record":
            return str(self.record_name)
        if topic is None:
            raise SerializationError(f"subject={self.strategy!r} needs a topic, got None")
        return f"{topic}-{self.role if self.strategy == 'topic' else self.record_name}"

    def written_with(self, topic: str | None, make: Callable[[], Schema]) -> tuple[int, Schema]:
        """Return the id and the schema that values of a topic are written with."""
        subject, ask = self.subject(topic), self.registry.ask
        about = f"subject '{subject}'"
        if self.use_latest:
            latest = ask(about, lambda client: client.get_latest_version(subject), "subject, and use_latest is on")
            return int(latest.schema_id or 0), latest.schema
        schema = make()
        if self.auto_register:
            return ask(about, lambda client: client.register_schema(subject, schema), "subject"), schema
        found = ask(about, lambda client: client.lookup_schema(subject, schema), "schema, and auto_register is off")
        return int(found.schema_id or 0), schema


def schema_from(text: str, kind: str, references: Sequence[SchemaReference] = ()) -> Schema:
    """Make a schema as the client takes it."""
    from confluent_kafka.schema_registry import Schema

    return Schema(text, kind, list(references))


def reference_to(subject: str, version: int | None) -> SchemaReference:
    """Make a reference to a version of a subject, under the subject's name."""
    from confluent_kafka.schema_registry import SchemaReference

    return SchemaReference(subject, subject, version)


def write_problem(schema: str, value: Any, error: Exception) -> str:
    """Describe the error that an encoder raised for a value."""
    if isinstance(error, SerializationError):
        return str(error)
    return f"expected a value for {schema}, got {shown(value)}: {error}"


def read_problem(schema: str, data: bytes, error: Exception, *, framed: bool = True) -> str:
    """Describe the error that a decoder raised for some bytes."""
    if framed and (len(data) < FRAME.size or data[0]):
        expected = "a message of a schema registry (a byte 0, 4 bytes of schema id, the data)"
        return f"expected {expected}, got {shown_bytes(data)}. {READ_HINT}"
    if isinstance(error, SerializationError):
        return str(error)
    written_with = f" written with schema id {FRAME.unpack_from(data)[1]}" if framed else ""
    return f"expected data for {schema}, got {shown_bytes(data)}{written_with}: {str(error) or type(error).__name__}"
