"""The page "Your own app in containers", command by command, and the proxy for HTTPS."""

import http.client
import json
import ssl
import uuid

import pytest

import docker
from conftest import ROOT, SERVICES, request
from pages import Reader, steps
from waiting import eventually

PAGE = ROOT / "deploy" / "operations" / "own-app-in-containers.md"


def test_every_command_of_the_page_works_and_prints_what_the_page_says(demonstration, tmp_path):
    demonstration.wait_for_health()
    before = {service: demonstration.pid(service) for service in SERVICES}
    reader = Reader(demonstration.environment, tmp_path, timeout=1800)
    blocks = steps(PAGE.read_text())
    assert len(blocks) >= 7
    assert blocks.pop(0)[0] == "docker compose up --detach\n", "the fixture runs the first block"
    for commands, expected in blocks:
        output = []

        def prints():
            output[:] = [reader.run(commands)]
            return all(line in output[0] for line in expected)

        # A block that reads is repeated until its answer is there.
        if commands.startswith(("docker compose run --rm -T pushctl explain", "curl -fsS http://localhost:9480")):
            eventually(prints, 120, f"the output {expected} of {commands}")
        else:
            assert prints(), f"{expected} of {commands}: {output[0][-3000:]}"
    assert {service: demonstration.pid(service) for service in SERVICES} == before, "a service restarted"


@pytest.fixture
def proxy(demonstration, tmp_path):
    """A context that trusts the authority of the running proxy."""
    demonstration.compose("--profile", "tls", "up", "--detach")
    name = docker.container_of("tls", "heliograph")
    authority = tmp_path / "root.crt"

    def has_certificate() -> bool:
        # The path in the volume /data.
        docker.podman("cp", f"{name}:/data/caddy/pki/authorities/local/root.crt", str(authority), check=False)
        return authority.exists()

    eventually(has_certificate, 60, "the proxy's certificate")
    yield ssl.create_default_context(cafile=str(authority))
    docker.podman("stop", name)


def ask(context: ssl.SSLContext, method: str, path: str, bearer: str, body=None) -> tuple[int, str]:
    connection = http.client.HTTPSConnection("localhost", 8443, context=context, timeout=30)
    headers = {"Authorization": f"Bearer {bearer}", "Content-Type": "application/json"}
    connection.request(method, path, None if body is None else json.dumps(body), headers)
    answer = connection.getresponse()
    return answer.status, answer.read().decode()


def test_the_proxy_serves_phones_over_https_and_no_operator_path(demonstration, proxy):
    bearer = demonstration.tool("pushctl", "token", "mint", "--app", "family-portal", "--user", "https").strip()
    body = {"token": uuid.uuid4().hex * 2, "platform": "ios", "environment": "production"}
    status, answer = ask(proxy, "POST", "/api/notifications/push/register", bearer, body)
    assert status == 200 and json.loads(answer)["success"], answer
    assert ask(proxy, "GET", "/v1/preferences", bearer)[0] == 200
    assert ask(proxy, "GET", "/v1/operator/counts?app=family-portal", bearer)[0] == 404
    assert ask(proxy, "GET", "/metrics", bearer)[0] == 404


def test_events_over_http_ring_a_phone(demonstration):
    key = demonstration.tool(
        "pushctl", "keys", "create", "--service", "rules", "--name", "test", "--app", "family-portal", "--may",
        "events:publish", "--days", "1").split()
    key = next(word for word in key if len(word) > 30)
    event = json.loads((ROOT / "deploy" / "local" / "demo" / "chat-message-created.json").read_text())
    text = f"over HTTP {uuid.uuid4().hex[:8]}"
    event["id"] = f"http-{uuid.uuid4()}"
    event["data"]["message"]["text"] = text
    status, answer = request(
        "POST", "http://127.0.0.1:8082/v1/events", event,
        {"Authorization": f"Bearer {key}", "Content-Type": "application/cloudevents+json"})
    assert status == 202, answer

    def is_pushed() -> bool:
        return any(text in json.dumps(request["body"]) for request in demonstration.requests("apns"))

    eventually(is_pushed, 120, "the push")
