"""The order in which Kafka Streams lists the nodes, stores and topics of a description.

Descriptions are compared line by line with Java's, so they follow Java even where its order looks arbitrary. Sets are
listed in the order of Java's hash tables. The neighbours of a node are listed in the order of a sorted tree, which is
filled while the sizes that it sorts by still grow.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Neighbours:
    """The nodes before and after a node, in the order in which they are listed."""

    predecessors: tuple[str, ...]
    successors: tuple[str, ...]


def hash_order(names: Iterable[str], *, copied: bool = False) -> list[str]:
    """Return names in the order of a Java `HashSet` that they were added to, or that was copied from a collection."""
    put = list(dict.fromkeys(names))
    least = max(int(len(put) / 0.75) + 1, 16) if copied else 16
    table = 16
    while table < least or len(put) > table * 0.75:
        table *= 2
    return sorted(put, key=lambda name: _spread(_java_hash(name)) & (table - 1))


def node_order(parents: Mapping[str, Iterable[str]]) -> dict[str, Neighbours]:
    """Return the nodes of a sub-topology in the order of a description: first the nodes with the most nodes below them.

    `parents` lists every node after its parents.
    """
    sizes = dict.fromkeys(parents, 1)

    def before(name: str, other: str) -> bool:
        return (-sizes[name], name) < (-sizes[other], other)

    above = {name: _SortedTree(before) for name in parents}
    below = {name: _SortedTree(before) for name in parents}
    upwards = list(parents)[::-1]
    for name in hash_order(parents):
        for parent in parents[name]:
            above[name].add(parent)
            below[parent].add(name)
            _grow(sizes, parent, sizes[name], above, upwards)
    listed = sorted(parents, key=lambda name: (-sizes[name], name))
    return {name: Neighbours(tuple(above[name]), tuple(below[name])) for name in listed}


def _grow(
    sizes: dict[str, int], start: str, delta: int, above: Mapping[str, Iterable[str]], upwards: Iterable[str]
) -> None:
    """Add delta to a node, and to each node above it once for every path that leads there."""
    gains = {start: delta}
    for name in upwards:
        gain = gains.pop(name, 0)
        if gain:
            sizes[name] += gain
            for parent in above[name]:
                gains[parent] = gains.get(parent, 0) + gain
        if not gains:
            return


def _java_hash(text: str) -> int:
    units = text.encode("utf-16-be")
    result = 0
    for high, low in zip(units[::2], units[1::2]):
        result = (31 * result + (high << 8 | low)) & 0xFFFFFFFF
    return result


def _spread(number: int) -> int:
    return number ^ (number >> 16)


@dataclass(eq=False)
class _Entry:
    name: str
    parent: _Entry | None
    children: list[_Entry | None] = field(default_factory=lambda: [None, None])
    red: bool = True


class _SortedTree:
    """A red-black tree with the steps of Java's `TreeMap`.

    A name gets its place once, when it is added, by comparisons from the root down. Later the order of the names may
    change, so the shape of the tree matters.
    """

    def __init__(self, before: Callable[[str, str], bool]) -> None:
        self._before = before
        self._root: _Entry | None = None

    def add(self, name: str) -> None:
        """Add a name, unless it is found on the way down."""
        above, side, node = None, 0, self._root
        while node is not None:
            if node.name == name:
                return
            side = 0 if self._before(name, node.name) else 1
            above, node = node, node.children[side]
        entry = _Entry(name, above)
        if above is None:
            self._root = entry
        else:
            above.children[side] = entry
        self._balance(entry)

    def __iter__(self) -> Iterator[str]:
        open_ends: list[_Entry] = []
        node = self._root
        while node is not None or open_ends:
            while node is not None:
                open_ends.append(node)
                node = node.children[0]
            entry = open_ends.pop()
            yield entry.name
            node = entry.children[1]

    def _balance(self, entry: _Entry) -> None:
        while entry.parent is not None and entry.parent.red and entry.parent.parent is not None:
            parent, grand = entry.parent, entry.parent.parent
            side = 0 if parent is grand.children[0] else 1
            uncle = grand.children[1 - side]
            if uncle is not None and uncle.red:
                parent.red = uncle.red = False
                grand.red = True
                entry = grand
                continue
            if entry is parent.children[1 - side]:
                self._rotate(parent, side)
                entry, parent = parent, entry
            parent.red = False
            grand.red = True
            self._rotate(grand, 1 - side)
        if self._root is not None:
            self._root.red = False

    def _rotate(self, entry: _Entry, side: int) -> None:
        """Put the child of the other side in an entry's node, and the entry below it on this side."""
        child = entry.children[1 - side]
        if child is None:
            return
        inner = child.children[side]
        entry.children[1 - side] = inner
        if inner is not None:
            inner.parent = entry
        child.parent = entry.parent
        if entry.parent is None:
            self._root = child
        else:
            entry.parent.children[0 if entry is entry.parent.children[0] else 1] = child
        child.children[side] = entry
        entry.parent = child
