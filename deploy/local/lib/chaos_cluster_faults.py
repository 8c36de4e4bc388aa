"""Faults of single nodes of a broker cluster."""

import signal

from chaos_fault import CONNECTION_LOST, Fault

QUEUE = "rules.events.app.family-portal"


class ClusterFault(Fault):
    """A fault of one node may close no connection, so it may show no signal."""

    nodes = 3
    recovery = 120

    def __init__(self):
        self.down: list = []

    def end(self, stack):
        for node in self.down:
            node.start()
        self.down = []

    @staticmethod
    def leader(stack):
        return stack.queue_leader(QUEUE) or stack.broker_nodes[0]


class LeaderKilled(ClusterFault):
    """SIGKILL of the node that leads a queue of events."""

    name = "cluster-leader-killed"
    numbers = (23,)
    gate = True
    hold = 15

    def begin(self, stack, random):
        node = self.leader(stack)
        self.down.append(node)
        node.kill()
        return {"node": str(node)}


class QuorumLost(ClusterFault):
    """Two nodes stopped: no publish is confirmed until one returns."""

    name = "cluster-quorum-lost"
    numbers = (22,)
    hold = 20
    signals = (CONNECTION_LOST,)

    def begin(self, stack, random):
        self.down = random.sample(stack.broker_nodes, 2)
        for node in self.down:
            node.kill()
        return {"nodes": [str(node) for node in self.down]}


class NodeFrozen(ClusterFault):
    """SIGSTOP of the leader's node, for longer than the nodes' own heartbeats."""

    name = "cluster-node-frozen"
    numbers = (23,)
    hold = 90

    def __init__(self):
        super().__init__()
        self.frozen = None

    def begin(self, stack, random):
        self.frozen = self.leader(stack)
        stack.signal(self.frozen.process, signal.SIGSTOP)
        return {"node": str(self.frozen)}

    def end(self, stack):
        if self.frozen is not None:
            stack.signal(self.frozen.process, signal.SIGCONT)
        self.frozen = None


class NodePartitioned(ClusterFault):
    """A node loses the others: their Erlang connections end, and new ones fail, because the cookies differ."""

    name = "cluster-node-partitioned"
    numbers = (5, 23)
    hold = 45

    def __init__(self):
        super().__init__()
        self.alone = None

    def begin(self, stack, random):
        self.alone = self.leader(stack)
        self.alone.rabbitmqctl(
            "eval", "[begin erlang:set_cookie(Node, chaos), erlang:disconnect_node(Node) end || Node <- nodes()].")
        return {"node": str(self.alone)}

    def end(self, stack):
        if self.alone is None:
            return
        others = ", ".join(f"'{node.name}'" for node in stack.broker_nodes if node.name != self.alone.name)
        self.alone.rabbitmqctl(
            "eval", f"[begin erlang:set_cookie(Node, erlang:get_cookie()), net_kernel:connect_node(Node) end "
                    f"|| Node <- [{others}]].")
        self.alone = None


class RollingRestart(ClusterFault):
    """Each node is stopped and started in turn, as for an upgrade."""

    name = "cluster-rolling-restart"
    numbers = (2, 23)
    hold = 5
    signals = (CONNECTION_LOST,)

    def begin(self, stack, random):
        for node in stack.broker_nodes:
            self.down.append(node)
            node.stop()
            node.start()
            self.down.remove(node)
        return {}


FAULTS: list[Fault] = [LeaderKilled(), QuorumLost(), NodeFrozen(), NodePartitioned(), RollingRestart()]
