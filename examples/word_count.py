"""Count words: `python -m examples.word_count`."""

from headrace import StreamsBuilder, Topology, serdes
from headrace.testing import TopologyTestDriver

LINES = [
    "all streams lead to kafka",
    "hello kafka streams",
    "join kafka summit",
]


def build_topology() -> Topology:
    """Read lines, give each word its own record, count by word."""
    builder = StreamsBuilder()
    lines = builder.stream("lines", value_serde=serdes.String)
    words = lines.flat_map_values(lambda line: line.lower().split())
    counts = words.group_by(lambda key, word: word, value_serde=serdes.String).count(store="counts")
    counts.to_stream().to("word-counts", value_serde=serdes.Long)
    return builder.build()


def main() -> None:
    print("This is the test driver, in one process: there is no engine yet.\n")
    with TopologyTestDriver(build_topology()) as driver:
        lines = driver.create_input_topic("lines", value_serde=serdes.String)
        counts = driver.create_output_topic("word-counts", value_serde=serdes.Long)
        for line in LINES:
            lines.pipe_input(None, line)
            updates = "  ".join(f"{word}={count}" for word, count in counts.read_key_values())
            print(f"{line:28}-> {updates}")
        print("\nstore 'counts':", dict(driver.state_store("counts").all()))


if __name__ == "__main__":
    main()
