import com.fasterxml.jackson.databind.ObjectMapper;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.function.Consumer;
import java.util.regex.Pattern;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.kstream.Branched;
import org.apache.kafka.streams.kstream.CogroupedKStream;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.EmitStrategy;
import org.apache.kafka.streams.kstream.GlobalKTable;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.JoinWindows;
import org.apache.kafka.streams.kstream.Joined;
import org.apache.kafka.streams.kstream.KGroupedStream;
import org.apache.kafka.streams.kstream.KGroupedTable;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.KTable;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Named;
import org.apache.kafka.streams.kstream.Printed;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.kstream.Repartitioned;
import org.apache.kafka.streams.kstream.SessionWindows;
import org.apache.kafka.streams.kstream.SlidingWindows;
import org.apache.kafka.streams.kstream.StreamJoined;
import org.apache.kafka.streams.kstream.Suppressed;
import org.apache.kafka.streams.kstream.Suppressed.BufferConfig;
import org.apache.kafka.streams.kstream.TableJoined;
import org.apache.kafka.streams.kstream.TimeWindows;
import org.apache.kafka.streams.kstream.UnlimitedWindows;
import org.apache.kafka.streams.kstream.Windowed;
import org.apache.kafka.streams.processor.StateStore;
import org.apache.kafka.streams.processor.TopicNameExtractor;
import org.apache.kafka.streams.processor.api.ContextualFixedKeyProcessor;
import org.apache.kafka.streams.processor.api.ContextualProcessor;
import org.apache.kafka.streams.processor.api.FixedKeyProcessorSupplier;
import org.apache.kafka.streams.processor.api.FixedKeyRecord;
import org.apache.kafka.streams.processor.api.Processor;
import org.apache.kafka.streams.processor.api.ProcessorSupplier;
import org.apache.kafka.streams.processor.api.Record;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.StoreBuilder;
import org.apache.kafka.streams.state.Stores;

/**
 * Prints how Kafka Streams describes topologies, one JSON object per line: "name" and "description".
 *
 * <p>To write java_descriptions.jsonl anew, with Java 17 and the class path of the conformance oracle (its jars are in
 * conformance/target/lib after `mvn -f conformance/pom.xml package`), from the root of the project:
 *
 * <pre>
 * java -cp 'conformance/target/lib/*' tests/topology/java/Descriptions.java > tests/topology/java_descriptions.jsonl
 * </pre>
 *
 * <p>The cases of the same names in tests/topology/cases build the same topologies with Headrace. The random ones at the
 * end are built from "steps", which the line carries along: they pin down the order in which nodes and stores are listed.
 */
public class Descriptions {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final Duration SECOND = Duration.ofSeconds(1);
    private static final JoinWindows WINDOW = JoinWindows.ofTimeDifferenceWithNoGrace(SECOND);
    private static final TimeWindows TUMBLING = TimeWindows.ofSizeWithNoGrace(SECOND);
    private static final SessionWindows SESSIONS = SessionWindows.ofInactivityGapWithNoGrace(SECOND);
    private static final SlidingWindows SLIDING = SlidingWindows.ofTimeDifferenceWithNoGrace(SECOND);

    public static void main(String[] args) throws Exception {
        sources();
        stateless();
        splits();
        repartitions();
        toTable();
        aggregations();
        windows();
        suppress();
        cogroup();
        streamStreamJoins();
        streamTableJoins();
        tables();
        tableAggregations();
        tableJoins();
        foreignKeyJoins();
        processors();
        processorApi();
        composed();
        for (int seed = 0; seed < 30; seed++) {
            random(seed);
        }
    }

    private static void print(String name, Topology topology, Object steps) {
        Map<String, Object> line = new LinkedHashMap<>();
        line.put("name", name);
        if (steps != null) {
            line.put("steps", steps);
        }
        // A sink that picks its topic for each record prints an object with its address.
        line.put("description", topology.describe().toString().replaceAll("extractor class: [^)]*", "extractor class: ..."));
        try {
            System.out.println(JSON.writeValueAsString(line));
        } catch (Exception e) {
            throw new RuntimeException(e);
        }
    }

    private static void dsl(String name, Consumer<StreamsBuilder> build) {
        StreamsBuilder builder = new StreamsBuilder();
        build.accept(builder);
        print(name, builder.build(), null);
    }

    private static void topology(String name, Consumer<Topology> build) {
        Topology topology = new Topology();
        build.accept(topology);
        print(name, topology, null);
    }

    private static KStream<String, String> stream(StreamsBuilder builder, String topic) {
        return builder.stream(topic);
    }

    private static KTable<String, String> table(StreamsBuilder builder, String topic) {
        return builder.table(topic);
    }

    private static KStream<String, String> rekeyed(StreamsBuilder builder, String topic) {
        return stream(builder, topic).selectKey((k, v) -> v);
    }

    private static KGroupedStream<String, String> grouped(StreamsBuilder builder) {
        return stream(builder, "in").groupByKey();
    }

    private static String both(String left, String right) {
        return left + right;
    }

    private static <S extends StateStore> Materialized<String, String, S> unnamed() {
        return Materialized.with(Serdes.String(), Serdes.String());
    }

    private static Materialized<String, Long, KeyValueStore<Bytes, byte[]>> unnamedCount() {
        return Materialized.with(Serdes.String(), Serdes.Long());
    }

    private static StoreBuilder<KeyValueStore<String, String>> store(String name) {
        return Stores.keyValueStoreBuilder(Stores.inMemoryKeyValueStore(name), Serdes.String(), Serdes.String());
    }

    private static ProcessorSupplier<String, String, String, String> supplier(String... stores) {
        return new ProcessorSupplier<>() {
            @Override
            public Processor<String, String, String, String> get() {
                return new ContextualProcessor<>() {
                    @Override
                    public void process(Record<String, String> record) {
                        context().forward(record);
                    }
                };
            }

            @Override
            public Set<StoreBuilder<?>> stores() {
                Set<StoreBuilder<?>> builders = new LinkedHashSet<>();
                for (String name : stores) {
                    builders.add(store(name));
                }
                return builders.isEmpty() ? null : builders;
            }
        };
    }

    private static FixedKeyProcessorSupplier<String, String, String> fixedKey() {
        return () -> new ContextualFixedKeyProcessor<>() {
            @Override
            public void process(FixedKeyRecord<String, String> record) {
                context().forward(record);
            }
        };
    }

