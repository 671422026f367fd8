"""After a restart an application finds its state again, or refuses a topology that does not fit it."""

from pathlib import Path

import pytest

from headrace import StreamsBuilder, StreamsConfig, StreamsError, Topology, serdes
from headrace.engine.identity import Identity, first_number, last_number, spark_partition
from headrace.engine.plan import make_plan

CONFIG = StreamsConfig(application_id="app")


def counting(store: str = "counts", value_serde: object = None, *, more: bool = False, topic: str = "in") -> Topology:
    builder = StreamsBuilder()
    if more:
        builder.stream("first").group_by_key().count(store="firsts").to_stream().to("firsts")
    stream = builder.stream(topic)
    grouped = stream.group_by_key()
    if value_serde is None:
        grouped.count(store=store).to_stream().to("out")
    else:
        from headrace import Materialized

        grouped.reduce(lambda one, other: one, store=Materialized(store, value_serde=value_serde)).to_stream().to("out")  # type: ignore[arg-type]
    return builder.build()


def take_up(
    identity: Identity, topology: Topology, drop: tuple[str, ...] = (), partitions: int = 2
) -> dict[int, list[int]]:
    config = StreamsConfig(application_id="app", drop_stores=drop)
    return identity.take_up(make_plan(topology, config, {"in": partitions, "first": 2}), topology, config)


def test_tasks_are_spread_over_the_shuffle_partitions() -> None:
    for partitions in range(1, 9):
        numbers = take_up(Identity.new(partitions), counting(), partitions=16)[0]

        counts = [
            sum(spark_partition(number, partitions) == place for number in numbers) for place in range(partitions)
        ]

        assert max(counts) - min(counts) <= 1
        assert len(set(numbers)) == 16


def test_tasks_keep_their_numbers_when_something_comes_before_them(tmp_path: Path) -> None:
    identity = Identity.new(2)
    before = take_up(identity, counting())
    identity.save(tmp_path / "identity.json")
    again = Identity.load(tmp_path / "identity.json")
    assert again is not None
    assert again == identity

    after = take_up(again, counting(more=True))

    assert after[1] == before[0]
    assert not set(after[0]) & set(before[0])


def test_a_changed_serde_is_refused_by_name() -> None:
    identity = Identity.new(2)
    take_up(identity, counting(value_serde=serdes.String))

    with pytest.raises(StreamsError, match=r"store 'counts' has changed.*String.*Bytes.*drop_stores=\['counts'\]"):
        take_up(identity, counting(value_serde=serdes.Bytes))


def test_a_store_that_is_gone_is_refused_by_name() -> None:
    identity = Identity.new(2)
    take_up(identity, counting("counts"))

    with pytest.raises(StreamsError, match=r"store 'counts'.*no longer in the topology.*drop_stores=\['counts'\]"):
        take_up(identity, counting("numbers"))


def test_a_dropped_store_begins_anew() -> None:
    identity = Identity.new(2)
    take_up(identity, counting(value_serde=serdes.String))

    take_up(identity, counting(value_serde=serdes.Bytes), drop=("counts",))

    assert identity.generations == {"counts": 1}
    take_up(identity, counting(value_serde=serdes.Bytes), drop=("counts",))
    assert identity.generations == {"counts": 1}


def test_a_changed_default_serde_is_refused() -> None:
    identity, topology = Identity.new(2), counting(more=False)
    builder = StreamsBuilder()
    builder.table("in", store="rows")
    topology = builder.build()
    plan = make_plan(topology, CONFIG, {"in": 2})
    identity.take_up(plan, topology, CONFIG)

    with pytest.raises(StreamsError, match=r"store 'rows' has changed.*Json.*String"):
        identity.take_up(plan, topology, StreamsConfig(application_id="app", default_value_serde=serdes.String))


def test_a_new_reader_of_a_global_table_is_refused() -> None:
    def joining(*topics: str) -> Topology:
        builder = StreamsBuilder()
        names = builder.global_table("names")
        for topic in topics:
            builder.stream(topic).join(names, lambda one, other: one, key=lambda key, value: key).to(f"out-{topic}")
        return builder.build()

    identity = Identity.new(2)
    take_up(identity, joining("in"))

    with pytest.raises(StreamsError, match="global table of topic 'names' has a new reader"):
        take_up(identity, joining("in", "first"))


