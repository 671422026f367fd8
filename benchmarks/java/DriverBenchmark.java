import java.nio.file.Files;
import java.time.Duration;
import java.time.Instant;
import java.util.Properties;
import java.util.Random;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.serialization.StringSerializer;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.TestInputTopic;
import org.apache.kafka.streams.TopologyTestDriver;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.kstream.Suppressed;
import org.apache.kafka.streams.kstream.TimeWindows;

/**
 * Records per second of a tumbling count with suppress through Kafka Streams' own test driver.
 * Arguments: number of records, number of keys. Prints the rate of the last two thirds, when the code is warm.
 */
public final class DriverBenchmark {
    private DriverBenchmark() { }

    public static void main(String[] args) throws Exception {
        int records = Integer.parseInt(args[0]);
        int keys = Integer.parseInt(args[1]);
        StreamsBuilder builder = new StreamsBuilder();
        builder.stream("in", Consumed.with(Serdes.String(), Serdes.String()))
            .groupByKey(Grouped.with(Serdes.String(), Serdes.String()))
            .windowedBy(TimeWindows.ofSizeWithNoGrace(Duration.ofSeconds(10)))
            .count(Materialized.with(Serdes.String(), Serdes.Long()))
            .suppress(Suppressed.untilWindowCloses(Suppressed.BufferConfig.unbounded()))
            .toStream((key, value) -> key.key())
            .to("out", Produced.with(Serdes.String(), Serdes.Long()));
        Properties props = new Properties();
        props.put(StreamsConfig.APPLICATION_ID_CONFIG, "benchmark");
        props.put(StreamsConfig.STATE_DIR_CONFIG, Files.createTempDirectory("driver-benchmark").toString());
        props.put(StreamsConfig.STATESTORE_CACHE_MAX_BYTES_CONFIG, 0L);
        Random random = new Random(7);
        try (TopologyTestDriver driver = new TopologyTestDriver(builder.build(), props, Instant.ofEpochMilli(0))) {
            TestInputTopic<String, String> in = driver.createInputTopic("in", new StringSerializer(), new StringSerializer());
            long warm = records / 3;
            long started = System.nanoTime();
            for (int i = 0; i < records; i++) {
                if (i == warm) {
                    started = System.nanoTime();
                }
                in.pipeInput("key-" + random.nextInt(keys), "value-" + i % 10000, (long) i);
            }
            double seconds = (System.nanoTime() - started) / 1e9;
            System.out.printf("%.0f%n", (records - warm) / seconds);
        }
    }
}
