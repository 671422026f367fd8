"""`Materialized`: how a table is kept.

Tests: `tests/topology/test_bad_stores.py` and `tests/operators/test_caching.py`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from headrace.durations import milliseconds
from headrace.errors import TopologyError
from headrace.serdes import Serde
from headrace.state.builders import StoreBuilder, Stores
from headrace.topology.argument_checks import check_name, check_serde


@dataclass(frozen=True)
class Materialized:
    """How a table is kept: under which name, with which serdes, for how long.

    Every `store=` takes a `Materialized`, or just a name. A table with a name can be read from outside. With
    `history_retention`, the table keeps versions of its rows for that long. `retention` says how long windows are kept,
    at least for their size and grace. With `caching=False` every update comes out, even if a commit covers many
    records. `in_memory` is accepted because Kafka Streams has it, and changes nothing here.

    >>> builder = StreamsBuilder()
    >>> grouped = builder.stream("in", value_serde=serdes.Long).group_by_key()
    >>> total = grouped.reduce(lambda total, value: total + value, store=Materialized("totals", caching=False))
    >>> total.queryable_store_name
    'totals'
    >>> with TopologyTestDriver(builder.build()) as driver:
    ...     driver.create_input_topic("in").pipe_key_values([("a", 1), ("a", 2)])
    ...     driver.state_store("totals").get("a")
    3
    """

    name: str | None = None
    key_serde: Serde[Any] | None = None
    value_serde: Serde[Any] | None = None
    retention: int | None = None
    caching: bool = True
    logging: bool = True
    in_memory: bool = False
    history_retention: int | None = None

    def __init__(
        self,
        name: str | None = None,
        *,
        key_serde: Serde[Any] | None = None,
        value_serde: Serde[Any] | None = None,
        retention: int | timedelta | None = None,
        caching: bool = True,
        logging: bool = True,
        in_memory: bool = False,
        history_retention: int | timedelta | None = None,
    ) -> None:
        history = None if history_retention is None else milliseconds(history_retention, "history_retention")
        values = {
            "name": None if name is None else check_name(name, "Materialized, name"),
            "key_serde": check_serde(key_serde, "Materialized, key_serde"),
            "value_serde": check_serde(value_serde, "Materialized, value_serde"),
            "retention": None if retention is None else milliseconds(retention, "retention"),
            "caching": caching,
            "logging": logging,
            "in_memory": in_memory,
            "history_retention": history,
        }
        for field, value in values.items():
            object.__setattr__(self, field, value)

    def or_serdes(self, key_serde: Serde[Any] | None, value_serde: Serde[Any] | None = None) -> Materialized:
        """Return a copy that has these serdes where it had none."""
        return replace(self, key_serde=self.key_serde or key_serde, value_serde=self.value_serde or value_serde)

    def key_value(self, name: str) -> StoreBuilder:
        """Return the builder of a table's store."""
        if self.history_retention is not None:
            return Stores.versioned(
                name,
                self.key_serde,
                self.value_serde,
                history_retention=self.history_retention,
                logging=self.logging,
            )
        return Stores.key_value(
            name, self.key_serde, self.value_serde, timestamped=True, caching=self.caching, logging=self.logging
        )

    def window(self, name: str, size: int, least_retention: int, emit_on_close: bool) -> StoreBuilder:
        """Return the builder of a windowed table's store."""
        return Stores.window(
            name,
            self.key_serde,
            self.value_serde,
            retention=self._retention(name, least_retention),
            window_size=size,
            timestamped=True,
            keep_oldest=emit_on_close,
            caching=self.caching,
            logging=self.logging,
        )

    def session(self, name: str, least_retention: int, emit_on_close: bool) -> StoreBuilder:
        """Return the builder of a session table's store."""
        return Stores.session(
            name,
            self.key_serde,
            self.value_serde,
            retention=self._retention(name, least_retention),
            keep_oldest=emit_on_close,
            caching=self.caching and not emit_on_close,
            logging=self.logging,
        )

    def _retention(self, store: str, least: int) -> int:
        if self.history_retention is not None:
            raise TopologyError(f"store '{store}': history_retention is only for tables without windows. Use retention")
        if self.retention is not None and self.retention < least:
            raise TopologyError(
                f"store '{store}': the retention must be at least the windows' size and grace ({least} ms), "
                f"got {self.retention} ms"
            )
        return least if self.retention is None else self.retention


def materialized(store: str | Materialized | None, call: str) -> Materialized | None:
    """Return the `store=` argument of a call as a `Materialized`, or None if there is none."""
    if store is None or isinstance(store, Materialized):
        return store
    if isinstance(store, str):
        return Materialized(store)
    raise TopologyError(f"{call}, store: expected a name or Materialized(...), got {type(store).__name__} ({store!r})")


def always_materialized(
    store: str | Materialized | None, call: str, key_serde: Serde[Any] | None, value_serde: Serde[Any] | None = None
) -> Materialized:
    """Return the `Materialized` of a call that always keeps its table, with these serdes where it was given none."""
    return (materialized(store, call) or Materialized()).or_serdes(key_serde, value_serde)
