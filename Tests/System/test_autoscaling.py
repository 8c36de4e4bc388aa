"""KEDA's requests to the broker's management API, as `pushctl topology keda` describes them, with the rights of their user."""

import base64
import pathlib
import subprocess
import urllib.parse
import uuid

import pytest
import yaml

import monitoring
from local_stack import eventually
from port_reservation import free_port_base

ROOT = pathlib.Path(__file__).resolve().parents[2]
PASSWORD = uuid.uuid4().hex


@pytest.fixture(scope="module")
def management(stack):
    """The address of the management API, with the user that deploy/kubernetes/README.md creates for KEDA."""
    port = free_port_base()
    rabbitmqctl = [stack.state / "rabbitmqctl", "-q"]
    monitoring.turn_plugin(stack.state, port, "rabbitmq_management")
    try:
        for command in (["add_user", "autoscaler", PASSWORD], ["set_user_tags", "autoscaler", "management"],
                        ["set_permissions", "-p", "heliograph", "autoscaler", "^$", "^$", "^$"]):
            subprocess.run([*rabbitmqctl, *command], stdin=subprocess.DEVNULL, check=True, timeout=180)
        yield f"http://127.0.0.1:{port}"
    finally:
        subprocess.run([*rabbitmqctl, "delete_user", "autoscaler"], stdin=subprocess.DEVNULL, timeout=180)
        monitoring.turn_plugin(stack.state, None)


def headers(user: str, password: str) -> dict[str, str]:
    return {"Authorization": "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()}


def triggers(stack) -> dict[str, list[dict]]:
    code, text = stack.pushctl("topology", "keda")
    assert code == 0, text
    return {one["metadata"]["name"]: one["spec"]["triggers"] for one in yaml.safe_load_all(text)}


def test_keda_finds_the_queues_of_each_stage_with_its_rates_and_may_do_nothing_else(stack, management):
    def ask(trigger: dict) -> list[dict]:
        """The request of KEDA's scaler with `useRegex` (pkg/scalers/rabbitmq_scaler.go)."""
        metadata = trigger["metadata"]
        assert metadata["useRegex"] == metadata["excludeUnacknowledged"] == "true"
        query = urllib.parse.urlencode({"page": 1, "use_regex": "true", "pagination": "false",
                                        "name": metadata["queueName"], "page_size": metadata["pageSize"]})
        status, answer = stack.http(
            "GET", f"{management}/api/queues/heliograph?{query}", headers=headers("autoscaler", PASSWORD))
        assert status == 200 and answer["page_count"] == 1, answer
        return answer["items"]

    status, every = stack.http("GET", f"{management}/api/queues/heliograph", headers=headers("autoscaler", PASSWORD))
    assert status == 200
    work = {one["name"] for one in every if not one["name"].endswith(".dead")
            and not one["name"].startswith(("retry.", "senders."))}
    found = triggers(stack)
    asked: set[str] = set()
    for stage, ours in found.items():
        length, *times = [{one["name"] for one in ask(trigger)} for trigger in ours]
        assert length == {name for name in work if name.startswith(f"{stage}.")}, stage
        assert set.union(*times) == length and sum(map(len, times)) == len(length), stage
        asked |= length
    assert asked == work

    def counted() -> bool:
        """Whether the statistics of a queue have arrived: the API collects them every few seconds."""
        return all("messages_ready" in queue for queue in ask(found["rules"][0]))

    eventually(counted, 30, "the statistics of the queues")
    for method, path in (("GET", "queues/heliograph/rules.outcomes/get"), ("DELETE", "queues/heliograph/rules.outcomes"),
                         ("GET", "users"), ("GET", "definitions"), ("DELETE", "queues/heliograph/rules.outcomes/contents")):
        status, _ = stack.http(method, f"{management}/api/{path}", headers=headers("autoscaler", PASSWORD))
        assert status in (401, 403, 404, 405), (method, path, status)
