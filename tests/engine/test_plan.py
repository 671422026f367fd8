"""Which tasks a topology has, in which stage they run, and how many partitions its topics get."""

import pytest

from headrace import (
    JoinWindows,
    Processor,
    StreamsBuilder,
    StreamsConfig,
    Topology,
    TopologyError,
    TumblingWindows,
    serdes,
)
from headrace.engine.plan import Plan, make_plan

CONFIG = StreamsConfig(application_id="app", num_partitions=2)


def plan(builder: StreamsBuilder | Topology, **known: int) -> Plan:
    topology = builder.build() if isinstance(builder, StreamsBuilder) else builder
    return make_plan(topology, CONFIG, known)


def test_a_stateless_topology_is_one_unit_without_state() -> None:
    builder = StreamsBuilder()
    builder.stream("lines").filter(lambda key, value: True).to("out")

    made = plan(builder, lines=3)

    assert [(unit.level, unit.stateful, unit.tasks) for unit in made.units] == [(0, False, 3)]
    assert made.stateful_levels() == []


def test_a_repartition_behind_a_store_starts_the_next_level() -> None:
    builder = StreamsBuilder()
    words = builder.stream("lines").group_by(lambda key, value: value).count(store="words")
    words.group_by(lambda key, count: (count, key)).count(store="counts").to_stream().to("out")

    made = plan(builder, lines=3)

    assert [(unit.level, unit.stateful) for unit in made.units] == [(0, False), (0, True), (1, True)]
    assert made.partitions["app-words-repartition"] == 3
    assert made.partitions["app-counts-repartition"] == 3
    assert made.readers["app-words-repartition"] == 1


def test_a_level_is_the_longest_chain_before_it() -> None:
    builder = StreamsBuilder()
    once = builder.stream("in").repartition(name="once")
    twice = once.select_key(lambda key, value: value).repartition(name="twice")
    once.join(twice, lambda one, other: one, window=JoinWindows(10)).to("out")

    made = plan(builder, **{"in": 2})

    assert [unit.level for unit in made.units] == [0, 0]
    assert made.units[1].together  # it writes what it reads


def test_a_foreign_key_join_is_one_task_for_all_partitions() -> None:
    builder = StreamsBuilder()
    orders, products = builder.table("orders"), builder.table("products")
    orders.join(products, lambda one, other: [one, other], foreign_key=lambda order: order["product"]).to_stream().to(
        "o"
    )

    [unit] = plan(builder, orders=2, products=4).units

    assert (unit.together, unit.tasks, unit.partitions, unit.stateful) == (True, 1, 4, True)


def test_a_global_table_makes_its_readers_stateful() -> None:
    builder = StreamsBuilder()
    names = builder.global_table("names")
    builder.stream("in").join(names, lambda one, other: one, key=lambda key, value: key).to("out")
    builder.stream("other").to("out2")

    made = plan(builder, **{"in": 2, "other": 2, "names": 5})

    reader = made.units[made.readers["in"]]
    assert (reader.stateful, reader.global_subs, reader.tasks) == (True, (0,), 2)
    assert made.global_readers == {"names": (reader.number,)}
    assert not made.units[made.readers["other"]].stateful


class Own(Processor[str, str]):
    pass


@pytest.mark.parametrize(
    "build",
    [
        lambda stream: stream.process(Own),
        lambda stream: stream.group_by_key().count(),
        lambda stream: stream.group_by_key().windowed_by(TumblingWindows(10)).count(),
        lambda stream: stream.to_table(store="rows"),
    ],
)
def test_what_keeps_something_between_batches_is_stateful(build: object) -> None:
    builder = StreamsBuilder()
    build(builder.stream("in"))  # type: ignore[operator]

    assert [unit.stateful for unit in plan(builder, **{"in": 1}).units] == [True]


def test_a_timestamp_extractor_is_told_the_time_of_its_partition_so_it_needs_state() -> None:
    builder = StreamsBuilder()
    builder.stream("in", timestamp_extractor=lambda record, latest: latest + 1).to("out")

    assert [unit.stateful for unit in plan(builder, **{"in": 1}).units] == [True]


def test_topics_that_do_not_exist_yet_get_the_configured_number() -> None:
    builder = StreamsBuilder()
    builder.stream("in").to("out")

    assert plan(builder).partitions == {"in": 2, "out": 2}


def test_a_repartition_takes_the_number_of_what_it_is_joined_with() -> None:
    builder = StreamsBuilder()
    stream = builder.stream("in").select_key(lambda key, value: value)
    stream.join(builder.table("rows"), lambda one, other: one, name="j").to("out")

    made = plan(builder, **{"in": 7, "rows": 3})

    assert made.partitions["app-j-repartition"] == 3


def test_a_given_number_of_partitions_is_kept() -> None:
    builder = StreamsBuilder()
    builder.stream("in").repartition(partitions=5, name="wide").to("out")

    assert plan(builder, **{"in": 2}).partitions["app-wide-repartition"] == 5


def test_joined_topics_with_different_numbers_are_refused_by_name() -> None:
    builder = StreamsBuilder()
    builder.stream("in").join(builder.table("rows"), lambda one, other: one, name="j").to("out")

    with pytest.raises(TopologyError, match=r"step 'j'.*'in' has 2, 'rows' has 3"):
        plan(builder, **{"in": 2, "rows": 3})


def test_windowed_keys_go_to_the_partition_of_the_key_inside() -> None:
    builder = StreamsBuilder()
    counts = builder.stream("in").group_by_key().windowed_by(TumblingWindows(10)).count().to_stream()
    counts.to("out", key_serde=serdes.Windowed(serdes.String, 10), value_serde=serdes.Long)

    assert plan(builder, **{"in": 1}).key_suffixes == {"out": 8}