    private static void sources() {
        dsl("stream", b -> stream(b, "in").to("out"));
        dsl("stream named", b -> b.stream("in", Consumed.as("reader")).to("out", Produced.as("writer")));
        dsl("stream of several topics", b -> b.stream(List.of("a", "b", "c", "orders", "payments")).to("out"));
        dsl("stream of a pattern", b -> b.stream(Pattern.compile("in-[a-z]+")).to("out"));
        dsl("stream of a pattern named", b -> b.stream(Pattern.compile("all-.*"), Consumed.as("all")).to("out"));
        dsl("same topic twice", b -> {
            stream(b, "in").filter((k, v) -> true).to("one");
            stream(b, "in").mapValues(v -> v).to("two");
        });
        dsl("same topic twice joined", b -> stream(b, "in").join(stream(b, "in"), Descriptions::both, WINDOW).to("out"));
        dsl("same topics twice", b -> {
            b.stream(List.of("a", "b")).to("one");
            b.stream(List.of("a", "b")).to("two");
        });
        dsl("same pattern twice", b -> {
            b.stream(Pattern.compile("a.*")).to("one");
            b.stream(Pattern.compile("a.*")).to("two");
        });
        dsl("several streams", b -> {
            stream(b, "a").to("x");
            stream(b, "b").to("y");
            stream(b, "c").to("z");
        });
        dsl("table source", b -> b.table("in"));
        dsl("table source with store", b -> b.table("in", Materialized.as("rows")));
        dsl("table source with unnamed store", b -> b.table("in", unnamed()));
        dsl("table source named", b -> b.table("in", Consumed.as("rows")));
        dsl("table source named with store", b -> b.table("in", Consumed.as("reader"), Materialized.as("rows")));
        dsl("table source needed", b -> table(b, "in").filter((k, v) -> true, Materialized.as("kept")).toStream().to("out"));
        dsl("global table", b -> b.globalTable("in"));
        dsl("global table with store", b -> b.globalTable("in", Materialized.as("rows")));
        dsl("global table named", b -> b.globalTable("in", Consumed.as("reader"), Materialized.as("rows")));
        dsl("global table beside streams", b -> {
            stream(b, "a").to("x");
            b.globalTable("countries");
            stream(b, "b").to("y");
            b.globalTable("cities", Materialized.as("cities"));
            stream(b, "c").to("z");
        });
        dsl("global tables first", b -> {
            b.globalTable("one");
            b.globalTable("two");
            stream(b, "a").to("x");
        });
    }

    private static void stateless() {
        dsl("filter", b -> stream(b, "in").filter((k, v) -> true).to("out"));
        dsl("filter not", b -> stream(b, "in").filterNot((k, v) -> true).to("out"));
        dsl("map", b -> stream(b, "in").map(KeyValue::pair).to("out"));
        dsl("flat map", b -> stream(b, "in").flatMap((k, v) -> List.of(KeyValue.pair(k, v))).to("out"));
        dsl("select key", b -> rekeyed(b, "in").to("out"));
        dsl("map values", b -> stream(b, "in").mapValues(v -> v).to("out"));
        dsl("map values with key", b -> stream(b, "in").mapValues((k, v) -> v).to("out"));
        dsl("flat map values", b -> stream(b, "in").flatMapValues(v -> List.of(v)).to("out"));
        dsl("peek", b -> stream(b, "in").peek((k, v) -> { }).to("out"));
        dsl("for each", b -> stream(b, "in").foreach((k, v) -> { }));
        dsl("print", b -> stream(b, "in").print(Printed.toSysOut()));
        dsl("print with label", b -> stream(b, "in").print(Printed.<String, String>toSysOut().withLabel("label")));
        dsl("merge", b -> stream(b, "a").merge(stream(b, "b")).to("out"));
        dsl("merge of three", b -> stream(b, "a").merge(stream(b, "b")).merge(stream(b, "c")).to("out"));
        dsl("merge with itself", b -> {
            KStream<String, String> in = stream(b, "in");
            in.merge(in).to("out");
        });
        dsl("merge of branches", b -> {
            KStream<String, String> in = stream(b, "in");
            in.filter((k, v) -> true).merge(in.mapValues(v -> v)).to("out");
        });
        dsl("stateless named", b -> {
            KStream<String, String> all = b.<String, String>stream("in", Consumed.as("reader"))
                .filter((k, v) -> true, Named.as("kept"))
                .filterNot((k, v) -> false, Named.as("dropped"))
                .map(KeyValue::pair, Named.as("mapped"))
                .flatMap((k, v) -> List.of(KeyValue.pair(k, v)), Named.as("flattened"))
                .selectKey((k, v) -> k, Named.as("rekeyed"))
                .mapValues(v -> v, Named.as("revalued"))
                .flatMapValues(v -> List.of(v), Named.as("values"))
                .peek((k, v) -> { }, Named.as("seen"));
            all.foreach((k, v) -> { }, Named.as("done"));
            all.print(Printed.<String, String>toSysOut().withName("printed"));
            all.merge(stream(b, "other"), Named.as("merged")).to("out", Produced.as("writer"));
        });
        dsl("named and unnamed mixed", b -> stream(b, "in")
            .filter((k, v) -> true, Named.as("kept"))
            .mapValues(v -> v)
            .peek((k, v) -> { }, Named.as("seen"))
            .mapValues(v -> v)
            .to("out"));
        dsl("to a topic by record", b -> stream(b, "in").to((k, v, context) -> v));
        dsl("to a topic by record named", b -> stream(b, "in").to((k, v, context) -> v, Produced.as("writer")));
        dsl("several sinks", b -> {
            KStream<String, String> in = stream(b, "in");
            in.to("one");
            in.to("two");
            in.mapValues(v -> v).to("three");
        });
    }

    private static void splits() {
        dsl("split", b -> {
            Map<String, KStream<String, String>> parts = stream(b, "in").split()
                .branch((k, v) -> true, Branched.as("small"))
                .branch((k, v) -> true, Branched.as("large"))
                .defaultBranch(Branched.as("rest"));
            for (String part : List.of("small", "large", "rest")) {
                parts.get("KSTREAM-BRANCH-0000000001" + part).mapValues(v -> v);
            }
        });
        dsl("split without default", b -> {
            Map<String, KStream<String, String>> parts = stream(b, "in").split()
                .branch((k, v) -> true, Branched.as("small"))
                .branch((k, v) -> true, Branched.as("large"))
                .noDefaultBranch();
            parts.get("KSTREAM-BRANCH-0000000001small").to("out");
        });
        dsl("split named", b -> {
            Map<String, KStream<String, String>> parts = stream(b, "in").split(Named.as("by-size-"))
                .branch((k, v) -> true, Branched.as("small"))
                .branch((k, v) -> true, Branched.as("large"))
                .defaultBranch(Branched.as("rest"));
            parts.get("by-size-small").to("small");
            parts.get("by-size-large").mapValues(v -> v).to("large");
            parts.get("by-size-rest").to("rest");
        });
        dsl("split twice", b -> {
            Map<String, KStream<String, String>> parts = stream(b, "in").split(Named.as("outer-"))
                .branch((k, v) -> true, Branched.as("a"))
                .defaultBranch(Branched.as("b"));
            Map<String, KStream<String, String>> inner = parts.get("outer-a").split(Named.as("inner-"))
                .branch((k, v) -> true, Branched.as("a"))
                .defaultBranch(Branched.as("b"));
            inner.get("inner-a").to("out");
            inner.get("inner-b").to("out");
        });
        dsl("split and merge", b -> {
            Map<String, KStream<String, String>> parts = stream(b, "in").split(Named.as("s-"))
                .branch((k, v) -> true, Branched.as("a"))
                .branch((k, v) -> true, Branched.as("b"))
                .defaultBranch(Branched.as("c"));
            parts.get("s-a").mapValues(v -> v).merge(parts.get("s-b")).merge(parts.get("s-c").peek((k, v) -> { })).to("out");
        });
    }