@pytest.mark.parametrize("table_was_there", [True, False], ids=["dropped and back", "a stream before"])
def test_a_global_table_of_what_was_read_before_is_refused(tmp_path: Path, table_was_there: bool) -> None:
    def enriched() -> Topology:
        builder = StreamsBuilder()
        names = builder.global_table("names", store="names")
        stream = builder.stream("in")
        stream.group_by_key().count(store="counts")
        stream.join(names, lambda one, other: one, key=lambda key, value: key).to("out")
        return builder.build()

    def plain() -> Topology:
        builder = StreamsBuilder()
        builder.stream("in").group_by_key().count(store="counts")
        if not table_was_there:
            builder.stream("names").to("out")
        return builder.build()

    identity = Identity.new(2)
    if table_was_there:
        take_up(identity, enriched())
        take_up(identity, enriched())
    take_up(identity, plain(), drop=("names",) if table_was_there else ())
    identity.save(tmp_path / "identity.json")
    again = Identity.load(tmp_path / "identity.json")
    assert again is not None

    with pytest.raises(StreamsError, match="global table of topic 'names' has a new reader"):
        take_up(again, enriched())


@pytest.mark.parametrize("joined_before", [True, False])
def test_a_foreign_key_join_that_comes_to_a_store_or_goes_is_refused(joined_before: bool) -> None:
    def tables(joined: bool) -> Topology:
        builder = StreamsBuilder()
        customers = builder.table("in", store="customers")
        if joined:
            orders = builder.table("first", store="orders")
            orders.join(customers, lambda order, customer: order, foreign_key=lambda order: order["of"]).to_stream().to(
                "joined"
            )
        else:
            customers.to_stream().to("out")
        return builder.build()

    identity = Identity.new(2)
    take_up(identity, tables(joined_before))

    way = "leave" if joined_before else "become part of"
    with pytest.raises(StreamsError, match=f"'customers'.* now {way} a cycle of sub-topologies"):
        take_up(
            identity, tables(not joined_before), drop=tuple({*identity.stores} - {"customers"} if joined_before else ())
        )


def test_stores_that_change_places_across_a_repartition_are_refused() -> None:
    def two(first: str, second: str) -> Topology:
        builder = StreamsBuilder()
        counts = builder.stream("in").group_by_key().count(store=first)
        counts.to_stream().group_by(lambda key, count: "k", name="again").count(store=second).to_stream().to("out")
        return builder.build()

    identity = Identity.new(2)
    take_up(identity, two("a", "b"))

    with pytest.raises(StreamsError, match="another number of repartitions"):
        take_up(identity, two("b", "a"))


def test_dropping_what_is_not_there_is_refused() -> None:
    with pytest.raises(StreamsError, match=r"no store 'nothing' \(stores: none\)"):
        take_up(Identity.new(2), counting(), drop=("nothing",))


def test_another_number_of_partitions_is_refused() -> None:
    identity = Identity.new(2)
    take_up(identity, counting())

    with pytest.raises(StreamsError, match=r"had 2 partitions .* have 3 now"):
        take_up(identity, counting(), partitions=3)


def test_another_number_of_levels_with_state_is_refused() -> None:
    identity = Identity.new(2)
    take_up(identity, counting())
    builder = StreamsBuilder()
    counts = builder.stream("in").group_by_key().count(store="counts")
    counts.group_by(lambda key, count: (count, key)).count(store="second").to_stream().to("out")

    with pytest.raises(StreamsError, match="2 levels of steps with state, but the checkpoint has 1"):
        take_up(identity, builder.build())


def test_a_damaged_file_says_what_to_do(tmp_path: Path) -> None:
    path = tmp_path / "identity.json"
    path.write_text("{", encoding="utf-8")

    with pytest.raises(StreamsError, match="headrace reset"):
        Identity.load(path)


def test_numbers_cover_every_shuffle_partition_from_both_ends() -> None:
    first, last = ([number_of(wanted, 5) for wanted in range(5)] for number_of in (first_number, last_number))
    assert [spark_partition(number, 5) for number in first] == [0, 1, 2, 3, 4]
    assert [spark_partition(number, 5) for number in last] == [0, 1, 2, 3, 4]
    assert max(first) < 100 < 2**31 - 100 < min(last)


def test_a_used_number_is_not_given_again() -> None:
    used: set[int] = set()
    for _ in range(4):
        used.add(first_number(1, 2, used))
    assert len(used) == 4
    assert {spark_partition(number, 2) for number in used} == {1}
