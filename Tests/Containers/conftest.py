"""The demonstration of docker-compose.yml, started once for all tests, with the health checks that podman does not run.

CONTAINERS_KEEP=yes leaves the containers running, and uses running ones.
"""

import functools
import json
import os
import pathlib
import socket
import subprocess
import sys
import threading
import time

import pytest

import docker

ROOT = docker.ROOT
sys.path.insert(0, str(ROOT / "deploy" / "local" / "lib"))

import http_requests  # noqa: E402
from waiting import eventually  # noqa: E402

request = functools.partial(http_requests.request, timeout=20)

SERVICES = [
    "rules", "token-registry", "apns-sender", "fcm-sender", "webpush-sender", "feedback", "events-api", "webhook-sender", "provider-simulator",
]
JOBS = ["app-folder", "credentials", "topology", "migrate", "logins", "demo"]
# Ports that docker-compose.yml publishes.
PORTS = [8080, 8081, 8082, 8443, 9480, 3000, 9090]
PROFILES = ["--profile", "tls", "--profile", "monitoring"]
SIMULATOR = "http://127.0.0.1:9480"


class Demonstration:
    """The containers of docker-compose.yml and its command line."""

    def __init__(self, folder: pathlib.Path):
        # The commands of pages call `docker`.
        executable = folder / "docker"
        executable.write_text(f"#!/bin/sh\nexec {sys.executable} {pathlib.Path(docker.__file__)} \"$@\"\n")
        executable.chmod(0o755)
        self.environment = {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"}
        for name in ("HELIOGRAPH_APPS_FOLDER", "HELIOGRAPH_TLS_HOST", "HELIOGRAPH_TLS_PORT"):
            self.environment.pop(name, None)

    def compose(self, *arguments: str, check: bool = True, timeout: float = 1800, **variables: str) -> str:
        done = subprocess.run(
            ["docker", "compose", *arguments], cwd=ROOT, env={**self.environment, **variables}, text=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=timeout)
        assert not check or done.returncode == 0, f"docker compose {' '.join(arguments)}: {done.stdout[-4000:]}"
        return done.stdout

    def container(self, service: str) -> dict:
        return docker.inspect(docker.container_of(service, "heliograph"))

    def name(self, service: str) -> str:
        return docker.container_of(service, "heliograph")

    def pid(self, service: str) -> int:
        return self.container(service)["State"]["Pid"]

    def is_healthy(self, service: str) -> bool:
        return docker.fulfils(self.container(service)["State"], "service_healthy")

    def wait_for_health(self, *services: str, within: float = 300) -> None:
        for service in services or SERVICES:
            eventually(lambda: self.is_healthy(service), within, f"the health of {service}")

    def tool(self, *command: str, check: bool = True) -> str:
        """Runs pushctl in the containers' network, with the credentials of a broker user or the database."""
        return self.compose("run", "--rm", "--no-deps", "-T", *command, check=check)

    def requests(self, provider: str) -> list[dict]:
        return request("GET", f"{SIMULATOR}/{provider}/requests")[1]["requests"]


def first_check(container: str) -> float:
    """The seconds before the first health check: its interval, which is long enough for the broker's cookie."""
    # A removed container has no description.
    found = json.loads(docker.podman("container", "inspect", container, check=False) or "[]")
    check = found[0]["Config"].get("Healthcheck") if found else None
    return check["Interval"] / 1e9 if check and check.get("Interval") else float("inf")


def run_health_checks(stop: threading.Event) -> None:
    """Runs the health check of each running container: often until it is healthy, then every half minute."""
    environment = {**os.environ, "DISABLE_HC_SYSTEMD": "true"}
    due: dict[str, float] = {}
    running: dict[str, subprocess.Popen] = {}
    while not stop.wait(1):
        listed = subprocess.run(
            ["podman", "ps", "--format", "json"], capture_output=True, text=True, stdin=subprocess.DEVNULL)
        for container in json.loads(listed.stdout or "[]"):
            name, key = container["Names"][0], f"{container['Id']} {container['StartedAt']}"
            if key not in due:
                due[key] = time.monotonic() + first_check(name)
            elif time.monotonic() >= due[key] and (key not in running or running[key].poll() is not None):
                running[key] = subprocess.Popen(
                    ["podman", "healthcheck", "run", name], env=environment, stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                due[key] = time.monotonic() + (30 if "(healthy)" in container["Status"] else 3)


@pytest.fixture(scope="session")
def health_checks():
    stop = threading.Event()
    thread = threading.Thread(target=run_health_checks, args=[stop], daemon=True)
    thread.start()
    yield
    stop.set()
    thread.join(30)


@pytest.fixture(scope="session")
def demonstration(health_checks, tmp_path_factory):
    """The running demonstration after `docker compose up`; `seconds` is the time of its start."""
    demonstration = Demonstration(tmp_path_factory.mktemp("bin"))
    keep = bool(os.environ.get("CONTAINERS_KEEP"))
    if not keep:
        demonstration.compose(*PROFILES, "down", "--volumes", check=False)
        for port in PORTS:
            with socket.socket() as probe:
                assert probe.connect_ex(("127.0.0.1", port)) != 0, f"port {port} is taken by another program"
    elif docker.podman("ps", "--quiet"):
        request("DELETE", f"{SIMULATOR}/requests")
    started = time.monotonic()
    try:
        demonstration.compose("up", "--detach")
        eventually(
            lambda: docker.fulfils(demonstration.container("demo")["State"], "service_completed_successfully"), 300,
            "the end of the demonstration's job")
        demonstration.seconds = time.monotonic() - started
        yield demonstration
    finally:
        if not keep:
            demonstration.compose(*PROFILES, "down", "--volumes", "--timeout", "10", check=False)


@pytest.fixture(scope="session")
def report():
    """Lines that are printed at the end of the run."""
    return REPORT


REPORT: list[str] = []


def pytest_terminal_summary(terminalreporter) -> None:
    terminalreporter.section("containers")
    for line in REPORT:
        terminalreporter.write_line(line)
