"""The broker nodes of a stack, for tests and benches that stop one of them."""

import json
import subprocess


class BrokerNode:
    """One node of a stack's broker. `number` starts at 1."""

    def __init__(self, stack, number: int):
        self._stack = stack
        self.number = number
        self.process = "broker" if number == 1 else f"broker-{number}"
        suffix = self.process.removeprefix("broker")
        self.name = f"heliograph-{stack.port_base}{suffix}@localhost"
        self._command = stack.state / f"rabbitmqctl{suffix}"

    def __repr__(self) -> str:
        return self.name

    @property
    def pid(self) -> int:
        return int(self._stack.service("pid", self.process))

    @property
    def is_running(self) -> bool:
        try:
            return self.pid > 0
        except RuntimeError:
            return False

    def rabbitmqctl(self, *arguments: str, timeout: float = 60) -> str:
        """Runs rabbitmqctl on this node and returns its output."""
        command = [self._command, "-q", *arguments]
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=timeout)
        if done.returncode != 0:
            raise RuntimeError(f"rabbitmqctl {arguments} on {self.name}: {done.stderr[-2000:]}")
        return done.stdout

    def stop(self) -> None:
        self._stack.service("stop", self.process)

    def kill(self) -> None:
        """Sends SIGKILL."""
        self._stack.service("kill", self.process)

    def start(self) -> None:
        """Returns when the node accepts connections."""
        self._stack.service("start", self.process)


def broker_nodes(stack) -> list[BrokerNode]:
    count = int((stack.state / "servers" / "nodes").read_text())
    return [BrokerNode(stack, number) for number in range(1, count + 1)]


def queues(stack, *columns: str) -> list[dict]:
    """The queues of the stack's virtual host, as a running node reports them."""
    node = next(node for node in broker_nodes(stack) if node.is_running)
    return json.loads(node.rabbitmqctl("list_queues", "-p", "heliograph", "--formatter", "json", *columns))


def queue_leader(stack, queue: str) -> BrokerNode | None:
    """The node of a quorum queue's leader; None during an election."""
    leaders = {row["name"]: row.get("leader") for row in queues(stack, "name", "leader")}
    return next((node for node in broker_nodes(stack) if node.name == leaders[queue]), None)
