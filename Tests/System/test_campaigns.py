"""A broadcast survives kills of the registry and the database: each device has one push in the bulk queue."""

import json
import subprocess
import time
import uuid

import pika
import pytest

from local_stack import eventually

APP = "hide-and-seek"
DEVICES = 200_000
# Of the registry: concurrent steps, and devices per step.
WORKERS, STEP = 2, 4000
# The senders are stopped, so that pushes stay in the queues and can be counted.
SENDERS = ["apns-sender", "fcm-sender"]
USERS = "users-"
QUEUES = [f"{sender}.pushes.bulk.{APP}" for sender in SENDERS]


def query(stack, sql: str) -> str:
    done = subprocess.run(["psql", "-XAtq", stack.env["DATABASE_URL"], "-v", "ON_ERROR_STOP=1"], input=sql,
                          capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def fill(stack, run: str, devices: int) -> None:
    """Two of three devices use APNs; every user has two devices."""
    query(stack, f"""
        BEGIN;
        SET LOCAL session_replication_role = replica; -- A bulk load announces nothing.
        INSERT INTO registry.registration (device_id, app, user_id, provider, environment, token, registered_at,
            state_changed_at)
        SELECT md5('{run}' || n)::uuid, '{APP}', '{run}-' || n / 2, CASE WHEN n % 3 = 0 THEN 'fcm' ELSE 'apns' END,
            'production', '{run}-' || n, now(), now()
        FROM generate_series(0, {devices - 1}) AS n;
        COMMIT;
        ANALYZE registry.registration;
    """)


def announce(stack, audience: dict, **members) -> str:
    """Publishes a notification to an audience, and returns the campaign's id."""
    campaign = str(uuid.uuid4())
    body = {
        "type": "heliograph.notification", "version": 1, "app": APP, "rule": "announcement", "lane": "bulk",
        "trace": {"id": str(uuid.uuid4()), "correlation": "test", "causation": "test"},
        "content": {"title": "Maintenance", "body": "Tonight at ten", "silent": False},
        "audience": {"campaign": campaign, **audience}, **members,
    }
    with stack.channel() as channel:
        channel.basic_publish("notifications", f"bulk.{APP}", json.dumps(body).encode(),
                              pika.BasicProperties(content_type="application/json", delivery_mode=2), mandatory=True)
    return campaign


def pushctl(stack, *arguments: str) -> subprocess.CompletedProcess:
    return subprocess.run([stack.product("pushctl"), "campaigns", *arguments], env={**stack.environment, **stack.env},
                          capture_output=True, text=True, timeout=120)


def state(stack, campaign: str) -> str:
    return query(stack, f"SELECT state FROM registry.campaign WHERE id = '{campaign}'")


def devices_so_far(stack, campaign: str) -> int:
    return int(query(stack, f"SELECT coalesce(sum(devices), 0) FROM registry.campaign_range WHERE campaign = '{campaign}'"))


def settled(value, quiet: float, within: float, what: str):
    """Waits until a value has been stable for `quiet` seconds, and returns it."""
    deadline = time.monotonic() + within
    last, since = value(), time.monotonic()
    while time.monotonic() - since < quiet:
        assert time.monotonic() < deadline, f"{what} did not come to rest within {within} s"
        time.sleep(0.1)
        present = value()
        if present != last:
            last, since = present, time.monotonic()
    return last


@pytest.fixture
def resting_senders(stack):
    """Stops the senders, and purges their bulk queues afterwards."""
    for sender in SENDERS:
        stack.service("stop", sender)
    yield
    with stack.channel() as channel:
        for queue in QUEUES:
            channel.queue_purge(queue)
    query(stack, f"DELETE FROM registry.registration WHERE app = '{APP}' AND user_id LIKE '{USERS}%'")
    for sender in SENDERS:
        stack.service("start", sender)


def queued(stack) -> list[str]:
    """The tokens of these users in the bulk queues. Devices of the demo are skipped."""
    return [token for token, _ in addressed(stack)]


def addressed(stack) -> list[tuple[str, str]]:
    """The same, each with its notification."""
    found = []
    for targets in (json.loads(body)["targets"] for queue in QUEUES for _, body in stack.take(queue)):
        notifications = targets["notifications"]
        if len(notifications) == 1:
            notifications = notifications * len(targets["tokens"])
        found += zip(targets["tokens"], notifications, strict=True)
    return [(token, notification) for token, notification in found if token.startswith(USERS)]


def test_a_broadcast_survives_the_registry_and_the_database(stack, resting_senders):
    run = f"{USERS}{uuid.uuid4().hex[:8]}"
    fill(stack, run, DEVICES)
    campaign = announce(stack, {"to": "everyone"})
    kills = {"token-registry": 0, "database": 0}
    # A kill after each of these numbers of devices.
    for victim, share in [("token-registry", 0.1), ("token-registry", 0.3), ("database", 0.5), ("token-registry", 0.7)]:
        eventually(lambda: devices_so_far(stack, campaign) >= DEVICES * share, 120, f"{share} of the devices")
        assert state(stack, campaign) == "running", f"it was over before {victim} could be killed"
        stack.service("kill", victim)
        kills[victim] += 1
        stack.service("start", victim)
        if victim == "database":
            stack.service("ready", victim)
    eventually(lambda: state(stack, campaign) == "done", 180, "the end of the campaign")
    shown = pushctl(stack, "show", campaign)
    assert shown.returncode == 0 and "processed         100 %" in shown.stdout, shown

    pushes = addressed(stack)
    tokens = {token for token, _ in pushes}
    twice = len(pushes) - len(set(pushes))
    missing = {f"{run}-{number}" for number in range(DEVICES)} - tokens
    print(json.dumps({"devices": DEVICES, "kills": kills, "twice": twice, "missing": len(missing)}))
    assert (len(missing), len(tokens), len(set(pushes))) == (0, DEVICES, DEVICES)
    # A killed process repeats published steps that were not acknowledged, with the same ids: one for each worker.
    assert twice <= kills["token-registry"] * WORKERS * STEP
    # The progress counts each push once, despite the kills.
    others = int(query(stack, f"SELECT count(*) FROM registry.registration WHERE app = '{APP}' AND state = 'active' "
                             "AND kind IS DISTINCT FROM 'live-activity' AND kind IS DISTINCT FROM 'push-to-start'"))
    assert devices_so_far(stack, campaign) == others


def test_a_broadcast_can_be_paused_resumed_and_cancelled(stack, resting_senders):
    run = f"{USERS}{uuid.uuid4().hex[:8]}"
    fill(stack, run, 2000)
    campaign = announce(stack, {"to": "everyone", "rate": 200})
    eventually(lambda: devices_so_far(stack, campaign) > 0, 60, "the first devices")
    assert pushctl(stack, "pause", campaign).stdout.strip() == "paused"
    assert pushctl(stack, "pause", campaign).returncode != 0

    def progress() -> tuple[int, int]:
        return devices_so_far(stack, campaign), sum(stack.depth(queue) for queue in QUEUES)

    # Paused cursors are checked every five seconds; in this time each could have continued.
    devices, messages = settled(progress, quiet=6, within=60, what="the paused campaign")
    assert state(stack, campaign) == "paused"
    assert 0 < devices < 2000 and messages > 0, "the campaign finished before it was paused"
    listed = pushctl(stack, "list", "--unfinished", "--app", APP)
    assert campaign in listed.stdout and "paused" in listed.stdout
    assert pushctl(stack, "resume", campaign).stdout.strip() == "resumed"
    eventually(lambda: progress()[0] > devices, 30, "its next devices")
    followed = pushctl(stack, "show", "--follow", campaign)
    assert followed.returncode == 0 and "state             done" in followed.stdout, followed
    assert sorted(queued(stack)) == sorted(f"{run}-{number}" for number in range(2000))

    cancelled = announce(stack, {"to": "everyone", "rate": 1})
    eventually(lambda: state(stack, cancelled) == "running", 60, "the second campaign")
    assert pushctl(stack, "cancel", cancelled).stdout.strip() == "cancelled"
    assert pushctl(stack, "resume", cancelled).returncode != 0
    eventually(lambda: stack.depth("token-registry.campaigns") == 0, 60, "the cursor's end")
