import com.fasterxml.jackson.annotation.JsonFormat;
import com.fasterxml.jackson.annotation.JsonPropertyOrder;
import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.ObjectReader;
import com.fasterxml.jackson.databind.ObjectWriter;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.time.Duration;
import java.util.Properties;
import java.util.concurrent.CountDownLatch;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.GlobalKTable;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.kstream.TimeWindows;
import org.apache.kafka.streams.kstream.WindowedSerdes;
import org.apache.kafka.streams.state.WindowStore;

/**
 * The work W1 to W5 of benchmarks/workloads.py in Kafka Streams: {@code Peer <JSON object>}.
 *
 * <p>Values are typed records, which Jackson reads and writes faster than trees.
 */
public final class Peer {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final long WINDOW_MS = 10_000;
    private static final long GRACE_MS = 2_000;

    record Trade(String user, String symbol, double price, int size) {}

    record Worth(String symbol, double value) {}

    record User(String name, String city) {}

    record Enriched(String symbol, int size, String city) {}

    @JsonFormat(shape = JsonFormat.Shape.ARRAY)
    @JsonPropertyOrder({"count", "sum", "least", "greatest"})
    record Statistics(long count, double sum, double least, double greatest) {
        Statistics add(double price) {
            return new Statistics(count + 1, sum + price, Math.min(least, price), Math.max(greatest, price));
        }
    }

    private Peer() {}

    public static void main(String[] arguments) throws Exception {
        JsonNode given = JSON.readTree(arguments[0]);
        KafkaStreams streams = new KafkaStreams(topology(given), settings(given));
        CountDownLatch ended = new CountDownLatch(1);
        streams.setUncaughtExceptionHandler(error -> {
            error.printStackTrace();
            return StreamThreadExceptionResponse.SHUTDOWN_CLIENT;
        });
        streams.setStateListener((now, before) -> {
            if (now == KafkaStreams.State.ERROR || now == KafkaStreams.State.NOT_RUNNING) {
                ended.countDown();
            }
        });
        Runtime.getRuntime().addShutdownHook(new Thread(() -> streams.close(Duration.ofSeconds(5))));
        streams.start();
        ended.await();
        System.exit(1);
    }

    private static Properties settings(JsonNode given) {
        Properties settings = new Properties();
        settings.put(StreamsConfig.APPLICATION_ID_CONFIG, given.get("application").asText());
        settings.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, given.get("address").asText());
        settings.put(StreamsConfig.STATE_DIR_CONFIG, given.get("folder").asText());
        settings.put(StreamsConfig.PROCESSING_GUARANTEE_CONFIG, given.get("guarantee").asText());
        settings.put(StreamsConfig.NUM_STREAM_THREADS_CONFIG, 2);
        settings.put(StreamsConfig.COMMIT_INTERVAL_MS_CONFIG, 100);
        settings.put(StreamsConfig.STATESTORE_CACHE_MAX_BYTES_CONFIG, given.get("cache").asLong());
        // The input is written in transactions, so that all of it is there at one moment.
        settings.put(StreamsConfig.mainConsumerPrefix(ConsumerConfig.ISOLATION_LEVEL_CONFIG), "read_committed");
        return settings;
    }

    private static Topology topology(JsonNode given) {
        StreamsBuilder builder = new StreamsBuilder();
        String sink = given.get("sink").asText();
        KStream<String, Trade> trades =
                builder.stream(given.get("source").asText(), Consumed.with(Serdes.String(), json(Trade.class)));
        switch (given.get("work").asText()) {
            case "W1" -> trades.filter((key, trade) -> trade.price() > 450)
                    .mapValues(trade -> new Worth(trade.symbol(), trade.price() * trade.size()))
                    .to(sink, Produced.with(Serdes.String(), json(Worth.class)));
            case "W2", "W3" -> trades.groupByKey()
                    .count(Materialized.as("counts"))
                    .toStream()
                    .to(sink, Produced.with(Serdes.String(), Serdes.Long()));
            case "W4" -> trades.map((key, trade) -> KeyValue.pair(trade.symbol(), trade.price()))
                    .groupByKey(Grouped.with(Serdes.String(), Serdes.Double()))
                    .windowedBy(TimeWindows.ofSizeAndGrace(Duration.ofMillis(WINDOW_MS), Duration.ofMillis(GRACE_MS)))
                    .aggregate(
                            () -> null,
                            (symbol, price, so) -> so == null ? new Statistics(1, price, price, price) : so.add(price),
                            Materialized.<String, Statistics, WindowStore<Bytes, byte[]>>as("statistics")
                                    .withKeySerde(Serdes.String())
                                    .withValueSerde(json(Statistics.class)))
                    .toStream()
                    .to(
                            sink,
                            Produced.with(
                                    WindowedSerdes.timeWindowedSerdeFrom(String.class, WINDOW_MS),
                                    json(Statistics.class)));
            case "W5" -> {
                GlobalKTable<String, User> users = builder.globalTable(
                        given.get("users").asText(), Consumed.with(Serdes.String(), json(User.class)));
                trades.join(
                                users,
                                (key, trade) -> trade.user(),
                                (trade, user) -> new Enriched(trade.symbol(), trade.size(), user.city()))
                        .to(sink, Produced.with(Serdes.String(), json(Enriched.class)));
            }
            default -> throw new IllegalArgumentException("expected W1 to W5, got " + given.get("work"));
        }
        return builder.build();
    }

    private static <T> Serde<T> json(Class<T> kind) {
        ObjectReader reader = JSON.readerFor(kind);
        ObjectWriter writer = JSON.writerFor(kind);
        return Serdes.serdeFrom(
                (topic, value) -> {
                    try {
                        return value == null ? null : writer.writeValueAsBytes(value);
                    } catch (JsonProcessingException error) {
                        throw new UncheckedIOException(error);
                    }
                },
                (topic, bytes) -> {
                    try {
                        return bytes == null ? null : reader.readValue(bytes);
                    } catch (IOException error) {
                        throw new UncheckedIOException(error);
                    }
                });
    }
}