    private static void repartitions() {
        dsl("repartition", b -> stream(b, "in").repartition().to("out"));
        dsl("repartition named", b -> stream(b, "in").repartition(Repartitioned.as("by-user")).to("out"));
        dsl("repartition with partitions", b ->
            stream(b, "in").repartition(Repartitioned.<String, String>numberOfPartitions(4)).to("out"));
        dsl("repartition named with partitions", b ->
            stream(b, "in").repartition(Repartitioned.<String, String>as("by-user").withNumberOfPartitions(4)).to("out"));
        dsl("repartition of a changed key", b -> rekeyed(b, "in").repartition().groupByKey().count());
        dsl("repartition twice", b -> stream(b, "in").repartition().mapValues(v -> v).repartition().to("out"));
        dsl("repartition name with the suffix", b -> stream(b, "in").repartition(Repartitioned.as("x-repartition")).to("out"));
    }

    private static void toTable() {
        dsl("to table", b -> stream(b, "in").toTable());
        dsl("to table named", b -> stream(b, "in").toTable(Named.as("rows")));
        dsl("to table with store", b -> stream(b, "in").toTable(Materialized.as("kept")));
        dsl("to table named with store", b -> stream(b, "in").toTable(Named.as("rows"), Materialized.as("kept")));
        dsl("to table with unnamed store", b -> stream(b, "in").toTable(unnamed()));
        dsl("to table of a changed key", b -> rekeyed(b, "in").toTable().toStream().to("out"));
        dsl("to table of a changed key named", b -> rekeyed(b, "in").toTable(Named.as("rows")).toStream().to("out"));
        dsl("to table of a changed key with store", b -> rekeyed(b, "in").toTable(Materialized.as("kept")));
        dsl("to table needed", b -> stream(b, "in").toTable().groupBy(KeyValue::pair).count());
    }

    private static void aggregations() {
        dsl("count", b -> grouped(b).count().toStream().to("out"));
        dsl("count named", b -> grouped(b).count(Named.as("counted")));
        dsl("count with store", b -> grouped(b).count(Materialized.as("counts")));
        dsl("count named with store", b -> grouped(b).count(Named.as("counted"), Materialized.as("counts")));
        dsl("count with unnamed store", b -> grouped(b).count(unnamedCount()).toStream().to("out"));
        dsl("reduce", b -> grouped(b).reduce(Descriptions::both).toStream().to("out"));
        dsl("reduce with store", b -> grouped(b).reduce(Descriptions::both, Materialized.as("kept")));
        dsl("reduce named with store", b -> grouped(b).reduce(Descriptions::both, Named.as("reduced"), Materialized.as("kept")));
        dsl("reduce with unnamed store", b -> grouped(b).reduce(Descriptions::both, unnamed()));
        dsl("aggregate", b -> grouped(b).aggregate(() -> "", (k, v, a) -> a + v).toStream().to("out"));
        dsl("aggregate with store", b -> grouped(b).aggregate(() -> "", (k, v, a) -> a + v, Materialized.as("kept")));
        dsl("aggregate named with store", b ->
            grouped(b).aggregate(() -> "", (k, v, a) -> a + v, Named.as("folded"), Materialized.as("kept")));
        dsl("aggregate with unnamed store", b -> grouped(b).aggregate(() -> "", (k, v, a) -> a + v, unnamed()));
        dsl("group by", b -> stream(b, "in").groupBy((k, v) -> v).count().toStream().to("out"));
        dsl("group by named", b -> stream(b, "in").groupBy((k, v) -> v, Grouped.as("by-value")).count().toStream().to("out"));
        dsl("group by with store", b -> stream(b, "in").groupBy((k, v) -> v).count(Materialized.as("counts")));
        dsl("group by named with store", b ->
            stream(b, "in").groupBy((k, v) -> v, Grouped.as("by-value")).count(Materialized.as("counts")));
        dsl("group by with unnamed store", b -> stream(b, "in").groupBy((k, v) -> v).count(unnamedCount()));
        dsl("group by, reduce", b -> stream(b, "in").groupBy((k, v) -> v).reduce(Descriptions::both));
        dsl("group by, aggregate", b -> stream(b, "in").groupBy((k, v) -> v).aggregate(() -> "", (k, v, a) -> a));
        dsl("group by key of a changed key", b -> rekeyed(b, "in").groupByKey().count());
        dsl("group by key of a changed key named", b -> rekeyed(b, "in").groupByKey(Grouped.as("grouped")).count());
        dsl("group by key named without need", b -> stream(b, "in").groupByKey(Grouped.as("grouped")).count());
        dsl("two aggregations of a group", b -> {
            KGroupedStream<String, String> group = stream(b, "in").groupBy((k, v) -> v);
            group.count();
            group.reduce(Descriptions::both);
        });
        dsl("two aggregations of a named group", b -> {
            KGroupedStream<String, String> group = stream(b, "in").groupBy((k, v) -> v, Grouped.as("shared"));
            group.count();
            group.reduce(Descriptions::both);
            group.windowedBy(TUMBLING).count();
        });
        dsl("two groups of a changed key", b -> {
            KStream<String, String> in = rekeyed(b, "in");
            in.groupByKey().count();
            in.groupByKey().reduce(Descriptions::both);
        });
    }

