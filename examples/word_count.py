"""Word count as a whole application: topics, topology, configuration, run.

It uses the topology of `headrace/demos/word_count.py`; yours would be here. `python -m examples.word_count` creates the
topics in a temporary embedded log, writes 20,000 lines, counts their words on Spark and prints the most frequent ones.
"""

from tempfile import TemporaryDirectory

from headrace import StreamsConfig, serdes
from headrace.brokers import Broker, connect
from headrace.demos.word_count import build_topology, make_records, summarize

__all__ = ["build_topology"]


def main() -> None:
    # Imported here to save time: the topology can be imported, tested and described without Spark.
    from headrace import Streams

    with TemporaryDirectory(prefix="word-count-") as folder:
        address = f"local:{folder}/topics.db"
        config = StreamsConfig(application_id="word-count", bootstrap_servers=address, state_dir=f"{folder}/state")
        with connect(address) as broker:
            write_lines(broker, 20_000)
            Streams(build_topology(), config).run(until_caught_up=True)
            print("\n".join(read_top_words(broker)))


def write_lines(broker: Broker, count: int) -> None:
    """Create the topics, and write lines to the input topic."""
    broker.create_topic("lines", partitions=2)
    broker.create_topic("word-counts", partitions=2)
    broker.produce("lines", [(key, value, timestamp) for _, key, value, timestamp in make_records(count)])


def read_top_words(broker: Broker) -> list[str]:
    """Return the most frequent words in the output topic."""
    counts = [
        (serdes.String.deserialize("word-counts", record.key), serdes.Long.deserialize("word-counts", record.value))
        for record in broker.records("word-counts")
    ]
    return summarize({"word-counts": counts})


if __name__ == "__main__":
    main()
