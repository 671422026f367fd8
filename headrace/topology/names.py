"""Generated names: of steps and stores of the DSL, and of an application's own topics.

They are exactly Kafka Streams' names, because descriptions are compared line by line with Java's, and tools find a
changelog by its name.
"""

from __future__ import annotations

import re

CHANGELOG_SUFFIX = "-changelog"
_GENERATED_STEP = re.compile(r"KSTREAM.*-[0-9]{10}")
_GENERATED_STORE = re.compile(r"(KSTREAM|KTABLE)-[A-Z-]+-[0-9]{10}.*|.*-STATE-STORE-[0-9]{10}")


def generated_name(prefix: str, number: int) -> str:
    """Return the name of a step or store to which the user gave no name.

    >>> generated_name("KSTREAM-FILTER-", 7)
    'KSTREAM-FILTER-0000000007'
    """
    return f"{prefix}{number:010d}"


def names_repartition_steps(prefix: str) -> bool:
    """Tell whether a repartition with this prefix names its steps after itself. If not, their names are generated, too.

    Kafka Streams only looks for KSTREAM at the beginning. So the generated name of a cogroup counts as a given one.

    >>> [names_repartition_steps(prefix) for prefix in ("by-user", "KSTREAM-MAP-0000000001")]
    [True, False]
    """
    return not _GENERATED_STEP.fullmatch(prefix)


def is_generated_store(name: str) -> bool:
    """Tell whether a store's name is generated. Such a name may change with the next change of the topology.

    >>> [is_generated_store(name) for name in ("counts", "KSTREAM-JOINTHIS-0000000004-store")]
    [False, True]
    """
    return _GENERATED_STORE.fullmatch(name) is not None


def topic_prefix(application_id: str) -> str:
    """Return the prefix of the names of an application's own topics."""
    return f"{application_id}-"


def own_topic(application_id: str, topic: str) -> str:
    """Return the name that one of an application's own topics has in the broker.

    >>> own_topic("shop", "by-user-repartition")
    'shop-by-user-repartition'
    """
    return topic_prefix(application_id) + topic


def commits_topic(application_id: str) -> str:
    """Return the name of the topic on Kafka with an application's markers.

    >>> commits_topic("shop")
    'shop-commits'
    """
    return own_topic(application_id, "commits")


def changelog_topic(application_id: str, store: str) -> str:
    """Return the name of the topic with the changes of a store.

    >>> changelog_topic("shop", "counts")
    'shop-counts-changelog'
    """
    return own_topic(application_id, store) + CHANGELOG_SUFFIX
