"""The order of Java's hash tables and trees, which descriptions follow.

`test_java_descriptions.py` compares whole descriptions with those that Kafka Streams printed.
"""

from headrace.topology.java_order import hash_order, node_order


def test_sets_are_listed_in_the_order_of_java() -> None:
    assert hash_order(["a", "b", "c", "orders", "payments"], copied=True) == ["a", "b", "c", "payments", "orders"]
    assert hash_order([]) == []
    assert hash_order(["twice", "twice"]) == ["twice"]


def test_many_ways_through_a_topology_are_counted_not_walked() -> None:
    """Thirty diamonds in a row have a billion ways from top to bottom."""
    parents: dict[str, tuple[str, ...]] = {"0": ()}
    for number in range(30):
        parents |= {f"{number}a": (f"{number}",), f"{number}b": (f"{number}",)}
        parents[f"{number + 1}"] = (f"{number}a", f"{number}b")
    order = node_order(parents)
    assert next(iter(order)) == "0"
    assert set(order["30"].predecessors) == {"29a", "29b"}
