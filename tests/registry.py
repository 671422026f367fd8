"""A schema registry in memory for tests, with the REST paths that Confluent's serializers use.

Avro schemas are checked for compatibility by the level of their subject. Other schemas are accepted without a check.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock, Thread
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit

import avro.schema
from avro.compatibility import ReaderWriterCompatibilityChecker, SchemaCompatibilityType

CONTENT_TYPE = "application/vnd.schemaregistry.v1+json"
LEVELS = ("NONE", "BACKWARD", "FORWARD", "FULL", "BACKWARD_TRANSITIVE", "FORWARD_TRANSITIVE", "FULL_TRANSITIVE")


class RegistryError(Exception):
    """An error that the registry returns."""

    def __init__(self, status: int, code: int, message: str) -> None:
        super().__init__(message)
        self.status, self.code = status, code


class Schema(NamedTuple):
    """A schema as it is compared and returned."""

    text: str
    kind: str
    references: str

    @classmethod
    def of(cls, body: dict[str, Any]) -> Schema:
        text, kind = body.get("schema", ""), body.get("schemaType") or "AVRO"
        references = json.dumps(body.get("references") or [])
        if kind == "AVRO":
            try:
                text = json.dumps(_plain(json.loads(text)), separators=(",", ":"))
                if references == "[]":
                    avro.schema.parse(text)
            except Exception as error:
                raise RegistryError(422, 42201, f"Invalid schema: {error}") from error
        return cls(text, kind, references)

    def as_json(self) -> dict[str, Any]:
        answer: dict[str, Any] = {"schema": self.text}
        if self.kind != "AVRO":
            answer["schemaType"] = self.kind
        if self.references != "[]":
            answer["references"] = json.loads(self.references)
        return answer

    def can_read(self, written: Schema) -> bool:
        if self.kind != written.kind:
            return False
        if self.kind != "AVRO" or self.references != "[]" or written.references != "[]":
            return True
        reader, writer = avro.schema.parse(self.text), avro.schema.parse(written.text)
        checker = ReaderWriterCompatibilityChecker()  # type: ignore[no-untyped-call]
        result = checker.get_compatibility(reader, writer)
        return result.compatibility is SchemaCompatibilityType.compatible


class SchemaRegistry:
    """Subjects with their versions, and an id for every different schema."""

    def __init__(self, credentials: str | None = None) -> None:
        self.url = ""
        self.requests: list[str] = []
        """Method and path of every request."""
        self._credentials = credentials
        self._schemas: list[Schema] = []
        self._subjects: dict[str, list[Schema]] = {}
        self._levels: dict[str, str] = {}
        self._level = "BACKWARD"
        self._lock = Lock()

    def answer(self, method: str, path: str, body: dict[str, Any], authorization: str | None) -> Any:
        """Return the answer to a request, or raise a `RegistryError`."""
        with self._lock:
            self.requests.append(f"{method} {path}")
            if self._credentials is not None:
                wanted = base64.b64encode(self._credentials.encode()).decode()
                if authorization != f"Basic {wanted}":
                    raise RegistryError(401, 40101, "Unauthorized")
            return self._route(method, [unquote(part) for part in urlsplit(path).path.strip("/").split("/")], body)

    def _route(self, method: str, path: list[str], body: dict[str, Any]) -> Any:
        match method, path:
            case "GET", ["subjects"]:
                return sorted(self._subjects)
            case "GET", ["subjects", subject, "versions"]:
                return list(range(1, len(self._versions(subject)) + 1))
            case "GET", ["subjects", subject, "versions", version]:
                return self._version_answer(subject, self._version(subject, version))
            case "POST", ["subjects", subject, "versions"]:
                return self._register(subject, Schema.of(body))
            case "POST", ["subjects", subject]:
                return self._look_up(subject, Schema.of(body))
            case "GET", ["schemas", "ids", number]:
                return self._by_id(number).as_json()
            case "POST", ["compatibility", "subjects", subject, "versions", version]:
                known = [self._version(subject, version)]
                return {"is_compatible": self._fits(subject, Schema.of(body), known)}
            case "GET", ["config"]:
                return {"compatibilityLevel": self._level}
            case "GET", ["config", subject]:
                return {"compatibilityLevel": self._levels.get(subject, self._level)}
            case "PUT", ["config"]:
                self._level = _level_of(body)
                return body
            case "PUT", ["config", subject]:
                self._levels[subject] = _level_of(body)
                return body
        raise RegistryError(404, 404, f"HTTP 404 Not Found: {method} /{'/'.join(path)}")

    def _versions(self, subject: str) -> list[Schema]:
        try:
            return self._subjects[subject]
        except KeyError:
            raise RegistryError(404, 40401, f"Subject '{subject}' not found.") from None

    def _version(self, subject: str, version: str) -> Schema:
        versions = self._versions(subject)
        if version == "latest":
            return versions[-1]
        if not version.isdecimal() or not int(version):
            raise RegistryError(422, 42202, f"The specified version '{version}' is not a valid version id.")
        if int(version) > len(versions):
            raise RegistryError(404, 40402, f"Version {version} not found.")
        return versions[int(version) - 1]

    def _by_id(self, number: str) -> Schema:
        if number.isdecimal() and 0 < int(number) <= len(self._schemas):
            return self._schemas[int(number) - 1]
        raise RegistryError(404, 40403, f"Schema {number} not found")

    def _version_answer(self, subject: str, schema: Schema) -> dict[str, Any]:
        version = self._subjects[subject].index(schema) + 1
        return {"subject": subject, "version": version, "id": self._schemas.index(schema) + 1, **schema.as_json()}

    def _look_up(self, subject: str, schema: Schema) -> dict[str, Any]:
        if schema not in self._versions(subject):
            raise RegistryError(404, 40403, "Schema not found")
        return self._version_answer(subject, schema)

    def _register(self, subject: str, schema: Schema) -> dict[str, Any]:
        known = self._subjects.get(subject, [])
        if schema not in known:
            if not self._fits(subject, schema, known):
                message = f"Schema being registered is incompatible with an earlier schema for subject '{subject}'"
                raise RegistryError(409, 409, message)
            self._subjects[subject] = [*known, schema]
        if schema not in self._schemas:
            self._schemas.append(schema)
        return {"id": self._schemas.index(schema) + 1}

    def _fits(self, subject: str, schema: Schema, known: list[Schema]) -> bool:
        level, _, transitive = self._levels.get(subject, self._level).partition("_")
        compared = known if transitive else known[-1:]
        backward = level not in ("BACKWARD", "FULL") or all(schema.can_read(other) for other in compared)
        forward = level not in ("FORWARD", "FULL") or all(other.can_read(schema) for other in compared)
        return backward and forward


@contextmanager
def serve(credentials: str | None = None) -> Iterator[SchemaRegistry]:
    """Serve a registry on this machine, at its `url`."""
    registry = SchemaRegistry(credentials)
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(registry))
    registry.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield registry
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _handler(registry: SchemaRegistry) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def answer(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)) or b"{}")
            status = 200
            try:
                answer = registry.answer(self.command, self.path, body, self.headers.get("Authorization"))
            except RegistryError as error:
                status, answer = error.status, {"error_code": error.code, "message": str(error)}
            data = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Type", CONTENT_TYPE)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_POST = do_PUT = answer

        def log_message(self, format: str, *args: Any) -> None:
            pass

    return Handler


def _plain(schema: Any) -> Any:
    """Write {"type": "string"} as "string", so that equal schemas in different notations are one schema."""
    if isinstance(schema, list):
        return [_plain(entry) for entry in schema]
    if not isinstance(schema, dict):
        return schema
    if list(schema) == ["type"] and isinstance(schema["type"], str):
        return schema["type"]
    inner = ("type", "items", "values", "fields")
    return {name: _plain(entry) if name in inner else entry for name, entry in schema.items()}


def _level_of(body: dict[str, Any]) -> str:
    level = body.get("compatibility")
    if level not in LEVELS:
        raise RegistryError(422, 42203, f"Invalid compatibility level: {level}")
    return str(level)
