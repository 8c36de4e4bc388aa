"""docker-compose.yml with containers of podman: health, pushes, rights of the processes, crashes and stops."""

import datetime
import os
import pathlib
import signal
import time
import uuid

import pytest

import docker
from conftest import JOBS, SERVICES, SIMULATOR, request
from processes import mount_options, rights_of, status_of
from waiting import eventually

USER = 65532
MEBIBYTE = 1 << 20


def test_every_container_is_healthy_and_every_job_ends(demonstration, report):
    demonstration.wait_for_health(*SERVICES, "rabbitmq", "postgres")
    for job in JOBS:
        state = demonstration.container(job)["State"]
        assert docker.fulfils(state, "service_completed_successfully"), f"{job}: {state}"
    report.append(f"docker compose up, until the phones rang: {demonstration.seconds:.0f} s")


def test_the_demonstration_rings_three_phones_and_a_browser(demonstration):
    def pushes() -> list[int]:
        return [len(demonstration.requests(provider)) for provider in ("apns", "fcm", "webpush")]

    eventually(lambda: pushes() == [2, 1, 1], 60, "four pushes")
    topics = {request["headers"]["apns-topic"] for request in demonstration.requests("apns")}
    assert topics == {"com.example.hideandseek", "com.familyportal.app"}
    assert all(request["status"] == 200 for provider in ("apns", "fcm") for request in demonstration.requests(provider))
    (browser,) = demonstration.requests("webpush")
    assert browser["status"] == 201 and browser["body"]["notification"]["title"] == "New message"
    status, page = request("GET", f"{SIMULATOR}/")
    assert status == 200 and "<html" in page


def memory_limit_of(pid: int) -> int:
    """The limit of the process's control group."""
    for line in pathlib.Path(f"/proc/{pid}/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        if "memory" in controllers.split(","):
            return int(pathlib.Path(f"/sys/fs/cgroup/memory{path}/memory.limit_in_bytes").read_text())
        if not controllers and (limit := pathlib.Path(f"/sys/fs/cgroup{path}/memory.max")).exists():
            return int(limit.read_text())
    raise AssertionError("no control group for memory")


@pytest.mark.parametrize("service", SERVICES)
def test_a_service_runs_alone_without_rights_on_a_read_only_root(demonstration, service):
    pid = demonstration.pid(service)
    rights = rights_of(pid)
    assert rights.users == {USER} and rights.groups == {USER}
    assert rights.capabilities == 0 and rights.has_no_new_privileges and rights.is_root_read_only
    assert rights.own_pid == 1, "the service is not process 1"
    assert not pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().strip(), "the service has child processes"
    assert "ro" in mount_options(pid, "/run/heliograph")
    assert os.readlink(f"/proc/{pid}/exe") == f"/usr/local/bin/{service}"


@pytest.mark.parametrize("service", SERVICES)
def test_a_service_has_a_memory_limit_and_rests_below_half_of_it(demonstration, service, report):
    pid = demonstration.pid(service)
    limit = memory_limit_of(pid)
    assert limit == (768 if service == "events-api" else 256) * MEBIBYTE
    used = int(status_of(pid)["VmRSS"].split()[0]) * 1024
    report.append(f"{service}: {used / MEBIBYTE:.0f} MB at rest")
    assert used < limit / 2


def publish(demonstration, text: str) -> str:
    """Publishes a chat message of family-portal to the demonstration's users. Returns the event's id."""
    event = f"container-{uuid.uuid4()}"
    command = (
        f"jq --arg id {event} --arg text '{text}' '.id = $id | .data.message.text = $text' "
        "/usr/share/heliograph/demo/chat-message-created.json "
        "| AMQP_URL_FILE=/run/heliograph/amqp-url-upstream-family-portal "
        "pushctl publish --app family-portal --apps /run/heliograph/apps.yaml -")
    demonstration.tool("--entrypoint", "/bin/sh", "pushctl", "-c", command)
    return event


def is_pushed(demonstration, text: str) -> bool:
    alerts = [request["body"].get("aps", {}).get("alert") for request in demonstration.requests("apns")]
    return sum(isinstance(alert, dict) and text in alert.get("body", "") for alert in alerts) == 1


def test_a_published_event_rings_a_phone(demonstration):
    text = f"hello {uuid.uuid4().hex[:8]}"
    publish(demonstration, text)
    eventually(lambda: is_pushed(demonstration, text), 60, "the push")


def crash(demonstration, service: str) -> None:
    """Kills a container's process like a crash. The restart policy, not the test, starts it again."""
    former = demonstration.pid(service)
    os.kill(former, signal.SIGKILL)
    eventually(lambda: demonstration.pid(service) not in (0, former), 120, f"the restart of {service}")


@pytest.mark.parametrize("service", SERVICES)
def test_a_killed_service_starts_again(demonstration, service, report):
    started = time.monotonic()
    crash(demonstration, service)
    demonstration.wait_for_health(service)
    report.append(f"{service}: healthy {time.monotonic() - started:.0f} s after a crash")


@pytest.mark.parametrize("server", ["rabbitmq", "postgres"])
def test_pushes_arrive_after_a_crash_of_a_server(demonstration, server, report):
    text = f"after {server} {uuid.uuid4().hex[:8]}"
    started = time.monotonic()
    crash(demonstration, server)
    demonstration.wait_for_health(server)
    report.append(f"{server}: healthy {time.monotonic() - started:.0f} s after a crash")
    publish(demonstration, text)
    eventually(lambda: is_pushed(demonstration, text), 180, "the push")


def test_an_event_survives_the_crash_of_all_services(demonstration):
    text = f"survives {uuid.uuid4().hex[:8]}"
    publish(demonstration, text)
    # The simulator keeps the request log in memory.
    for service in SERVICES:
        if service != "provider-simulator":
            os.kill(demonstration.pid(service), signal.SIGKILL)
    eventually(lambda: is_pushed(demonstration, text), 300, "the push")
    demonstration.wait_for_health()


@pytest.mark.parametrize("service", SERVICES)
def test_a_stop_is_orderly_and_quick(demonstration, service, report):
    name = demonstration.name(service)
    demonstration.wait_for_health(service)
    started = time.time()
    # The time of docker-compose.yml, which podman-compose passes with its own command only.
    docker.podman("stop", "--time", "40", name)
    state = demonstration.container(service)["State"]
    assert state["ExitCode"] == 0, f"{service} ended with {state['ExitCode']}"
    seconds = datetime.datetime.fromisoformat(state["FinishedAt"]).timestamp() - started
    assert 0 < seconds < 25, f"{service} stopped after {seconds:.1f} s"
    report.append(f"{service}: stopped in {seconds:.1f} s")
    docker.podman("start", name)
    demonstration.wait_for_health(service)


def test_a_second_up_changes_nothing_and_repeats_the_jobs(demonstration):
    pids = {service: demonstration.pid(service) for service in SERVICES}
    demonstration.compose("up", "--detach")
    eventually(
        lambda: docker.fulfils(demonstration.container("demo")["State"], "service_completed_successfully"), 120,
        "the end of the demonstration's job")
    assert {service: demonstration.pid(service) for service in SERVICES} == pids
