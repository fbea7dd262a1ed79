package tidebench;

import java.util.ServiceLoader;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.runtime.rpc.RpcSystem;
import org.apache.flink.runtime.rpc.RpcSystemLoader;

/** Flink's RPC from the class path, where its classes can be archived; its own loader copies its jar and loads it anew. */
public class Rpc implements RpcSystemLoader {
    @Override
    public int getLoadPriority() {
        return -1; // before Flink's own, which is 0
    }

    @Override
    public RpcSystem loadRpcSystem(Configuration configuration) {
        return ServiceLoader.load(RpcSystem.class).iterator().next();
    }
}
