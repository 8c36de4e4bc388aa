"""The rule files and events of the rules bench, and its pgbench equivalent."""

import json
import os
import pathlib
import time
import uuid

import pika
from bench_postgres import pgbench, query
from bench_steady import Stream
from local_stack import Stack, cloud_event, eventually

APP = "family-portal"
EVENTS = f"rules.events.app.{APP}"
NOTIFICATIONS = {lane: f"token-registry.notifications.{lane}.app.{APP}" for lane in ("interactive", "bulk")}
CAP = 10
# The users addressed in turn: enough that no user reaches a cap.
USERS = 100_000


def rule_file(rules: int) -> str:
    """A rule file with this many rules, each for its own kind, and one bulk rule. Every rule needs an example."""
    lines = [
        f"app: {APP}",
        "types:", "  news: { about: News }",
        "caps:", f"  hourly: {{ at-most: {CAP}, within: 1h }}",
        "events:",
        "  thing.happened:", "    about: Something of some kind happened to someone.", "    examples:",
        *(f"      - {{ kind: k-{number}, who: [u], what: it }}" for number in range(rules)),
        "  list.published:", "    about: Something for many recipients.", "    examples:",
        "      - { who: [u], what: it }",
        "rules:",
    ]
    manner = "how: { sound: default, lane: %s, expires-after: 24h }\n    policy: { type: news, caps: [hourly] }"
    words = 'to: { users: who }\n    say: { title: News, body: "This happened: {{what}}" }'
    for number in range(rules):
        lines += [f"  thing-{number}:", f"    when: {{ event: thing.happened, data: {{ kind: [k-{number}] }} }}",
                  f"    {words}", f"    {manner % 'interactive'}"]
    lines += ["  list:", "    when: { event: list.published }", f"    {words}", f"    {manner % 'bulk'}"]
    return "\n".join(lines) + "\n"


def thing(kind: str, users: list[str]) -> tuple[str, bytes]:
    name = str(uuid.uuid4())
    return name, cloud_event("thing.happened", {"kind": kind, "who": users, "what": name}, name)


