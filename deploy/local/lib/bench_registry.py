"""The registrations of the registry bench, its requests, and the pgbench equivalents."""

import base64
import hmac
import json
import pathlib
import re
import subprocess
import sys
import time
import uuid

import pika
from bench_postgres import pgbench, query
from bench_steady import Stream, delays
from local_stack import Stack, eventually

APP = "family-portal"
QUEUES = [f"{sender}-sender.pushes.bulk.{APP}" for sender in ("apns", "fcm")]
INTERACTIVE = f"apns-sender.pushes.interactive.{APP}"
CLIENTS = 64


def drain_queues(stack: Stack) -> None:
    with stack.channel() as channel:
        for queue in [*QUEUES, INTERACTIVE, "rules.outcomes", "feedback.outcomes"]:
            channel.queue_purge(queue)


class RegisteredUsers:
    """Users `user-0`, `user-1`, … with one device each: two of three on APNs, the third on FCM."""

    def __init__(self, stack: Stack):
        self.stack, self.size, self.template = stack, 0, None

    def resize(self, size: int) -> None:
        """Fills the table by COPY up to `size` registrations, after deleting those of wrk and pgbench."""
        url = self.stack.env["DATABASE_URL"]
        begin = time.monotonic()
        rows = f"""
            SELECT md5(n::text)::uuid, '{APP}', 'user-' || n, CASE WHEN n % 3 = 0 THEN 'fcm' ELSE 'apns' END, 'production',
                CASE WHEN n % 3 = 0 THEN repeat(md5(n::text), 5) ELSE repeat(md5(n::text), 2) END,
                now() - n % 1000 * interval '1 minute', now() - interval '1 day', 'de-CH', '4.2'
            FROM generate_series({self.size}, {size - 1}) AS n"""
        columns = ("device_id, app, user_id, provider, environment, token, registered_at, state_changed_at, locale, "
                   "app_version")
        if size > self.size:
            source = subprocess.Popen(["psql", "-Xq", url, "-c", f"COPY ({rows}) TO STDOUT (FORMAT binary)"],
                                      stdout=subprocess.PIPE)
            # A bulk load publishes no events.
            sink = subprocess.run(
                ["psql", "-Xq", url, "-v", "ON_ERROR_STOP=1", "-c", "SET session_replication_role = replica", "-c",
                 f"COPY registry.registration ({columns}) FROM STDIN (FORMAT binary)"], stdin=source.stdout, timeout=3600)
            if sink.returncode != 0 or source.wait() != 0:
                raise SystemExit("COPY of the registrations failed")
        eventually(lambda: self.is_cleared(size), 60, f"a table of {size} registrations")
        # The bench measures the steady state, so the caches are filled first.
        query(self.stack, "VACUUM ANALYZE registry.registration; CHECKPOINT; CREATE EXTENSION IF NOT EXISTS pg_prewarm; "
              "SELECT pg_prewarm('registry.registration'), pg_prewarm('registry.registration_of_user')")
        print(f"    {size - self.size:,} registrations by COPY in {time.monotonic() - begin:.0f} s", file=sys.stderr)
        self.size = size

    def is_cleared(self, size: int) -> bool:
        """Deletes again if needed: the registry may store wrk's last registrations after wrk has ended."""
        query(self.stack, "DELETE FROM registry.registration WHERE user_id NOT LIKE 'user-%'; TRUNCATE registry.outbox")
        return int(query(self.stack, "SELECT count(*) FROM registry.registration")) == size

    # Resolving

    def lookups(self, users: int, seconds: int) -> float:
        """The registry's lookup of this many users, run by pgbench; lookups per second."""
        return pgbench(self.stack, f"""
            \\set start random(0, {self.size - 1})
            SELECT r.device_id, r.provider, r.environment, coalesce(r.token, ''), r.kind, r.installation, r.scope, r.topic,
                r.registered_at, u.place
            FROM unnest(ARRAY(SELECT '{APP}' FROM generate_series(1, {users})),
                ARRAY(SELECT 'user-' || (:start::bigint + i * 7919) % {self.size} FROM generate_series(1, {users}) AS i)
            ) WITH ORDINALITY AS u (app, user_id, place)
            JOIN registry.registration r ON r.app = u.app AND r.user_id = u.user_id AND r.state = 'active';
            """, clients=4, seconds=seconds)

    def notify(self, notifications: int, users: int) -> int:
        """Publishes notifications in the bulk lane, and returns the number of resulting pushes."""
        pushes = 0
        with self.stack.channel() as channel:
            for number in range(notifications):
                members = [(number * 104_729 + i * 7919) % self.size for i in range(1, users + 1)]
                pushes += len({member % 3 == 0 for member in members})
                body = notification("bulk", [f"user-{member}" for member in members])
                channel.basic_publish("notifications", f"bulk.{APP}", body, pika.BasicProperties(delivery_mode=2))
        return pushes

    # Registering

    def upserts(self, seconds: int) -> float:
        """The registry's upsert with its advisory lock in one transaction, run by pgbench with as many clients."""
        return pgbench(self.stack, f"""
            \\set n random(0, 99999)
            BEGIN;
            SELECT pg_advisory_xact_lock(hashtextextended('user {APP} w-' || :n, 0));
            INSERT INTO registry.registration AS r (device_id, app, user_id, provider, environment, token, kind,
                registered_at, state_changed_at)
            VALUES (md5('pgbench' || :n)::uuid, '{APP}', 'w-' || :n, 'apns', 'production', md5('pgbench' || :n), 'alert',
                statement_timestamp(), statement_timestamp())
            ON CONFLICT (device_id) DO UPDATE SET user_id = excluded.user_id, token = excluded.token, kind = excluded.kind,
                registered_at = excluded.registered_at, state = 'active', state_reason = NULL, stale_since = NULL
            WHERE excluded.registered_at > r.registered_at;
            COMMIT;
            """, CLIENTS, seconds)

    def wrk(self, seconds: int) -> float:
        """Registrations per second over HTTP, each a different token of one user."""
        script = self.stack.state / "register.lua"
        bearers = ",".join(f'"{self.bearer(f"w-{number}")}"' for number in range(1000))
        script.write_text("local bearers = {" + bearers + "}" + """
            function request()
                local user, device = math.random(1, #bearers), math.random(1, 100)
                return wrk.format("POST", nil, {["Authorization"] = "Bearer " .. bearers[user],
                    ["Content-Type"] = "application/json"}, string.format(
                    '{"token":"%08x%056x","platform":"ios","environment":"production"}', user, device))
            end
            function init(arguments) math.randomseed(os.time()) end
            function done(summary, latency, requests)
                local errors = summary.errors
                io.stderr:write(errors.status + errors.connect + errors.read + errors.timeout)
            end
            """)
        done = subprocess.run(
            ["wrk", "-t", "2", "-c", str(CLIENTS), "-d", f"{seconds}s", "-s", script,
             f"{self.stack.env['REGISTRY_URL']}/api/notifications/push/register"],
            capture_output=True, text=True, timeout=seconds + 60)
        found = re.search(r"Requests/sec:\s+([0-9.]+)", done.stdout)
        if done.returncode != 0 or not found or done.stderr.strip() != "0":
            raise SystemExit(f"wrk: {done.stdout[-500:]} {done.stderr[-500:]}")
        return float(found[1])

    def bearer(self, user: str) -> str:
        """A bearer token signed like one of an app's backend (HS256)."""
        def part(data: bytes) -> bytes:
            return base64.urlsafe_b64encode(data).rstrip(b"=")

        claims = {"sub": user, "exp": int(time.time()) + 3600}
        if self.template is None:
            header, body, _ = self.stack.bearer(APP, user).split(".")
            decode = lambda text: json.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))  # noqa: E731
            self.template = (decode(header), decode(body))
        header, known = self.template
        signed = part(json.dumps(header).encode()) + b"." + part(json.dumps({**known, **claims}).encode())
        secret = pathlib.Path(self.stack.env["BEARER_SECRET_FILE"]).read_text().splitlines()[0].encode()
        return (signed + b"." + part(hmac.digest(secret, signed, "sha256"))).decode()

    # Broadcasting

    def announce(self, campaign: str) -> None:
        body = json.loads(notification("bulk", []))
        del body["recipients"]
        body["audience"] = {"campaign": campaign, "to": "everyone"}
        with self.stack.channel() as channel:
            channel.basic_publish(
                "notifications", f"bulk.{APP}", json.dumps(body).encode(), pika.BasicProperties(delivery_mode=2))

    def is_done(self, campaign: str) -> bool:
        return query(self.stack, f"SELECT state FROM registry.campaign WHERE id = '{campaign}'") == "done"

    def devices(self, campaign: str) -> int:
        return int(query(self.stack, f"SELECT sum(devices) FROM registry.campaign_range WHERE campaign = '{campaign}'"))

    def duration(self, campaign: str) -> float:
        """Seconds from the notification's arrival to its last push."""
        return float(query(
            self.stack, f"SELECT extract(epoch FROM finished_at - created_at) FROM registry.campaign WHERE id = '{campaign}'"))

    def round_trips(self, rate: float, seconds: float, is_over) -> list[float]:
        """Milliseconds from a notification to one user to its push."""
        def message(number: int) -> tuple[str, bytes]:
            body = notification("interactive", [f"user-{number % (self.size // 3) * 3 + 1}"])
            return json.loads(body)["recipients"][0]["notification"], body

        stream = Stream(
            "notifications", f"interactive.{APP}", "application/json", INTERACTIVE, message,
            lambda body: (name.lower() for name in json.loads(body)["targets"]["notifications"]))
        return delays(self.stack, stream, rate, seconds, is_over)


def notification(lane: str, users: list[str]) -> bytes:
    return json.dumps({
        "type": "heliograph.notification", "version": 1, "app": APP, "rule": "bench", "lane": lane,
        "trace": {"id": str(uuid.uuid4()), "correlation": "bench", "causation": "bench"},
        "content": {"title": "New message", "body": "Pat: are you coming tonight?", "sound": "default", "silent": False},
        "recipients": [{"user": user, "notification": str(uuid.uuid4())} for user in users],
    }, separators=(",", ":"), sort_keys=True).encode()
