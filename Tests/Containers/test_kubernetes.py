"""The rendered demonstration of deploy/kubernetes, with podman: each pod with its command, user, files and rights.

Network policies and the scheduler need a Kubernetes cluster, and are not tested here.
"""

import os
import pathlib
import shutil
import signal
import socket
import subprocess
import time

import pytest
import yaml

import docker
import kubernetes
from conftest import ROOT, request
from processes import rights_of
from waiting import eventually

FOLDER = ROOT / "deploy" / "kubernetes"
SERVICES = sorted(path.stem for path in (FOLDER / "base").glob("*-sender.yaml"))
SERVICES += ["events-api", "feedback", "rules", "token-registry", "provider-simulator"]
JOBS = ["topology", "migrate", "logins", "demo"]

pytestmark = pytest.mark.skipif(not shutil.which("kubectl"), reason="kubectl renders the manifests")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """All workloads of the demonstration, started at once; `seconds` is the time until the phones rang."""
    folder = tmp_path_factory.mktemp("kubernetes")
    for name in ("kubernetes", "rabbitmq"):
        shutil.copytree(ROOT / "deploy" / name, folder / name)
    secrets = folder / "kubernetes" / "demo" / "secrets"
    shutil.rmtree(secrets, ignore_errors=True)
    secrets.mkdir()
    docker.podman(
        "run", "--rm", "--user", "0:0", "-v", f"{secrets}:/secrets", "--entrypoint",
        "/usr/share/heliograph/compose/credentials", "localhost/heliograph/tools:dev", "/secrets")
    objects = kubernetes.rendered(folder / "kubernetes" / "demo") + [pushctl_pod(), pushctl_secret(secrets)]
    cluster = kubernetes.Cluster(objects, folder / "volumes")
    remove(cluster)
    docker.podman("network", "create", kubernetes.NETWORK)
    started = time.monotonic()
    try:
        cluster.play(*SERVICES, *JOBS, "rabbitmq", "postgres")
        eventually(lambda: ended(cluster, "demo"), 300, "the end of the job demo")
        cluster.seconds = time.monotonic() - started
        yield cluster
    finally:
        if not os.environ.get("CONTAINERS_KEEP"):
            remove(cluster)


def remove(cluster) -> None:
    for name in cluster.workloads:
        docker.podman("pod", "rm", "--force", "--time", "2", name, check=False)
    docker.podman("network", "rm", "--force", kubernetes.NETWORK, check=False)


def pushctl_pod() -> dict:
    """The pod of `pushctl.yaml`, with the variable that README.md names for the demonstration."""
    pod = yaml.safe_load((FOLDER / "pushctl.yaml").read_text())
    pod["spec"]["containers"][0]["env"].append({"name": "HELIOGRAPH_ALLOW_PLAINTEXT", "value": "yes"})
    return pod


def pushctl_secret(secrets: pathlib.Path) -> dict:
    files = {
        "amqp-url": "amqp-url-topology", "database-url": "database-url-administrator", "operator-key": "operator-key",
        "token-keys": "token-keys",
    }
    command = ["kubectl", "create", "secret", "generic", "pushctl", "--dry-run=client", "--output=yaml"]
    command += [f"--from-file={key}={secrets / name}" for key, name in files.items()]
    return yaml.safe_load(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def ended(cluster, job: str) -> bool:
    return docker.fulfils(cluster.container(job)["State"], "service_completed_successfully")


def ask(cluster, name: str, port: str | int, path: str):
    return request("GET", f"http://{cluster.address(name)}:{cluster.port(name, port)}{path}")


def is_ready(cluster, name: str) -> bool:
    try:
        return ask(cluster, name, "admin", "/health/ready")[0] == 200
    except OSError:
        return False


def test_the_manifests_have_no_other_workload(cluster):
    assert set(cluster.workloads) == {*SERVICES, *JOBS, "rabbitmq", "postgres", "pushctl"}


def test_all_pods_start_at_once_and_three_phones_ring(cluster, report):
    for job in JOBS:
        assert ended(cluster, job), job
    for service in SERVICES:
        eventually(lambda: is_ready(cluster, service), 120, f"{service} to be ready")
        assert cluster.container(service)["RestartCount"] == 0, f"{service} ended while broker and database started"

    def pushes() -> tuple[int, int]:
        answers = (ask(cluster, "provider-simulator", "control", f"/{one}/requests")[1] for one in ("apns", "fcm"))
        return tuple(len(answer["requests"]) for answer in answers)

    eventually(lambda: pushes() == (2, 1), 60, "three pushes")
    report.append(f"podman kube play, until the phones rang: {cluster.seconds:.0f} s")


@pytest.mark.parametrize("service", SERVICES)
def test_the_probes_of_a_manifest_are_answered(cluster, service):
    eventually(lambda: is_ready(cluster, service), 120, f"{service} to be ready")
    for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
        get = cluster.declared(service)[probe]["httpGet"]
        assert ask(cluster, service, get["port"], get["path"])[0] == 200, probe


@pytest.mark.parametrize("service", SERVICES)
def test_a_pod_runs_without_rights_on_a_read_only_root(cluster, service):
    rights = rights_of(cluster.container(service)["State"]["Pid"])
    assert rights.users == {65532} and rights.groups == {65532}
    assert rights.capabilities == 0 and rights.has_no_new_privileges and rights.is_root_read_only


def test_each_service_has_a_listening_pod_behind_it(cluster):
    assert len(cluster.services) >= 6
    for name, service in cluster.services.items():
        assert cluster.selected_by(name) == [name]
        for port in service["ports"]:
            socket.create_connection((cluster.address(name), cluster.port(name, port["targetPort"])), 10).close()


def test_a_killed_pod_starts_again(cluster):
    former = cluster.container("rules")["State"]["Pid"]
    os.kill(former, signal.SIGKILL)
    eventually(lambda: cluster.container("rules")["State"]["Pid"] not in (0, former), 60, "the restart of rules")
    eventually(lambda: is_ready(cluster, "rules"), 120, "rules to be ready")


def test_pushctl_works_in_its_own_pod(cluster):
    cluster.play("pushctl")

    def run(*arguments: str) -> str:
        return docker.podman("exec", "pushctl-pushctl", "pushctl", *arguments)

    assert "no dead letters" in run("dead", "list").lower()
    # Another process of rules counts after the lease of the killed one.
    eventually(lambda: "family-portal" in run("census"), 120, "the census")
    run("doctor")
    run("rules", "check", "/usr/share/heliograph/RuleSets")