    private static void windows() {
        dsl("tumbling count", b -> grouped(b).windowedBy(TUMBLING).count().toStream().to("out"));
        dsl("tumbling count with store", b -> grouped(b).windowedBy(TUMBLING).count(Materialized.as("counts")));
        dsl("tumbling count named with store", b ->
            grouped(b).windowedBy(TUMBLING).count(Named.as("counted"), Materialized.as("counts")));
        dsl("tumbling count named", b -> grouped(b).windowedBy(TUMBLING).count(Named.as("counted")));
        dsl("tumbling count with unnamed store", b ->
            grouped(b).windowedBy(TUMBLING).count(Materialized.with(Serdes.String(), Serdes.Long())));
        dsl("tumbling reduce", b -> grouped(b).windowedBy(TUMBLING).reduce(Descriptions::both));
        dsl("tumbling reduce named", b -> grouped(b).windowedBy(TUMBLING).reduce(Descriptions::both, Named.as("reduced")));
        dsl("tumbling aggregate", b -> grouped(b).windowedBy(TUMBLING).aggregate(() -> "", (k, v, a) -> a));
        dsl("tumbling aggregate named", b ->
            grouped(b).windowedBy(TUMBLING).aggregate(() -> "", (k, v, a) -> a, Named.as("folded")));
        dsl("tumbling aggregate with unnamed store", b ->
            grouped(b).windowedBy(TUMBLING).aggregate(() -> "", (k, v, a) -> a, unnamed()));
        dsl("hopping count", b -> grouped(b).windowedBy(TUMBLING.advanceBy(Duration.ofMillis(100))).count());
        dsl("unlimited count", b -> grouped(b).windowedBy(UnlimitedWindows.of()).count());
        dsl("sliding count", b -> grouped(b).windowedBy(SLIDING).count());
        dsl("sliding count with unnamed store", b ->
            grouped(b).windowedBy(SLIDING).count(Materialized.with(Serdes.String(), Serdes.Long())));
        dsl("sliding reduce", b -> grouped(b).windowedBy(SLIDING).reduce(Descriptions::both));
        dsl("sliding aggregate named with store", b ->
            grouped(b).windowedBy(SLIDING).aggregate(() -> "", (k, v, a) -> a, Named.as("folded"), Materialized.as("kept")));
        dsl("session count", b -> grouped(b).windowedBy(SESSIONS).count());
        dsl("session count with store", b -> grouped(b).windowedBy(SESSIONS).count(Materialized.as("counts")));
        dsl("session count named", b -> grouped(b).windowedBy(SESSIONS).count(Named.as("counted")));
        dsl("session count with unnamed store", b ->
            grouped(b).windowedBy(SESSIONS).count(Materialized.with(Serdes.String(), Serdes.Long())));
        dsl("session reduce", b -> grouped(b).windowedBy(SESSIONS).reduce(Descriptions::both));
        dsl("session aggregate", b -> grouped(b).windowedBy(SESSIONS).aggregate(() -> "", (k, v, a) -> a, (k, x, y) -> x));
        dsl("session aggregate named", b -> grouped(b).windowedBy(SESSIONS)
            .aggregate(() -> "", (k, v, a) -> a, (k, x, y) -> x, Named.as("folded")));
        dsl("group by, tumbling count", b -> stream(b, "in").groupBy((k, v) -> v).windowedBy(TUMBLING).count());
        dsl("group by named, session count with store", b ->
            stream(b, "in").groupBy((k, v) -> v, Grouped.as("g")).windowedBy(SESSIONS).count(Materialized.as("counts")));
        dsl("emit on close, tumbling", b ->
            grouped(b).windowedBy(TUMBLING).emitStrategy(EmitStrategy.onWindowClose()).count().toStream().to("out"));
        dsl("emit on close, sliding", b ->
            grouped(b).windowedBy(SLIDING).emitStrategy(EmitStrategy.onWindowClose()).count());
        dsl("emit on close, session named", b ->
            grouped(b).windowedBy(SESSIONS).emitStrategy(EmitStrategy.onWindowClose()).count(Named.as("counted")));
        dsl("emit on update", b -> grouped(b).windowedBy(TUMBLING).emitStrategy(EmitStrategy.onWindowUpdate()).count());
    }

    private static void suppress() {
        dsl("suppress until window closes", b -> grouped(b).windowedBy(TUMBLING).count()
            .suppress(Suppressed.untilWindowCloses(BufferConfig.unbounded())).toStream().to("out"));
        dsl("suppress until window closes named", b -> grouped(b).windowedBy(TUMBLING).count()
            .suppress(Suppressed.untilWindowCloses(BufferConfig.unbounded()).withName("held")).toStream().to("out"));
        dsl("suppress until time limit", b ->
            table(b, "in").suppress(Suppressed.untilTimeLimit(SECOND, BufferConfig.maxRecords(10))).toStream().to("out"));
        dsl("suppress until time limit named", b -> table(b, "in")
            .suppress(Suppressed.<String>untilTimeLimit(SECOND, BufferConfig.maxRecords(10)).withName("held")).toStream().to("out"));
        dsl("suppress, then filter and join", b -> {
            KTable<String, String> held = table(b, "a").suppress(Suppressed.untilTimeLimit(SECOND, BufferConfig.unbounded()));
            held.filter((k, v) -> true).join(table(b, "b"), Descriptions::both).toStream().to("out");
        });
        dsl("stream joined with suppressed", b -> {
            KTable<String, String> held = table(b, "a").suppress(Suppressed.untilTimeLimit(SECOND, BufferConfig.unbounded()));
            stream(b, "s").join(held, Descriptions::both).to("out");
        });
    }

    private static void cogroup() {
        dsl("cogroup", b -> two(b).aggregate(() -> "").toStream().to("out"));
        dsl("cogroup of one", b -> grouped(b).<String>cogroup((k, v, a) -> a).aggregate(() -> ""));
        dsl("cogroup named", b -> two(b).aggregate(() -> "", Named.as("together")));
        dsl("cogroup with store", b -> two(b).aggregate(() -> "", Materialized.as("kept")));
        dsl("cogroup named with store", b -> two(b).aggregate(() -> "", Named.as("together"), Materialized.as("kept")));
        dsl("cogroup with unnamed store", b -> two(b).aggregate(() -> "", unnamed()));
        dsl("cogroup tumbling", b -> two(b).windowedBy(TUMBLING).aggregate(() -> "").toStream().to("out"));
        dsl("cogroup sliding", b -> two(b).windowedBy(SLIDING).aggregate(() -> ""));
        dsl("cogroup sessions", b -> two(b).windowedBy(SESSIONS).aggregate(() -> "", (k, x, y) -> x));
        dsl("cogroup sessions named with store", b -> two(b).windowedBy(SESSIONS)
            .aggregate(() -> "", (k, x, y) -> x, Named.as("together"), Materialized.as("kept")));
        dsl("cogroup of changed keys", b -> rekeyed(b, "a").groupByKey().<String>cogroup((k, v, a) -> a)
            .cogroup(rekeyed(b, "b").groupByKey(Grouped.as("gb")), (k, v, a) -> a).aggregate(() -> ""));
        dsl("cogroup of changed keys named", b -> rekeyed(b, "a").groupByKey(Grouped.as("ga")).<String>cogroup((k, v, a) -> a)
            .cogroup(stream(b, "b").groupBy((k, v) -> v, Grouped.as("gb")), (k, v, a) -> a)
            .cogroup(stream(b, "c").groupByKey(), (k, v, a) -> a)
            .aggregate(() -> "", Named.as("together"), Materialized.as("kept")));
        dsl("cogroup of one changed key", b -> stream(b, "a").groupByKey().<String>cogroup((k, v, a) -> a)
            .cogroup(rekeyed(b, "b").groupByKey(), (k, v, a) -> a).windowedBy(TUMBLING).aggregate(() -> ""));
    }

