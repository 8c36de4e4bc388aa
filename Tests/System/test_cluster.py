"""A broker cluster of three nodes: the loss of the node with the queues' leaders loses no event."""

import json
import os
import signal

import broker_cluster
import pytest

from conftest import further_stack, phones_of
from local_stack import SERVICES, eventually
from test_crashes import PREFETCH, STAGES_OF_A_PUSH
from upstream import ChatEvents, publish_surely

EVENTS = 1500
QUEUE = "rules.events.app.family-portal"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    with further_stack(tmp_path_factory.mktemp("cluster"), "--nodes", "3") as stack:
        yield stack


@pytest.fixture(autouse=True)
def all_nodes_run(cluster):
    """A failed test may leave a node down."""
    for node in cluster.broker_nodes:
        if not node.is_running:
            node.start()


def verify(stack, tmp_path, *options: str) -> tuple[int, str]:
    """Runs `pushctl topology verify` for three members on the list of queues."""
    node = next(node for node in stack.broker_nodes if node.is_running)
    columns = ("list_queues", "-p", "heliograph", "--formatter", "json", "name", "members", "online")
    (tmp_path / "queues.json").write_text(node.rabbitmqctl(*columns))
    return stack.pushctl("topology", "verify", "--members", "3", "--queues", str(tmp_path / "queues.json"), *options)


def test_every_queue_has_three_members(cluster, tmp_path):
    queues = broker_cluster.queues(cluster, "name", "members", "online")
    assert len(queues) > 50
    assert {(len(queue["members"]), len(queue["online"])) for queue in queues} == {(3, 3)}
    status, output = verify(cluster, tmp_path)
    assert (status, "the broker has all" in output) == (0, True), output


def kill_while_publishing(cluster, events, leader) -> None:
    publish_surely(cluster, events.bodies, leader.kill)


def kill_while_catching_up(cluster, events, leader) -> None:
    """All events wait in the queue; the kill is at the first pushes."""
    cluster.service("stop", "rules")
    publish_surely(cluster, events.bodies, lambda: None)
    pid = leader.pid
    cluster.service("start", "rules")
    eventually(events.seen, 60, "the first push")
    # Without a script in between, which takes longer than the stages.
    os.kill(pid, signal.SIGKILL)
    pushes = len(events.seen())
    print(f"{pushes} of {EVENTS} events were pushed at the kill")
    assert pushes < EVENTS, "the kill came too late"


@pytest.mark.parametrize("kill", [kill_while_publishing, kill_while_catching_up])
def test_events_survive_the_loss_of_the_leaders_node(cluster, tmp_path, kill):
    events = ChatEvents(cluster, phones_of(cluster), EVENTS)
    killed = cluster.queue_leader(QUEUE)
    kill(cluster, events, killed)
    # The node is still down: two members suffice.
    extra = events.await_all(120)
    print(json.dumps({"events": EVENTS, "duplicates": extra, "bound": PREFETCH * STAGES_OF_A_PUSH}))
    assert extra <= PREFETCH * STAGES_OF_A_PUSH
    assert cluster.queue_leader(QUEUE).number != killed.number
    for service in SERVICES:
        if service != "provider-simulator":
            cluster.service("ready", service)
    status, output = verify(cluster, tmp_path)
    assert status == 1 and f"the queue {QUEUE} has a member that does not run, on {killed.name}" in output
    killed.start()
    eventually(lambda: verify(cluster, tmp_path)[0] == 0, 60, "the members on the restarted node")


def test_events_wait_while_two_of_three_nodes_are_down(cluster, tmp_path):
    """Without a majority nothing is confirmed, and nothing that was confirmed is lost."""
    events = ChatEvents(cluster, phones_of(cluster), EVENTS)
    others = [node for node in cluster.broker_nodes if node.number != cluster.queue_leader(QUEUE).number]

    def kill_and_start():
        for node in others:
            node.kill()
        others[0].start()

    publish_surely(cluster, events.bodies, kill_and_start)
    extra = events.await_all(120)
    print(json.dumps({"events": EVENTS, "duplicates": extra, "bound": PREFETCH * STAGES_OF_A_PUSH}))
    assert extra <= PREFETCH * STAGES_OF_A_PUSH
    others[1].start()
    eventually(lambda: verify(cluster, tmp_path)[0] == 0, 60, "the members on the restarted node")
