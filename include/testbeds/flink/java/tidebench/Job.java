package tidebench;

import java.io.File;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.datastream.SingleOutputStreamOperator;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;

/** Any topology, from a JSON file that include/testbeds/flink/job.py writes. Operators come in the order of flow. */
public class Job {
    private static final String SOURCES = "sources";

    public static void main(String[] arguments) throws Exception {
        JsonNode spec = new ObjectMapper().readTree(new File(arguments[0]));
        StreamExecutionEnvironment environment = StreamExecutionEnvironment.getExecutionEnvironment();
        environment.getConfig().enableObjectReuse();
        String folder = spec.get("folder").asText();
        Map<String, List<Edge>> from = new HashMap<>();
        Map<String, List<Edge>> to = new HashMap<>();
        for (JsonNode of : spec.get("edges")) {
            Edge edge = new Edge();
            edge.from = of.get("from").asText();
            edge.to = of.get("to").asText();
            edge.out = of.get("out").asInt();
            edge.in = of.get("in").asInt();
            from.computeIfAbsent(edge.from, k -> new ArrayList<>()).add(edge);
            to.computeIfAbsent(edge.to, k -> new ArrayList<>()).add(edge);
        }
        Map<String, Numbers> numbersOf = numberPaths(spec.get("operators"), to);
        Map<String, List<DataStream<Item>>> into = new HashMap<>();
        for (JsonNode of : spec.get("sources")) {
            String name = of.get("name").asText();
            List<Edge> edges = from.get(name);
            Replay replay = new Replay(name, folder, of.get("schedule").asText(), edges);
            DataStream<Item> stream = environment.fromSource(replay, WatermarkStrategy.noWatermarks(), name)
                .setParallelism(1).setMaxParallelism(1).slotSharingGroup(SOURCES).uid(name);
            for (Edge edge : edges) {
                long path = edge.firstPath;
                DataStream<Item> part = edges.size() == 1 ? stream
                    : stream.filter(item -> item.path == path).setParallelism(1).slotSharingGroup(SOURCES);
                into.computeIfAbsent(edge.to, k -> new ArrayList<>()).add(part);
            }
        }
        for (JsonNode of : spec.get("operators")) {
            String name = of.get("name").asText();
            List<Edge> edges = from.getOrDefault(name, List.of());
            Numbers numbers = numbersOf.get(name);
            Keys keys = !of.has("keys") ? null
                : new Keys(of.get("keys").asInt(), of.get("exponent").asDouble(), spec.get("seed").asLong() * 31 + name.hashCode(), numbers);
            DataStream<Item> all = null;
            for (DataStream<Item> one : into.get(name)) {
                DataStream<Item> dealt = keys == null ? one.rebalance() : one;
                all = all == null ? dealt : all.union(dealt);
            }
            if (keys != null) all = all.keyBy(keys, Types.INT);
            SingleOutputStreamOperator<Item> out = all
                .transform(name, TypeInformation.of(Item.class), new Work(spec, of, edges, numbers, keys))
                .setParallelism(of.get("parallelism").asInt()).setMaxParallelism(spec.get("max_parallelism").asInt())
                .slotSharingGroup(name).uid(name).disableChaining();
            for (Edge edge : edges) into.computeIfAbsent(edge.to, k -> new ArrayList<>()).add(out.getSideOutput(edge.tag()));
        }
        environment.execute(spec.get("name").asText());
    }

    /** Numbers paths from 0, those that end at one operator together. A source is one path. */
    private static Map<String, Numbers> numberPaths(JsonNode operators, Map<String, List<Edge>> to) {
        Map<String, Numbers> numbersOf = new HashMap<>();
        Map<String, Long> pathsTo = new HashMap<>();
        long next = 0;
        for (JsonNode of : operators) {
            String name = of.get("name").asText();
            long first = next;
            for (Edge edge : to.get(name)) {
                edge.firstPath = next;
                edge.paths = pathsTo.getOrDefault(edge.from, 1L);
                next += edge.paths;
            }
            pathsTo.put(name, next - first);
            numbersOf.put(name, new Numbers(first, next - first));
        }
        return numbersOf;
    }
}
