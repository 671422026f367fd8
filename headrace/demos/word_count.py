"""Word count: count how often each word occurs in a stream of lines.

It shows the way from records to a table. A line becomes a record per word, the word becomes the key, records with the
same key go to the same partition, and a table keeps a number for each key.

    lines -> words -> group by word -> count -> word-counts

Run it on Spark over generated lines:

    headrace demo word_count

or over your own topic `lines`:

    headrace run headrace.demos.word_count:build_topology
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import accumulate
from random import Random

from headrace import StreamsBuilder, Topology, serdes
from headrace.demos import START, Demo, InputRecord, Outputs

OUTPUTS = {"word-counts": (serdes.String, serdes.Long)}
OUTPUT_TOPICS = tuple(OUTPUTS)

_WORD = re.compile(r"\w+(?:'\w+)*")


def build_topology() -> Topology:
    """Read lines, turn each word into a record, and count by word."""
    builder = StreamsBuilder()
    lines = builder.stream("lines", value_serde=serdes.String)
    words = lines.flat_map_values(words_of)
    counts = words.group_by(lambda key, word: word, value_serde=serdes.String).count(store="counts")
    counts.to_stream().to("word-counts", value_serde=serdes.Long)
    return builder.build()


def words_of(line: str) -> list[str]:
    """Return the words of a line in lower case, without punctuation.

    >>> words_of("“Well, don't!” said Émile -- twice.")
    ['well', "don't", 'said', 'émile', 'twice']
    """
    return _WORD.findall(line.lower())


def summarize(outputs: Outputs) -> list[str]:
    """Return the number of words, and the ten most frequent ones."""
    counts: dict[str, int] = dict(outputs["word-counts"])  # the last count of each word
    top = sorted(counts.items(), key=lambda row: (-row[1], row[0]))[:10]
    return [
        f"{sum(counts.values()):,} words, {len(counts):,} different ones",
        *(f"{count:10,}  {word}" for word, count in top),
    ]


# -- generated lines --------------------------------------------------------------------------------------------------

_COMMON = """
    the of and a to in I he was that it his her with as had for she not at but be on they have him which said from
    all this by you were so are or one what there been would if no who when them their out up is my we into more me
    your then some could now time very about little man did do than other will its any like after before never only
    old made two how great over can these down see again should came well here long hand day might even much own way
    first such must life good every away thought shall night through where upon last house without himself always
    still young nothing both make against those too being eyes while back another went most though people left
    don't it's I'm didn't that's can't
"""
_SYLLABLES = """
    con ver sta men tal port ri ser den lo mar tin pre sen cor per vi ra lis ton bel can der fin gal har lan mo nor
    pel qua ros sil tur van wes al er in or un
"""


def make_records(count: int, seed: int = 7) -> Iterator[InputRecord]:
    """Generate lines without a key, in which few words are frequent and most are rare, as in any text."""
    random = Random(seed)
    vocabulary = _make_vocabulary(random, 3000)
    weights = list(accumulate(1 / (rank + 2) for rank in range(len(vocabulary))))  # Zipf's law
    timestamp = START
    for _ in range(count):
        words = random.choices(vocabulary, cum_weights=weights, k=random.randint(4, 14))
        yield "lines", None, _make_sentence(random, words).encode(), timestamp
        timestamp += random.randint(1, 100)


def _make_vocabulary(random: Random, size: int) -> list[str]:
    words = dict.fromkeys(_COMMON.split())
    syllables = _SYLLABLES.split()
    while len(words) < size:
        words["".join(random.choices(syllables, k=random.choice((2, 2, 3, 3, 4))))] = None
    return list(words)


def _make_sentence(random: Random, words: list[str]) -> str:
    for position in range(len(words) - 1):
        if random.random() < 0.1:
            words[position] += random.choice((",", ",", ";", " –"))
    text = " ".join(words)
    return text[0].upper() + text[1:] + random.choice("....!?")


DEMO = Demo(
    name="word_count",
    title="How often each word occurs in a text",
    build_topology=build_topology,
    make_records=make_records,
    outputs=OUTPUTS,
    summarize=summarize,
)
