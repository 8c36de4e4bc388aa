"""The HTTPS proxy of docker-compose.yml, with the same configuration, in front of the stack."""

import http.client
import json
import os
import pathlib
import shutil
import signal
import socket
import ssl
import subprocess
import uuid

import pytest

from conftest import ROOT
from local_stack import cloud_event, eventually

APP = "family-portal"


@pytest.fixture(scope="module")
def caddy(tmp_path_factory) -> pathlib.Path:
    """Caddy's executable: the installed one, or that of Debian's package, which is unpacked and not installed."""
    if installed := shutil.which("caddy"):
        return pathlib.Path(installed)
    folder = tmp_path_factory.mktemp("caddy")
    fetched = subprocess.run(
        ["apt-get", "download", "-q", "caddy"], cwd=folder, capture_output=True, text=True, timeout=120)
    packages = list(folder.glob("caddy_*.deb"))
    if not packages:
        pytest.skip(f"caddy is not installed and cannot be downloaded: {fetched.stderr[-300:]}")
    subprocess.run(["dpkg-deb", "-x", packages[0], folder / "root"], check=True, timeout=60)
    return folder / "root" / "usr" / "bin" / "caddy"


class Proxy:
    def __init__(self, port: int, authority: pathlib.Path):
        self.port, self.authority = port, authority

    def connection(self, timeout: float = 30) -> http.client.HTTPSConnection:
        context = ssl.create_default_context(cafile=str(self.authority))
        return http.client.HTTPSConnection("localhost", self.port, context=context, timeout=timeout)

    def ask(self, method: str, path: str, bearer: str, body=None) -> tuple[int, str]:
        connection = self.connection()
        headers = {"Authorization": f"Bearer {bearer}", "Content-Type": "application/json"}
        connection.request(method, path, None if body is None else json.dumps(body), headers)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()


@pytest.fixture(scope="module")
def proxy(stack, caddy, tmp_path_factory):
    folder = tmp_path_factory.mktemp("proxy")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    environment = {
        "PATH": os.environ["PATH"], "HOME": str(folder), "XDG_DATA_HOME": str(folder), "XDG_CONFIG_HOME": str(folder),
        "HELIOGRAPH_TLS_HOST": "localhost", "HELIOGRAPH_TLS_PORT": str(port),
        "REGISTRY": stack.env["REGISTRY_URL"].removeprefix("http://"),
        "RULES": stack.env["RULES_URL"].removeprefix("http://"),
        "EVENTS": stack.env["EVENTS_API_URL"].removeprefix("http://"),
    }
    configuration = ROOT / "deploy" / "compose" / "Caddyfile"
    with open(folder / "log", "w") as log:
        process = subprocess.Popen(
            [caddy, "run", "--config", configuration, "--adapter", "caddyfile"], env=environment,
            stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT)
    authority = folder / "caddy" / "pki" / "authorities" / "local" / "root.crt"

    def listens() -> bool:
        assert process.poll() is None, (folder / "log").read_text()[-2000:]
        with socket.socket() as probe:
            return authority.exists() and probe.connect_ex(("127.0.0.1", port)) == 0

    try:
        eventually(listens, 60, "the proxy")
        yield Proxy(port, authority)
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(30)


def test_a_phone_registers_and_reads_its_preferences_over_https(stack, proxy):
    bearer = stack.bearer(APP, f"https-{uuid.uuid4().hex[:8]}")
    body = {"token": uuid.uuid4().hex * 2, "platform": "ios", "environment": "production"}
    status, answer = proxy.ask("POST", "/api/notifications/push/register", bearer, body)
    assert status == 200 and json.loads(answer)["success"], answer
    assert proxy.ask("GET", "/v1/preferences", bearer)[0] == 200
    assert proxy.ask("GET", "/v1/inbox", bearer)[0] == 200
    assert proxy.ask("GET", "/v1/topics", bearer)[0] == 200
    status, answer = proxy.ask("POST", "/v1/test-pushes?wait=0s", bearer)
    assert status == 200 and json.loads(answer)["devices"] == [], answer


def test_no_path_for_publishers_passes_the_proxy(stack, proxy):
    assert proxy.ask("POST", "/v1/events", stack.env["REGISTRY_OPERATOR_KEY"], {}) == (404, "")


@pytest.mark.parametrize("path", ["/v1/operator/events/x", "/v1/operator/counts?app=x", "/metrics", "/health/ready"])
def test_no_operator_path_passes_the_proxy(stack, proxy, path):
    key = stack.env["REGISTRY_OPERATOR_KEY"]
    assert proxy.ask("GET", path, key) == (404, "")


def test_a_live_stream_passes_the_proxy_at_once(stack, proxy):
    user = f"https-{uuid.uuid4().hex[:8]}"
    connection = proxy.connection(timeout=60)
    connection.request("GET", "/v1/inbox/stream", headers={"Authorization": f"Bearer {stack.bearer(APP, user)}"})
    stream = connection.getresponse()
    assert stream.status == 200 and stream.headers["content-type"].startswith("text/event-stream")
    # The first line arrives while the response is open: the proxy does not buffer.
    assert stream.readline().startswith(b"retry:")
    for number in (1, 2):
        text = f"live {number} {uuid.uuid4().hex[:8]}"
        data = {
            "message": {"id": number, "text": text, "thread_id": None}, "sender": {"id": "pat", "name": "Pat"},
            "participants": [user]}
        stack.publish(
            f"{APP}.chat.message.created", cloud_event("chat.message.created", data, f"https-{uuid.uuid4()}"),
            content_type="application/cloudevents+json")
        # A read without a line within the connection's timeout fails.
        while text not in (line := stream.readline().decode()):
            assert line, "the stream ended"
    stream.close()
    connection.close()