    private static CogroupedKStream<String, String> two(StreamsBuilder b) {
        return stream(b, "a").groupByKey().<String>cogroup((k, v, a) -> a)
            .cogroup(stream(b, "b").groupByKey(), (k, v, a) -> a);
    }

    private static StreamJoined<String, String, String> joined(String name) {
        return StreamJoined.with(Serdes.String(), Serdes.String(), Serdes.String()).withName(name);
    }

    private static void streamStreamJoins() {
        dsl("stream join", b -> stream(b, "a").join(stream(b, "b"), Descriptions::both, WINDOW).to("out"));
        dsl("stream left join", b -> stream(b, "a").leftJoin(stream(b, "b"), Descriptions::both, WINDOW).to("out"));
        dsl("stream outer join", b -> stream(b, "a").outerJoin(stream(b, "b"), Descriptions::both, WINDOW).to("out"));
        dsl("stream join named", b -> stream(b, "a").join(stream(b, "b"), Descriptions::both, WINDOW, joined("j")).to("out"));
        dsl("stream left join named", b ->
            stream(b, "a").leftJoin(stream(b, "b"), Descriptions::both, WINDOW, joined("j")).to("out"));
        dsl("stream outer join named", b ->
            stream(b, "a").outerJoin(stream(b, "b"), Descriptions::both, WINDOW, joined("j")).to("out"));
        dsl("stream join with grace", b -> stream(b, "a").leftJoin(stream(b, "b"), Descriptions::both,
            JoinWindows.ofTimeDifferenceAndGrace(SECOND, SECOND)).to("out"));
        dsl("stream join with asymmetric windows", b -> stream(b, "a").outerJoin(stream(b, "b"), Descriptions::both,
            WINDOW.before(Duration.ofMillis(5)).after(Duration.ofMillis(10))).to("out"));
        dsl("stream join of changed keys", b ->
            rekeyed(b, "a").join(rekeyed(b, "b"), Descriptions::both, WINDOW).to("out"));
        dsl("stream join of changed keys named", b ->
            rekeyed(b, "a").join(rekeyed(b, "b"), Descriptions::both, WINDOW, joined("j")).to("out"));
        dsl("stream left join of a changed key", b ->
            rekeyed(b, "a").leftJoin(stream(b, "b"), Descriptions::both, WINDOW).to("out"));
        dsl("stream outer join of a changed other key named", b ->
            stream(b, "a").outerJoin(rekeyed(b, "b"), Descriptions::both, WINDOW, joined("j")).to("out"));
        dsl("stream joined with itself", b -> {
            KStream<String, String> in = stream(b, "in");
            in.join(in, Descriptions::both, WINDOW).to("out");
        });
        dsl("changed key joined with itself", b -> {
            KStream<String, String> in = rekeyed(b, "in");
            in.join(in, Descriptions::both, WINDOW).to("out");
        });
        dsl("changed key joined twice", b -> {
            KStream<String, String> in = rekeyed(b, "in");
            in.join(stream(b, "b"), Descriptions::both, WINDOW).to("one");
            in.join(stream(b, "c"), Descriptions::both, WINDOW).to("two");
        });
        dsl("changed key joined twice named", b -> {
            KStream<String, String> in = rekeyed(b, "in");
            in.join(stream(b, "b"), Descriptions::both, WINDOW, joined("first")).to("one");
            in.join(stream(b, "c"), Descriptions::both, WINDOW, joined("second")).to("two");
        });
        dsl("changed key joined on the other side twice", b -> {
            KStream<String, String> in = rekeyed(b, "in");
            stream(b, "b").leftJoin(in, Descriptions::both, WINDOW).to("one");
            stream(b, "c").outerJoin(in, Descriptions::both, WINDOW).to("two");
        });
        dsl("changed key joined twice, named then unnamed", b -> {
            KStream<String, String> in = rekeyed(b, "in");
            in.join(stream(b, "b"), Descriptions::both, WINDOW, joined("first")).to("one");
            in.join(stream(b, "c"), Descriptions::both, WINDOW).to("two");
        });
        dsl("changed key joined twice, unnamed then named", b -> {
            KStream<String, String> in = rekeyed(b, "in");
            in.join(stream(b, "b"), Descriptions::both, WINDOW).to("one");
            in.join(stream(b, "c"), Descriptions::both, WINDOW, joined("second")).to("two");
            in.join(stream(b, "d"), Descriptions::both, WINDOW).to("three");
        });
        dsl("join of joins", b -> stream(b, "a").join(stream(b, "b"), Descriptions::both, WINDOW)
            .join(stream(b, "c"), Descriptions::both, WINDOW).selectKey((k, v) -> v)
            .leftJoin(stream(b, "d"), Descriptions::both, WINDOW).to("out"));
    }