class RulesService:
    """A stack with only the rules service running, and a generated rule file."""

    def __init__(self, stack: Stack, rules: pathlib.Path):
        self.stack, self.rules = stack, rules

    def keep(self, rules: int) -> None:
        """Restarts the service with this many rules."""
        self.stop()
        self.write(rules)
        self.start()

    def write(self, rules: int) -> None:
        (self.rules / f"{APP}.yaml").write_text(rule_file(rules))

    def start(self) -> None:
        self.stack.service("start", "rules")
        self.stack.service("ready", "rules")

    def stop(self) -> None:
        self.stack.service("stop", "rules")

    @property
    def process(self) -> pathlib.Path:
        return pathlib.Path("/proc") / self.stack.service("pid", "rules")

    def cpu(self) -> float:
        """CPU seconds used by the service."""
        fields = (self.process / "stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def resident(self) -> float:
        """In megabytes."""
        return int((self.process / "statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6

    def purge(self) -> None:
        with self.stack.channel() as channel:
            for queue in [EVENTS, *NOTIFICATIONS.values()]:
                channel.queue_purge(queue)

    def publish(self, events: list[bytes], routing_key: str = f"{APP}.thing.happened") -> None:
        connection = pika.BlockingConnection(pika.URLParameters(self.stack.env["AMQP_URL"]))
        channel = connection.channel()
        for body in events:
            channel.basic_publish(
                "events", routing_key, body,
                pika.BasicProperties(content_type="application/cloudevents+json", delivery_mode=2))
        connection.close()

    def work_off(self, events: list[bytes]) -> float:
        """Events per second. The service is stopped while its queue is filled."""
        self.stop()
        self.purge()
        self.publish(events)
        eventually(lambda: self.stack.depth(EVENTS) >= len(events), 120, "every event in its queue")
        self.start()
        begin, first = time.monotonic(), self.decided()
        eventually(lambda: self.decided() == len(events), 600, "the last event")
        if first > len(events) / 2:
            raise SystemExit("most events were decided before the measurement started: use more events")
        return (len(events) - first) / (time.monotonic() - begin)

    def spend(self, events: list[bytes]) -> float:
        """CPU seconds per event, for a running service."""
        before, spent = self.decided(), self.cpu()
        self.publish(events)
        eventually(lambda: self.decided() == before + len(events), 600, "the last event")
        return (self.cpu() - spent) / len(events)

    def decided(self) -> int:
        return int(query(self.stack, "SELECT count(*) FROM rules.event"))

    def clear(self) -> None:
        query(self.stack, "TRUNCATE rules.event, rules.decision, rules.saying, rules.inbox, rules.held, rules.person, rules.crowd")

    # Postgres alone

    def writes(self, clients: int, seconds: int) -> float:
        """The reads and writes of an event to one recipient with preferences and a cap, run by pgbench as one
        transaction each.

        A colon followed by a letter is a pgbench variable.
        """
        self.clear()
        return pgbench(self.stack, f"""
            \\set n random(0, {USERS - 1})
            BEGIN;
            INSERT INTO rules.event (key, app, source, id, type, rule_set, arrived_at)
            VALUES (gen_random_uuid(), '{APP}', '/bench', gen_random_uuid()::text, 'thing.happened', gen_random_uuid(), now())
            ON CONFLICT DO NOTHING RETURNING key;
            INSERT INTO rules.person (app, user_id) VALUES ('{APP}', 'someone-' || :n) ON CONFLICT DO NOTHING;
            SELECT settings, logs FROM rules.person WHERE app = '{APP}' AND user_id = 'someone-' || :n FOR UPDATE;
            INSERT INTO rules.decision (notification, event, rule, user_id, decided_at, rule_set)
            VALUES (gen_random_uuid(), gen_random_uuid(), 'thing-0', 'someone-' || :n, now(), gen_random_uuid());
            INSERT INTO rules.saying (id, app, rule, lane, content, mutes, correlation, said_at)
            VALUES (gen_random_uuid(), '{APP}', 'thing-0', 'interactive',
                '{{"title": "News", "body": "This happened: it", "sound": "default", "silent": false}}', '{{}}',
                gen_random_uuid()::text, now());
            INSERT INTO rules.inbox (notification, app, user_id, saying, at)
            VALUES (gen_random_uuid(), '{APP}', 'someone-' || :n, gen_random_uuid(), now());
            UPDATE rules.person SET logs = '{{"hourly": [1767225600000]}}' WHERE app = '{APP}' AND user_id = 'someone-' || :n;
            COMMIT;
            """, clients, seconds)

    # Scheduled notifications

    def schedule(self, items: int, seconds: float, wait: float) -> None:
        """Inserts scheduled bulk notifications, due evenly over `seconds` after `wait`."""
        query(self.stack, f"""
            CREATE TEMPORARY TABLE item AS
                SELECT n, gen_random_uuid() AS saying, gen_random_uuid() AS event, gen_random_uuid() AS notification,
                    now() + interval '1 second' * ({wait} + n * {seconds} / {items}) AS due
                FROM generate_series(1, {items}) AS n;
            INSERT INTO rules.saying (id, app, rule, lane, content, mutes, correlation, said_at)
                SELECT saying, '{APP}', 'list', 'bulk',
                    '{{"title":"News","body":"This happened: it","sound":"default","silent":false}}', '{{}}', event::text, now()
                FROM item;
            INSERT INTO rules.held
                (notification, app, user_id, saying, event, since, due_at, quiet_holds, step, kind, in_inbox)
                SELECT notification, '{APP}', 'later-' || n % {USERS}, saying, event, due, due, 0, 1, 'scheduled', false
                FROM item;
            ANALYZE rules.held, rules.saying;
            """)

    def is_waiting(self) -> bool:
        """Reads only the first index entry: counting a million rows every second would disturb the measurement."""
        return query(self.stack, "SELECT min(due_at) FROM rules.held") != ""

    def stream(self) -> Stream:
        def message(number: int) -> tuple[str, bytes]:
            return thing("k-0", [f"someone-{number % USERS}"])

        return Stream(
            "events", f"{APP}.thing.happened", "application/cloudevents+json", NOTIFICATIONS["interactive"], message,
            lambda body: [json.loads(body)["trace"]["correlation"]])
