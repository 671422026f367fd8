"""The peers and the work: versions, settings, and the commands that start them."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.side_by_side.environments import JAVA_PEER, build_java, fetch_spark_jars, virtual_environment
from benchmarks.side_by_side.processes import PeerError
from headrace.dev.kafka_broker import free_port

PARTITIONS = 2
CACHE = 10 * 1024 * 1024
USERS = "users"
USERS_BY_PARTITION = "users-by-partition"
"""The same rows in as many partitions as the records, for joins that go by the partition."""
APPLICATIONS = Path(__file__).parent / "applications"
ROOT = Path(__file__).parents[2]

VERSIONS = {
    "quix": ("quixstreams==3.28.1", "orjson==3.13.0"),
    "faust": ("faust-streaming==0.15.3", "aiokafka==0.14.0", "orjson==3.13.0"),
    "bytewax": ("bytewax==0.21.1", "confluent-kafka==2.16.0", "orjson==3.13.0"),
    "pyspark": ("pyspark==4.2.0", "pandas==2.3.3", "pyarrow==22.0.0", "protobuf==6.33.5"),
}
"""The packages in the virtual environment of each peer."""

Commands = tuple[list[list[str]], dict[str, str]]


@dataclass(frozen=True)
class Work:
    """One of W1 to W5, with caches or without, for peers that have some."""

    name: str
    base: str
    title: str
    cache: int = CACHE


WORK = {
    work.name: work
    for work in (
        Work("W1", "W1", "parse, filter, map"),
        Work("W2", "W2", "count, 5,000 keys"),
        Work("W2-uncached", "W2", "count, 5,000 keys, without caches", cache=0),
        Work("W3", "W3", "count, every key distinct"),
        Work("W4", "W4", "windowed statistics, repartitioned"),
        Work("W5", "W5", "enrichment from a table"),
    )
}


@dataclass(frozen=True)
class Peer:
    """A library, with settings, that does the work."""

    name: str
    title: str
    start: Callable[[dict[str, Any]], Commands]
    settings: dict[str, Any] = field(default_factory=dict)
    processes: int = 1
    most: int = 1 << 60
    """The largest number of records for it. Peers that would take hours get fewer."""
    caches: bool = False
    """Whether it has caches, so that W2 without them is another measurement."""
    every_change: bool = False
    """Whether it outputs every change, as peers with caches do without them."""
    lacks: dict[str, str] = field(default_factory=dict)
    """The work that it cannot do, and why."""
    only: str | None = None
    """The only work that it does in another way than the peer before it."""

    def does(self, work: Work) -> bool:
        """Tell whether to measure a work."""
        return self.only in (None, work.name) and (work.cache > 0 or self.caches)

    def commands(self, work: Work, address: str, source: str, sink: str, application: str, folder: Path) -> Commands:
        """Return the programs to start and their environment."""
        return self.start(
            {
                "address": address,
                "work": work.base,
                "source": source,
                "sink": sink,
                "users": USERS,
                "application": application,
                "folder": str(folder),
                "cache": work.cache,
                "partitions": PARTITIONS,
                "processes": self.processes,
                **self.settings,
            }
        )


def _headrace(given: dict[str, Any]) -> Commands:
    command = [sys.executable, "-m", "benchmarks.side_by_side.applications.with_headrace", json.dumps(given)]
    return [command], {"PYTHONPATH": str(ROOT)}


def _kafka_streams(given: dict[str, Any]) -> Commands:
    build_java()
    java = shutil.which("java")
    if java is None:
        raise PeerError("there is no java on the PATH")
    places = os.pathsep.join([str(JAVA_PEER / "classes"), str(JAVA_PEER / "lib" / "*")])
    options = ["-Xmx2g", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"]
    return [[java, *options, "-cp", places, "Peer", json.dumps(given)]], {}


def _python(name: str) -> Callable[[dict[str, Any]], Commands]:
    def start(given: dict[str, Any]) -> Commands:
        python = virtual_environment(name, VERSIONS[name])
        script = str(APPLICATIONS / f"with_{name}.py")
        numbered = [json.dumps({**given, "process": number}) for number in range(given["processes"])]
        return [[str(python), script, each] for each in numbered], {}

    return start


def _bytewax(given: dict[str, Any]) -> Commands:
    return _python("bytewax")({**given, "ports": [free_port() for _ in range(given["processes"])]})


def _pyspark(given: dict[str, Any]) -> Commands:
    return _python("pyspark")({**given, "jars": fetch_spark_jars()})


_AT_LEAST_ONCE = {"guarantee": "at_least_once"}
_EXACTLY_ONCE = {"guarantee": "exactly_once_v2"}
_QUIX = {"users": USERS_BY_PARTITION, "users_once": False}
_NATIVE = "needs no state of its own: see PySpark, DataFrame"

PEERS = {
    peer.name: peer
    for peer in (
        Peer("headrace", "Headrace, exactly once", _headrace, _EXACTLY_ONCE, caches=True),
        Peer("kafka-streams", "Kafka Streams, exactly once", _kafka_streams, _EXACTLY_ONCE, caches=True),
        Peer("kafka-streams-alo", "Kafka Streams, at least once", _kafka_streams, _AT_LEAST_ONCE, caches=True),
        Peer("quix", "Quix Streams, at least once", _python("quix"), _QUIX | _AT_LEAST_ONCE, 2, every_change=True),
        Peer("quix-eos", "Quix Streams, exactly once", _python("quix"), _QUIX | _EXACTLY_ONCE, 2, every_change=True),
        Peer(
            "quix-dict",
            "Quix Streams, at least once, the table read once into a dict",
            _python("quix"),
            {"users_once": True, **_AT_LEAST_ONCE},
            2,
            only="W5",
        ),
        Peer("faust", "Faust, at least once", _python("faust"), _AT_LEAST_ONCE, 2, 200_000, every_change=True),
        Peer("bytewax", "Bytewax, at least once", _bytewax, _AT_LEAST_ONCE, 2, every_change=True),
        Peer("pyspark", "PySpark, DataFrame, at least once", _pyspark, {"how": "native"}),
        Peer(
            "pyspark-state",
            "PySpark, transformWithState, at least once",
            _pyspark,
            {"how": "state"},
            most=200_000,
            lacks={"W1": _NATIVE, "W5": _NATIVE},
        ),
    )
}