    private static void streamTableJoins() {
        dsl("stream table join", b -> stream(b, "s").join(table(b, "t"), Descriptions::both).to("out"));
        dsl("stream table left join", b -> stream(b, "s").leftJoin(table(b, "t"), Descriptions::both).to("out"));
        dsl("stream table join named", b ->
            stream(b, "s").join(table(b, "t"), Descriptions::both, Joined.as("j")).to("out"));
        dsl("stream table join with store", b -> stream(b, "s")
            .join(b.<String, String>table("t", Materialized.as("rows")), Descriptions::both).to("out"));
        dsl("stream table join of a changed key", b -> rekeyed(b, "s").join(table(b, "t"), Descriptions::both).to("out"));
        dsl("stream table left join of a changed key named", b ->
            rekeyed(b, "s").leftJoin(table(b, "t"), Descriptions::both, Joined.as("j")).to("out"));
        dsl("changed key joined with two tables", b -> {
            KStream<String, String> in = rekeyed(b, "s");
            in.join(table(b, "t"), Descriptions::both).to("one");
            in.leftJoin(table(b, "u"), Descriptions::both).to("two");
        });
        dsl("stream joined with a filtered table", b ->
            stream(b, "s").join(table(b, "t").filter((k, v) -> true), Descriptions::both).to("out"));
        dsl("stream joined with a mapped, kept table", b ->
            stream(b, "s").join(table(b, "t").mapValues(v -> v, Materialized.as("kept")), Descriptions::both).to("out"));
        dsl("stream joined with an aggregate", b -> {
            KStream<String, String> in = stream(b, "s");
            in.join(in.groupByKey().count(), (v, count) -> v + count).to("out");
        });
        dsl("stream joined with a joined table", b ->
            stream(b, "s").join(table(b, "t").join(table(b, "u"), Descriptions::both), Descriptions::both).to("out"));
        dsl("stream joined with a stream as a table", b ->
            stream(b, "s").join(stream(b, "t").toTable(), Descriptions::both).to("out"));
        dsl("stream global join", b -> {
            GlobalKTable<String, String> rows = b.globalTable("g");
            stream(b, "s").join(rows, (k, v) -> v, Descriptions::both).to("out");
        });
        dsl("stream global left join", b -> {
            GlobalKTable<String, String> rows = b.globalTable("g");
            stream(b, "s").leftJoin(rows, (k, v) -> v, Descriptions::both).to("out");
        });
        dsl("stream global join named with store", b -> {
            GlobalKTable<String, String> rows = b.globalTable("g", Materialized.as("rows"));
            stream(b, "s").join(rows, (k, v) -> v, Descriptions::both, Named.as("j")).to("out");
        });
        dsl("stream global join of a changed key", b -> {
            KStream<String, String> in = rekeyed(b, "s");
            GlobalKTable<String, String> rows = b.globalTable("g");
            in.join(rows, (k, v) -> v, Descriptions::both).groupByKey().count().toStream().to("out");
        });
    }

    private static void tables() {
        dsl("table filter", b -> table(b, "in").filter((k, v) -> true).toStream().to("out"));
        dsl("table filter not", b -> table(b, "in").filterNot((k, v) -> true).toStream().to("out"));
        dsl("table filter with store", b -> table(b, "in").filter((k, v) -> true, Materialized.as("kept")).toStream().to("out"));
        dsl("table filter with unnamed store", b -> table(b, "in").filter((k, v) -> true, unnamed()).toStream().to("out"));
        dsl("table filter named", b -> table(b, "in").filter((k, v) -> true, Named.as("some")).toStream().to("out"));
        dsl("table filter named with store", b ->
            table(b, "in").filter((k, v) -> true, Named.as("some"), Materialized.as("kept")).toStream().to("out"));
        dsl("table filter of a kept table", b ->
            b.<String, String>table("in", Materialized.as("rows")).filter((k, v) -> true).toStream().to("out"));
        dsl("table map values", b -> table(b, "in").mapValues(v -> v).toStream().to("out"));
        dsl("table map values with store", b -> table(b, "in").mapValues(v -> v, Materialized.as("kept")).toStream().to("out"));
        dsl("table map values with unnamed store", b -> table(b, "in").mapValues(v -> v, unnamed()).toStream().to("out"));
        dsl("table map values named", b -> table(b, "in").mapValues((k, v) -> v, Named.as("mapped")).toStream().to("out"));
        dsl("table map values named with store", b ->
            table(b, "in").mapValues(v -> v, Named.as("mapped"), Materialized.as("kept")).toStream().to("out"));
        dsl("table chain", b -> table(b, "in").filter((k, v) -> true).mapValues(v -> v).filterNot((k, v) -> true)
            .mapValues(v -> v, Materialized.as("kept")).filter((k, v) -> true).toStream().to("out"));
        dsl("to stream named", b -> table(b, "in").toStream(Named.as("updates")).to("out"));
        dsl("to stream with key", b -> table(b, "in").toStream((k, v) -> v).groupByKey().count());
        dsl("to stream with key named", b -> table(b, "in").toStream((k, v) -> v, Named.as("updates")).to("out"));
    }

    private static KGroupedTable<String, String> groupedTable(StreamsBuilder b) {
        return table(b, "in").groupBy((k, v) -> KeyValue.pair(v, k));
    }

    private static KGroupedTable<String, String> namedGroup(StreamsBuilder b) {
        return table(b, "in").groupBy((k, v) -> KeyValue.pair(v, k), Grouped.as("by-value"));
    }

    private static void tableAggregations() {
        dsl("grouped table count", b -> groupedTable(b).count().toStream().to("out"));
        dsl("grouped table count named", b -> groupedTable(b).count(Named.as("counted")).toStream().to("out"));
        dsl("grouped table count with store", b -> groupedTable(b).count(Materialized.as("counts")).toStream().to("out"));
        dsl("grouped table count with unnamed store", b -> groupedTable(b).count(unnamedCount()).toStream().to("out"));
        dsl("grouped table count named with store", b ->
            groupedTable(b).count(Named.as("counted"), Materialized.as("counts")).toStream().to("out"));
        dsl("named grouped table count", b -> namedGroup(b).count().toStream().to("out"));
        dsl("named grouped table count named with store", b ->
            namedGroup(b).count(Named.as("counted"), Materialized.as("counts")).toStream().to("out"));
        dsl("grouped table reduce", b -> groupedTable(b).reduce(Descriptions::both, Descriptions::both));
        dsl("grouped table reduce named with store", b ->
            groupedTable(b).reduce(Descriptions::both, Descriptions::both, Named.as("reduced"), Materialized.as("kept")));
        dsl("grouped table reduce with unnamed store", b ->
            groupedTable(b).reduce(Descriptions::both, Descriptions::both, unnamed()));
        dsl("grouped table aggregate", b -> groupedTable(b).aggregate(() -> "", (k, v, a) -> a, (k, v, a) -> a));
        dsl("grouped table aggregate named", b ->
            groupedTable(b).aggregate(() -> "", (k, v, a) -> a, (k, v, a) -> a, Named.as("folded")));
        dsl("two aggregations of a grouped table", b -> {
            KGroupedTable<String, String> group = groupedTable(b);
            group.count();
            group.reduce(Descriptions::both, Descriptions::both);
        });
        dsl("two aggregations of a named grouped table", b -> {
            KGroupedTable<String, String> group = namedGroup(b);
            group.count();
            group.reduce(Descriptions::both, Descriptions::both);
        });
    }

