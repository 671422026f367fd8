"""A serde that sees another topic than its caller gives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from headrace.records import Headers
from headrace.serdes.base import Serde

T = TypeVar("T")


class RenamedTopic(Serde[T]):
    """Add text before and after the topic's name, under which a registry keeps the schemas.

    >>> topics = Serde(lambda topic, value: topic.encode(), bytes.decode)
    >>> RenamedTopic(topics, "shop-", "-changelog").serialize("orders", 7)
    b'shop-orders-changelog'
    """

    def __init__(self, inner: Serde[T], before: str = "", after: str = "") -> None:
        self.inner = inner
        self.before, self.after = before, after
        self.exact_type, self.uses_headers = inner.exact_type, inner.uses_headers

    def __repr__(self) -> str:
        return repr(self.inner)

    def encoder(self, topic: str | None, headers: Headers | None = None) -> Callable[[T], bytes]:
        return self.inner.encoder(f"{self.before}{topic}{self.after}", headers)

    def decoder(self, topic: str | None, headers: Headers | None = None) -> Callable[[bytes], T]:
        return self.inner.decoder(f"{self.before}{topic}{self.after}", headers)

    def write_problem(self, value: Any, error: Exception) -> str:
        return self.inner.write_problem(value, error)

    def read_problem(self, data: bytes, error: Exception) -> str:
        return self.inner.read_problem(data, error)
