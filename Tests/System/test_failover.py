"""The promotion of the synchronous standby after the primary's end: no confirmed event or registration is lost."""

import concurrent.futures
import json
import subprocess
import threading
import uuid

import pytest

from conftest import further_stack, phones_of
from local_stack import eventually
from test_crashes import PREFETCH
from upstream import ChatEvents, publish_surely

EVENTS = 1000


@pytest.fixture(scope="module")
def replicated(tmp_path_factory):
    with further_stack(tmp_path_factory.mktemp("replicated"), "--standby") as stack:
        yield stack


def query(stack, sql: str) -> str:
    done = subprocess.run(
        ["psql", "-XAtq", stack.env["DATABASE_URL"]], input=sql, capture_output=True, text=True, timeout=30, check=True)
    return done.stdout.strip()


class Registrations:
    """Registers devices until it is stopped. `confirmed` has the users of the requests with the status 200."""

    def __init__(self, stack):
        self._stack = stack
        self._run = uuid.uuid4().hex[:8]
        self._stopped = threading.Event()
        self.confirmed: set[str] = set()
        self.failures = 0

    def run(self) -> None:
        number = 0
        while not self._stopped.is_set():
            number += 1
            user = f"failover-{self._run}-{number}"
            try:
                status, _ = self._stack.register("family-portal", user, uuid.uuid4().hex * 2)
            except OSError:
                status = 0
            if status == 200:
                self.confirmed.add(user)
            else:
                self.failures += 1

    def stop(self) -> None:
        self._stopped.set()

    def missing(self) -> set[str]:
        rows = query(
            self._stack, f"SELECT user_id FROM registry.registration WHERE user_id LIKE 'failover-{self._run}-%'")
        return self.confirmed - set(rows.splitlines())


def test_a_promotion_loses_no_confirmed_event_or_registration(replicated):
    stack = replicated
    assert query(stack, "SELECT sync_state FROM pg_stat_replication") == "sync"
    events = ChatEvents(stack, phones_of(stack), EVENTS)
    registrations = Registrations(stack)
    before = set()

    def fail_over():
        eventually(lambda: len(registrations.confirmed) >= 5, 60, "registrations before the failover")
        stack.service("kill", "database")
        before.update(registrations.confirmed)
        stack.service("promote", "database-standby")

    with concurrent.futures.ThreadPoolExecutor() as pool:
        registering = pool.submit(registrations.run)
        try:
            publish_surely(stack, events.bodies, fail_over)
            extra = events.await_all()
            eventually(lambda: registrations.confirmed - before, 60, "a registration after the failover")
        finally:
            registrations.stop()
        registering.result()
    assert query(stack, "SELECT pg_is_in_recovery()") == "f"
    assert registrations.missing() == set()
    figures = {"registrations": len(registrations.confirmed), "refused": registrations.failures}
    print(json.dumps({"events": EVENTS, "duplicates": extra, "bound": PREFETCH, **figures}))
    assert extra <= PREFETCH


def test_the_former_primary_does_not_start_again(replicated):
    with pytest.raises(RuntimeError, match="the standby was promoted"):
        replicated.service("start", "database")