    private static void tableJoins() {
        dsl("table join", b -> table(b, "a").join(table(b, "b"), Descriptions::both).toStream().to("out"));
        dsl("table left join", b -> table(b, "a").leftJoin(table(b, "b"), Descriptions::both).toStream().to("out"));
        dsl("table outer join", b -> table(b, "a").outerJoin(table(b, "b"), Descriptions::both).toStream().to("out"));
        dsl("table join with store", b -> table(b, "a").join(table(b, "b"), Descriptions::both, Materialized.as("kept")));
        dsl("table left join with unnamed store", b -> table(b, "a").leftJoin(table(b, "b"), Descriptions::both, unnamed()));
        dsl("table outer join with store", b -> table(b, "a").outerJoin(table(b, "b"), Descriptions::both, Materialized.as("kept")));
        dsl("table join named", b -> table(b, "a").join(table(b, "b"), Descriptions::both, Named.as("j")).toStream().to("out"));
        dsl("table left join named with store", b ->
            table(b, "a").leftJoin(table(b, "b"), Descriptions::both, Named.as("j"), Materialized.as("kept")));
        dsl("table outer join named", b -> table(b, "a").outerJoin(table(b, "b"), Descriptions::both, Named.as("j")));
        dsl("table join of kept tables", b -> b.<String, String>table("a", Materialized.as("as"))
            .join(b.<String, String>table("b", Materialized.as("bs")), Descriptions::both).toStream().to("out"));
        dsl("table join of derived tables", b -> table(b, "a").filter((k, v) -> true)
            .join(table(b, "b").mapValues(v -> v), Descriptions::both).toStream().to("out"));
        dsl("table join of three", b -> table(b, "a").join(table(b, "b"), Descriptions::both)
            .leftJoin(table(b, "c"), Descriptions::both).toStream().to("out"));
        dsl("table join of three with store", b -> table(b, "a").join(table(b, "b"), Descriptions::both, Materialized.as("kept"))
            .outerJoin(table(b, "c"), Descriptions::both).toStream().to("out"));
        dsl("table joined with itself", b -> {
            KTable<String, String> rows = table(b, "a");
            rows.join(rows, Descriptions::both).toStream().to("out");
        });
        dsl("table joined with its own filter", b -> {
            KTable<String, String> rows = table(b, "a");
            rows.leftJoin(rows.filter((k, v) -> true), Descriptions::both).toStream().to("out");
        });
        dsl("table join of aggregates", b -> grouped(b).count()
            .join(stream(b, "b").groupBy((k, v) -> v).count(), Long::sum).toStream().to("out"));
    }

    private static void foreignKeyJoins() {
        dsl("foreign key join", b ->
            table(b, "a").join(table(b, "b"), v -> v, Descriptions::both).toStream().to("out"));
        dsl("foreign key left join", b ->
            table(b, "a").leftJoin(table(b, "b"), v -> v, Descriptions::both).toStream().to("out"));
        dsl("foreign key join named", b ->
            table(b, "a").join(table(b, "b"), v -> v, Descriptions::both, TableJoined.as("fk")).toStream().to("out"));
        dsl("foreign key join with store", b -> table(b, "a")
            .join(table(b, "b"), v -> v, Descriptions::both, Materialized.as("kept")).toStream().to("out"));
        dsl("foreign key left join named with store", b -> table(b, "a")
            .leftJoin(table(b, "b"), v -> v, Descriptions::both, TableJoined.as("fk"), Materialized.as("kept")).toStream().to("out"));
        dsl("foreign key join with unnamed store", b -> table(b, "a")
            .join(table(b, "b"), v -> v, Descriptions::both, unnamed()).toStream().to("out"));
        dsl("foreign key join of kept tables", b -> b.<String, String>table("a", Materialized.as("as"))
            .join(b.<String, String>table("b", Materialized.as("bs")), v -> v, Descriptions::both).toStream().to("out"));
        dsl("foreign key join of derived tables", b -> table(b, "a").filter((k, v) -> true)
            .join(table(b, "b").mapValues(v -> v), v -> v, Descriptions::both).filter((k, v) -> true).toStream().to("out"));
        dsl("foreign key join of a table with itself", b -> {
            KTable<String, String> rows = table(b, "a");
            rows.join(rows, v -> v, Descriptions::both).toStream().to("out");
        });
        dsl("foreign key join, then grouped", b -> table(b, "a").join(table(b, "b"), v -> v, Descriptions::both)
            .groupBy((k, v) -> KeyValue.pair(v, k)).count().toStream().to("out"));
        dsl("two foreign key joins", b -> table(b, "a").join(table(b, "b"), v -> v, Descriptions::both)
            .leftJoin(table(b, "c"), v -> v, Descriptions::both).toStream().to("out"));
    }

    private static void processors() {
        dsl("process", b -> stream(b, "in").process(supplier()).to("out"));
        dsl("process named", b -> stream(b, "in").process(supplier(), Named.as("mine")).to("out"));
        dsl("process with stores", b -> {
            b.addStateStore(store("one"));
            b.addStateStore(store("two"));
            stream(b, "in").process(supplier(), "one", "two").to("out");
        });
        dsl("process named with stores", b -> {
            b.addStateStore(store("one"));
            stream(b, "in").process(supplier(), Named.as("mine"), "one").to("out");
        });
        dsl("process with a supplied store", b -> stream(b, "in").process(supplier("own")).to("out"));
        dsl("process with two supplied stores named", b ->
            stream(b, "in").process(supplier("own", "other"), Named.as("mine")).to("out"));
        dsl("process values", b -> stream(b, "in").processValues(fixedKey()).to("out"));
        dsl("process values named with stores", b -> {
            b.addStateStore(store("one"));
            stream(b, "in").processValues(fixedKey(), Named.as("mine"), "one").to("out");
        });
        dsl("processors that share a store", b -> {
            b.addStateStore(store("shared"));
            stream(b, "a").process(supplier(), "shared").to("x");
            stream(b, "b").process(supplier(), "shared").to("y");
            stream(b, "c").to("z");
        });
        dsl("process, then count", b -> stream(b, "in").process(supplier()).groupByKey().count());
        dsl("process values, then count", b -> stream(b, "in").processValues(fixedKey()).groupByKey().count());
        dsl("process with a table's store", b -> {
            b.table("t", Materialized.as("rows"));
            stream(b, "s").process(supplier(), "rows").to("out");
        });
        dsl("store nobody uses", b -> {
            b.addStateStore(store("idle"));
            stream(b, "in").to("out");
        });
    }

