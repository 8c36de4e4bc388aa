"""The command `docker` for tests, on podman: `docker compose` is podman-compose, everything else is podman.

`docker compose up` differs from that of podman-compose: it starts a container when the conditions of its `depends_on`
hold, as Docker Compose does. podman-compose ignores `service_healthy` before podman 4.6. Without systemd, podman runs no
health checks; the fixture `health_checks` does.
"""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import time

import yaml

ROOT = pathlib.Path(__file__).resolve().parents[2]
PODMAN_COMPOSE = [
    sys.executable, "-m", "podman_compose", "--no-ansi", "--in-pod", "false", "--podman-path",
    shutil.which("docker") or "podman",
]
# Options of podman-compose that older versions of podman do not know.
UNKNOWN_OPTIONS = ["--health-startup-interval"]
# The services as of the last `docker compose up`.
DECLARED = pathlib.Path(os.environ.get("CONTAINERS", "/tmp")) / "declared.json"
# Seconds for the start of one container, on a slow machine.
DEADLINE = 300
MAX_RESTARTS = 20


def podman(*arguments: str, check: bool = True) -> str:
    done = subprocess.run(
        ["podman", *arguments], capture_output=True, text=True, timeout=DEADLINE, stdin=subprocess.DEVNULL)
    if check and done.returncode != 0:
        raise SystemExit(f"podman {' '.join(arguments)}: {done.stderr[-2000:]}")
    return done.stdout


def inspect(container: str) -> dict:
    return json.loads(podman("container", "inspect", container))[0]


def health(state: dict) -> str:
    """`healthy`, `starting`, `unhealthy` or an empty text, by the container's inspected state."""
    return (state.get("Healthcheck") or state.get("Health") or {}).get("Status", "")


def fulfils(state: dict, condition: str) -> bool:
    """Whether a container's state fulfils a condition of `depends_on`."""
    match condition:
        case "service_healthy":
            return state["Status"] == "running" and health(state) == "healthy"
        case "service_completed_successfully":
            return state["Status"] in ("exited", "stopped") and state["ExitCode"] == 0
        case "service_started":
            return state["Status"] == "running"
    raise SystemExit(f"unknown condition {condition}")


def ordered(services: dict) -> list[str]:
    """The services, each after those that it depends on."""
    order: list[str] = []

    def add(name: str) -> None:
        if name not in order:
            for other in services[name].get("depends_on", {}):
                add(other)
            order.append(name)

    for name in services:
        add(name)
    return order


def container_of(service: str, project: str) -> str:
    return f"{project}_{service}_1"


def wait_for(service: str, container: str, condition: str) -> None:
    deadline = time.monotonic() + DEADLINE
    while not fulfils((inspected := inspect(container))["State"], condition):
        state = inspected["State"]
        if time.monotonic() > deadline or inspected["RestartCount"] > MAX_RESTARTS:
            logs = podman("logs", "--tail", "20", container, check=False)
            raise SystemExit(f"{service} did not reach {condition}: {state}\n{logs}")
        time.sleep(0.2)


def output_of(command: list[str]) -> str:
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=DEADLINE, stdin=subprocess.DEVNULL)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(command)}: {done.stdout[-2000:]}{done.stderr[-4000:]}")
    return done.stdout


def remove_changed(declared: dict, project: str) -> None:
    """Removes the containers whose service has changed since the last `up`. podman-compose itself would also remove all
    containers that depend on them; Docker Compose does not.
    """
    former = json.loads(DECLARED.read_text()) if DECLARED.exists() else {}
    for service, declaration in declared.items():
        if former.get(service, declaration) != declaration:
            podman("rm", "--force", "--ignore", container_of(service, project))
    DECLARED.write_text(json.dumps({**former, **declared}))


def up(options: list[str], services: list[str]) -> int:
    """Creates missing and changed containers, and starts each one that is not running, in the order of `depends_on`."""
    compose = [*PODMAN_COMPOSE, *options]
    configuration = yaml.safe_load(output_of([*compose, "config"]))
    declared = configuration["services"]
    project = configuration["name"]
    remove_changed(declared, project)
    output_of([*compose, "up", "--no-start", "--no-build", "--no-deps", "--no-recreate", "--detach", *services])
    for service in ordered(declared):
        if services and service not in services:
            continue
        container = container_of(service, project)
        if inspect(container)["State"]["Status"] == "running":
            continue
        for other, dependency in declared[service].get("depends_on", {}).items():
            wait_for(other, container_of(other, project), dependency["condition"])
        podman("start", container)
    return 0


def without_unknown_options(arguments: list[str]) -> list[str]:
    kept = list(arguments)
    for option in UNKNOWN_OPTIONS:
        while option in kept:
            place = kept.index(option)
            del kept[place:place + 2]
    return kept


def main(arguments: list[str]) -> int:
    # Without systemd, a container with a timer for its health check does not start.
    os.environ["DISABLE_HC_SYSTEMD"] = "true"
    if arguments[:1] != ["compose"]:
        os.execvp("podman", ["podman", *without_unknown_options(arguments)])
    options, rest = [], arguments[1:]
    while rest and rest[0].startswith("-"):
        options += rest[:2]
        rest = rest[2:]
    if rest[:1] == ["up"]:
        return up(options, [one for one in rest[1:] if not one.startswith("-")])
    if rest[:1] == ["run"]:
        # Docker Compose runs a service whatever its profile.
        options += ["--profile", "tools"]
    if rest[:1] == ["down"]:
        DECLARED.unlink(missing_ok=True)
    return subprocess.run([*PODMAN_COMPOSE, *options, *rest], cwd=ROOT).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
