"""Device events: a bound queue receives every change, despite kills, and never a token."""

import collections
import contextlib
import json
import subprocess
import time
import uuid

import pika

from local_stack import eventually

APP = "family-portal"


@contextlib.contextmanager
def listening(stack):
    """Declares a durable queue bound to every device event, and yields its name."""
    name = f"test-device-events-{uuid.uuid4().hex[:8]}"
    with stack.channel() as channel:
        channel.queue_declare(name, durable=True, arguments={"x-queue-type": "quorum"})
        channel.queue_bind(name, "devices", "event.#")
    yield name
    with stack.channel() as channel:
        channel.queue_delete(name)


def command(channel, verb: str, **members) -> None:
    trace = {"id": str(uuid.uuid4()), "correlation": "test", "causation": "test"}
    body = {"type": "heliograph.device-command", "version": 1, "trace": trace, "app": APP,
            "command": {"verb": verb, "provider": "apns", "environment": "production", **members}}
    channel.basic_publish("devices", f"command.{verb}", json.dumps(body).encode(),
                          pika.BasicProperties(content_type="application/json", delivery_mode=2), mandatory=True)


def query(stack, sql: str) -> str:
    done = subprocess.run(["psql", "-XAtq", stack.env["DATABASE_URL"], "-c", sql],
                          capture_output=True, text=True, timeout=60, check=True)
    return done.stdout.strip()


def nothing_waits(stack) -> bool:
    return stack.depth("token-registry.devices") == 0 and query(stack, "SELECT count(*) FROM registry.outbox") == "0"


def test_every_change_is_announced_despite_kills_of_registry_and_database(stack):
    run, size = uuid.uuid4().hex[:8], 600
    tokens = {f"{run}-{number}": f"{run}{number:056x}" for number in range(size)}
    with listening(stack) as queue:
        at = int(time.time() * 1000) - 10_000
        with stack.channel() as channel:
            for number, (user, token) in enumerate(tokens.items()):
                command(channel, "register", user=user, token=token, at=at)
                if number in (200, 400):
                    stack.service("kill", "token-registry")
                    stack.service("start", "token-registry")
        stack.service("kill", "database")
        stack.service("start", "database")
        with stack.channel() as channel:
            for user, token in tokens.items():
                command(channel, "unregister", user=user, token=token, at=at + 1000)
                # Registers again, after the sign-out.
                command(channel, "register", user=user, token=token, at=at)
        active = f"SELECT count(*) FROM registry.registration WHERE user_id LIKE '{run}-%' AND state = 'active'"
        eventually(lambda: stack.depth("token-registry.devices") == 0 and query(stack, active) == "0", 120, "the sign-outs")
        eventually(lambda: nothing_waits(stack), 60, "an empty outbox")

        events = collections.defaultdict(list)
        ids = set()
        for properties, body in stack.take(queue):
            event = json.loads(body)
            if not event["user"].startswith(f"{run}-"):
                continue
            assert tokens[event["user"]].encode() not in body
            assert properties.message_id.lower() == event["trace"]["id"].lower()
            if event["trace"]["id"] not in ids:  # A repeat has the id of the first.
                ids.add(event["trace"]["id"])
                events[event["user"]].append(event["past"])
        assert {user: events[user] for user in tokens} == {user: ["registered", "signed-out"] for user in tokens}


def test_erasing_a_user_is_announced(stack, phones):
    user, token = f"u-{uuid.uuid4()}", uuid.uuid4().hex
    with listening(stack) as queue:
        phones(APP, user, token)
        pushctl = [stack.product("pushctl"), "devices", "erase", "--app", APP, "--user", user]
        environment = {**stack.environment, **stack.env}
        asked = subprocess.run(pushctl, env=environment, capture_output=True, text=True, timeout=30)
        assert (asked.returncode, "confirm with --yes" in asked.stdout) == (0, True), asked
        done = subprocess.run([*pushctl, "--yes"], env=environment, capture_output=True, text=True, timeout=30)
        assert (done.returncode, done.stdout.strip()) == (0, "registrations erased: 1"), done
        assert query(stack, f"SELECT count(*) FROM registry.registration WHERE user_id = '{user}' AND token IS NOT NULL") == "0"
        eventually(lambda: stack.depth(queue) >= 3, what="three events")
        events = [json.loads(body)["past"] for _, body in stack.take(queue) if json.loads(body)["user"] == user]
        assert events == ["registered", "erased", "user-erased"]