    private static void processorApi() {
        topology("empty", t -> { });
        topology("source only", t -> t.addSource("source", "in"));
        topology("source, processor, sink", t ->
            t.addSource("source", "in").addProcessor("p", supplier(), "source").addSink("sink", "out", "p"));
        topology("source of several topics", t -> t.addSource("source", "orders", "payments", "a", "b", "topic-17"));
        topology("source of a pattern", t -> t.addSource("source", Pattern.compile("in-\\d+")).addSink("sink", "out", "source"));
        topology("several parents", t -> t.addSource("s1", "a").addSource("s2", "b").addSource("s3", "c")
            .addProcessor("p", supplier(), "s1", "s2", "s3").addSink("sink", "out", "p", "s1"));
        topology("diamond", t -> t.addSource("source", "in").addProcessor("left", supplier(), "source")
            .addProcessor("right", supplier(), "source").addProcessor("bottom", supplier(), "left", "right")
            .addSink("sink", "out", "bottom"));
        topology("shared store", t -> t.addSource("s1", "a").addSource("s2", "b").addSource("s3", "c")
            .addProcessor("p1", supplier(), "s1").addProcessor("p2", supplier(), "s2").addProcessor("p3", supplier(), "s3")
            .addStateStore(store("shared"), "p1", "p3").addSink("sink", "out", "p2"));
        topology("connected later", t -> {
            t.addSource("s1", "a").addSource("s2", "b").addProcessor("p1", supplier(), "s1").addProcessor("p2", supplier(), "s2");
            t.addStateStore(store("one"), "p1").addStateStore(store("two"), "p2");
            t.connectProcessorAndStateStores("p2", "one");
        });
        topology("supplied stores", t ->
            t.addSource("source", "in").addProcessor("p", supplier("alpha", "beta", "gamma"), "source"));
        topology("other kinds of stores", t -> {
            t.addSource("source", "in").addProcessor("p", supplier(), "source");
            t.addStateStore(Stores.windowStoreBuilder(
                Stores.inMemoryWindowStore("windows", SECOND, SECOND, false), Serdes.String(), Serdes.String()), "p");
            t.addStateStore(Stores.sessionStoreBuilder(
                Stores.inMemorySessionStore("sessions", SECOND), Serdes.String(), Serdes.String()), "p");
        });
        topology("sink by record", t -> t.addSource("source", "in")
            .addSink("sink", (TopicNameExtractor<String, String>) (k, v, context) -> v, "source"));
        topology("several sub-topologies", t -> t.addSource("z", "1").addSource("y", "2").addSource("x", "3")
            .addSink("zz", "4", "z").addSink("xx", "5", "x").addSink("yy", "6", "y"));
        topology("names with spaces", t -> t.addSource("the source", "in").addProcessor("count & sum", supplier(), "the source")
            .addSink("the <sink>", "out", "count & sum"));
    }

    private static void composed() {
        dsl("word count", b -> stream(b, "lines").flatMapValues(v -> List.of(v.split(" "))).groupBy((k, v) -> v)
            .count(Materialized.as("counts")).toStream().to("counts-out", Produced.with(Serdes.String(), Serdes.Long())));
        dsl("everything named", b -> {
            KTable<Windowed<String>, Long> counts = b.<String, String>stream("clicks", Consumed.as("clicks"))
                .filter((k, v) -> true, Named.as("valid"))
                .groupBy((k, v) -> v, Grouped.as("by-page"))
                .windowedBy(TUMBLING)
                .count(Named.as("count"), Materialized.as("counts"))
                .suppress(Suppressed.untilWindowCloses(BufferConfig.unbounded()).withName("final"));
            counts.toStream((k, v) -> k.key(), Named.as("by-page-again"))
                .leftJoin(b.<String, String>table("pages", Consumed.as("pages"), Materialized.as("pages-store")),
                    (count, page) -> page + count, Joined.as("with-page"))
                .to("report", Produced.as("report"));
        });
        dsl("wide", b -> {
            KStream<String, String> in = stream(b, "in");
            for (int i = 0; i < 14; i++) {
                KStream<String, String> step = in;
                for (int j = 0; j < i % 4; j++) {
                    step = step.mapValues(v -> v);
                }
                step.to("out-" + i);
            }
        });
        dsl("through user topics", b -> {
            stream(b, "a").mapValues(v -> v).to("b");
            stream(b, "b").groupByKey().count().toStream().to("c");
            stream(b, "c").to("d");
        });
        dsl("joins of all kinds", b -> {
            KStream<String, String> orders = stream(b, "orders");
            KTable<String, String> users = table(b, "users");
            GlobalKTable<String, String> countries = b.globalTable("countries");
            KStream<String, String> enriched = orders.selectKey((k, v) -> v).join(users, Descriptions::both)
                .leftJoin(countries, (k, v) -> v, Descriptions::both);
            enriched.join(stream(b, "payments"), Descriptions::both, WINDOW).to("paid");
            enriched.groupBy((k, v) -> v).windowedBy(SESSIONS).count().toStream().to("sessions");
            users.join(table(b, "addresses"), v -> v, Descriptions::both).toStream().to("addressed");
        });
    }

    /** A topology of the Processor API with random names, parents and stores. */
    private static void random(int seed) {
        Random random = new Random(seed);
        Topology topology = new Topology();
        List<List<Object>> steps = new ArrayList<>();
        List<String> parents = new ArrayList<>();
        List<String> processors = new ArrayList<>();
        int count = 3 + random.nextInt(seed < 20 ? 12 : 35);
        for (int i = 0; i < count; i++) {
            String name = name(random, i);
            int kind = parents.isEmpty() ? 0 : random.nextInt(10);
            if (kind < 2) {
                String[] topics = new String[1 + random.nextInt(random.nextInt(9) == 0 ? 16 : 3)];
                for (int j = 0; j < topics.length; j++) {
                    topics[j] = "topic-" + name(random, i * 100 + j);
                }
                topology.addSource(name, topics);
                steps.add(List.of("source", name, List.of(topics)));
                parents.add(name);
            } else {
                List<String> chosen = new ArrayList<>();
                for (int j = 0; j < 1 + random.nextInt(3); j++) {
                    String parent = parents.get(random.nextInt(parents.size()));
                    if (!chosen.contains(parent)) {
                        chosen.add(parent);
                    }
                }
                if (kind < 8) {
                    topology.addProcessor(name, supplier(), chosen.toArray(new String[0]));
                    steps.add(List.of("processor", name, chosen));
                    parents.add(name);
                    processors.add(name);
                } else {
                    topology.addSink(name, "out-" + i, chosen.toArray(new String[0]));
                    steps.add(List.of("sink", name, "out-" + i, chosen));
                }
            }
        }
        int stores = processors.isEmpty() ? 0 : random.nextInt(random.nextInt(4) == 0 ? 40 : 5);
        for (int i = 0; i < stores; i++) {
            List<String> users = new ArrayList<>();
            for (int j = 0; j < 1 + random.nextInt(2); j++) {
                String user = processors.get(random.nextInt(Math.min(processors.size(), 3)));
                if (!users.contains(user)) {
                    users.add(user);
                }
            }
            String name = "store-" + name(random, i);
            topology.addStateStore(store(name), users.toArray(new String[0]));
            steps.add(List.of("store", name, users));
        }
        print("random " + seed, topology, steps);
    }

    private static String name(Random random, int number) {
        StringBuilder name = new StringBuilder();
        for (int i = 0; i < 1 + random.nextInt(8); i++) {
            name.append((char) ('a' + random.nextInt(26)));
        }
        return name.append(number).toString();
    }
}
