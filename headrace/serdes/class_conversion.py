"""Dicts ↔ instances of a user's class, for serdes whose schema is not the class."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from functools import partial
from typing import Any
from uuid import UUID

import msgspec

from headrace.serdes.error_messages import shown

# Avro and Protobuf have types for these. JSON has none, so msgspec writes text.
_KEPT = (bytes, bytearray, datetime, date, time, timedelta, Decimal, UUID)


def check_class(given: Any, who: str) -> Any:
    """Return a class that dicts can be converted to: a pydantic model, or any type that msgspec knows."""
    if not _is_pydantic(given):
        try:
            msgspec.json.Decoder(given)
        except TypeError as error:
            raise TypeError(
                f"{who}: type: expected a dataclass, a msgspec.Struct, a pydantic model or the like, got "
                f"{shown(given)}: {error}"
            ) from error
    return given


def to_dict(of: Any, *, json: bool = False) -> Callable[[Any], Any]:
    """Return the function from instances of a class to values that a schema describes.

    >>> from dataclasses import dataclass
    >>> @dataclass
    ... class Order:
    ...     id: int
    >>> to_dict(Order)(Order(7))
    {'id': 7}
    """
    if _is_pydantic(of):
        # By alias, because it is read by alias.
        return partial(of.model_dump, mode="json" if json else "python", by_alias=True)
    return msgspec.to_builtins if json else partial(msgspec.to_builtins, builtin_types=_KEPT)


def from_dict(of: Any, *, json: bool = False) -> Callable[[Any], Any]:
    """Return the function from values that a schema describes to instances of a class.

    >>> from dataclasses import dataclass
    >>> @dataclass
    ... class Order:
    ...     id: int
    >>> from_dict(Order)({"id": 7})
    Order(id=7)
    """
    if _is_pydantic(of):
        return of.model_validate  # type: ignore[no-any-return]
    if json:
        return partial(msgspec.convert, type=of)
    return partial(msgspec.convert, type=of, builtin_types=_KEPT)


def _is_pydantic(given: Any) -> bool:
    return isinstance(given, type) and hasattr(given, "model_validate")
