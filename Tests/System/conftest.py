"""One stack for the whole run, started with deploy/local/up on its own ports and in its own folder."""

import contextlib
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "deploy" / "local" / "lib"))

from local_stack import Stack, eventually  # noqa: E402
from port_reservation import free_port_base  # noqa: E402


# Tests that add apps to the stack, long runs, and last the tests that start further stacks.
LAST = [
    "test_own_app.py", "test_cluster.py", "test_failover.py", "test_restore.py", "test_provider_faults.py",
    "test_upgrade.py", "test_sender_restarts.py", "test_start_and_stop.py",
]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Moves the files of LAST behind all others, in that order."""
    items.sort(key=lambda item: LAST.index(item.path.name) if item.path.name in LAST else -1)


def demo_is_finished(stack) -> bool:
    """Whether the demo is complete: its three notifications have an outcome and every queue is empty. A duplicate push
    would be in the simulator's log by then.
    """
    done = subprocess.run(
        ["psql", "-XAtq", stack.env["DATABASE_URL"]],
        input="""
            SELECT count(DISTINCT d.notification), count(DISTINCT o.notification)
            FROM rules.event e JOIN rules.decision d ON d.event = e.key LEFT JOIN rules.outcome o USING (notification)
            WHERE e.id LIKE 'demo-%' AND d.answer LIKE 'push%'""",
        capture_output=True, text=True, timeout=20, check=True)
    apps, lanes = ("family-portal", "hide-and-seek"), ("interactive", "bulk")
    queues = [f"rules.events.app.{app}" for app in apps] + ["rules.outcomes"]
    for app in apps:
        for lane in lanes:
            queues.append(f"token-registry.notifications.{lane}.app.{app}")
            queues += [f"{provider}-sender.pushes.{lane}.{app}" for provider in ("apns", "fcm", "webpush")]
    return done.stdout.strip() == "3|3" and not any(stack.depth(queue) for queue in queues)


@pytest.fixture(scope="session")
def stack(tmp_path_factory):
    """A running stack. `stack.output` is the output of deploy/local/up, `stack.demo` the pushes of the demo."""
    stack = Stack(tmp_path_factory.mktemp("stack"), free_port_base())
    stack.environment["LOCAL_CONSOLE"] = "yes"
    stack.output = stack.up()
    eventually(lambda: demo_is_finished(stack), 30, "the end of the demo")
    stack.demo = {provider: stack.requests(provider) for provider in ("apns", "fcm", "webpush")}
    yield stack
    stack.down("--erase")


@pytest.fixture
def phones(stack):
    """Registers devices for one test, after clearing the simulator's request log."""
    return phones_of(stack)


@contextlib.contextmanager
def further_stack(state: pathlib.Path, *options: str):
    """A second stack without the demo's events, with further options of deploy/local/up."""
    stack = Stack(state, free_port_base())
    for name in ("LOCAL_NODES", "LOCAL_STANDBY"):
        stack.environment.pop(name, None)
    try:
        stack.up("--no-demo", *options)
        yield stack
    finally:
        stack.down("--erase")


def phones_of(stack):
    """Registers devices of a stack, after clearing its simulator's request log."""
    stack.forget_requests()
    return registering(stack)


def registering(stack):
    """Registers devices of a stack."""
    def register(app: str, user: str, token: str, **options):
        status, answer = stack.register(app, user, token, **options)
        assert (status, answer) == (200, {"success": True, "error": None})

    return register
