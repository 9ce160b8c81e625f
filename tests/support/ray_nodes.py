"""A process that holds the nodes of a Ray cluster: see `tests.support.ray_cluster`.

Each line of its input is an order in JSON, ``["add", name, environment]`` or ``["kill", name]``,
answered by one line. When the input ends, so does the cluster; should this process be killed, Ray's
go with it, by the system's hand.
"""

import json
import os
import sys

from ray.cluster_utils import Cluster

from pi3nn import processes

SMALL = {"object_store_memory": 100_000_000, "node_ip_address": "127.0.0.1"}


def main() -> None:
    processes.end_with(os.getppid())
    head = {"num_cpus": 0, "include_dashboard": True, "dashboard_port": 0}
    cluster = Cluster(initialize_head=True, head_node_args={**SMALL, **head})
    nodes = {}
    print(json.dumps([cluster.address, f"http://{cluster.webui_url}"]), flush=True)
    for line in sys.stdin:
        verb, name, *environment = json.loads(line)
        if verb == "add":
            nodes[name] = cluster.add_node(num_cpus=1, env_vars=environment[0], **SMALL)
        else:
            cluster.remove_node(nodes.pop(name), allow_graceful=False)
        print(json.dumps(name), flush=True)
    cluster.shutdown()


if __name__ == "__main__":
    main()
