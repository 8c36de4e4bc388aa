"""Crowds that are told while rules die: who is in them, what death found, and whether everybody was told once."""

import collections
import json
import os
import signal
import uuid

from local_stack import cloud_event, eventually
from test_products import sql

NAMED = 3000
STAFF = 2500
# More of them than the four an hour that the rule allows.
OF_NAMED = 6
CAP = 4
TO_STAFF = 4


class Crowds:
    """Events to thousands: players whom the event names, each with a cap, and members of a group."""

    def __init__(self, stack, run: str):
        self.stack, self.run = stack, run
        self.players = [f"named{number}-{run}" for number in range(NAMED)]
        self.staff = [f"staff{number}-{run}" for number in range(STAFF)]
        self.queue = f"test-crowds-{run}"
        self.named: list[str] = []
        self.announced: list[str] = []
        self.found: collections.Counter = collections.Counter()
        self.died_at = "-infinity"

    def __enter__(self):
        with self.stack.channel() as channel:
            # Everything that is published to them, repeated or not.
            channel.queue_declare(self.queue, durable=True, arguments={"x-queue-type": "quorum"})
            for key in ("interactive.baolife", "bulk.monolite-hr"):
                channel.queue_bind(self.queue, "notifications", key)
        self._happen("monolite-hr", "employee.hired", {"employee": {"id": self.staff}}, f"{self.run}-hired")
        eventually(lambda: sql(self.stack, "SELECT count(*) FROM rules.member WHERE app = 'monolite-hr' AND NOT has_left "
                                           f"AND user_id LIKE 'staff%-{self.run}'") == str(STAFF), 60, "the staff")
        return self

    def __exit__(self, *_):
        self._happen("monolite-hr", "employee.left", {"employee": {"id": self.staff}}, f"{self.run}-left")
        with self.stack.channel() as channel:
            channel.queue_delete(self.queue)

    def _happen(self, app: str, type: str, data: dict, id: str) -> None:
        self.stack.publish(f"{app}.{type}", cloud_event(type, data, id), content_type="application/cloudevents+json",
                           delivery_mode=2)

    def address_players(self) -> None:
        id = f"{self.run}-named-{len(self.named)}"
        self._happen("baolife", "achievement.unlocked",
                     {"player": {"id": self.players}, "achievement": {"id": "a", "name": "A"}}, id)
        self.named.append(id)

    def address_staff(self) -> None:
        id = f"{self.run}-news-{len(self.announced)}"
        self._happen("monolite-hr", "announcement.published", {"announcement": {"id": id, "title": "T", "text": "x"}}, id)
        self.announced.append(id)

    @property
    def events(self) -> int:
        """How many of a run's events are about crowds."""
        return len(self.named) + len(self.announced) + 1

    def unsaid(self) -> str:
        """The steps that the process which runs, or ran last, decided and has not noted as published: lent for half a minute."""
        return sql(self.stack, "SELECT event, rule, decided FROM rules.crowd WHERE decided IS NOT NULL "
                               f"AND due_at > '{self.died_at}'::timestamptz + interval '30 seconds' ORDER BY event, rule")

    def look(self) -> None:
        """After a death: were crowds under way, and was a step decided that nobody had noted as published?"""
        self.found["deaths with crowds under way"] += sql(
            self.stack, "SELECT count(*) > 0 FROM rules.crowd WHERE due_at IS NOT NULL") == "t"
        self.found["deaths over a step"] += self.unsaid() != ""
        self.died_at = sql(self.stack, "SELECT now()")

    def die_over_a_step(self) -> None:
        """Kills rules after a step was decided and before the broker, which is halted meanwhile, can have said a word."""
        self.address_staff()
        self.stack.service("ready", "rules")
        eventually(lambda: sql(self.stack, f"SELECT 1 FROM rules.event WHERE id = '{self.announced[-1]}'"), 60,
                   "the announcement to be decided")
        broker = int(self.stack.service("pid", "broker"))
        os.kill(broker, signal.SIGSTOP)
        try:
            seen = ["", ""]

            def is_stuck() -> bool:
                seen.append(self.unsaid())
                return seen[-1] != "" and seen[-3:] == seen[-1:] * 3

            eventually(is_stuck, 60, "a step to wait for the broker")
            self.stack.service("kill", "rules")
        finally:
            os.kill(broker, signal.SIGCONT)
        self.look()
        self.stack.service("start", "rules")

    def check(self) -> None:
        ours = f"id = ANY('{{{','.join(self.named + self.announced)}}}')"
        eventually(lambda: sql(self.stack, "SELECT count(*) FROM rules.crowd JOIN rules.event ON event = key "
                                           f"WHERE {ours} AND due_at IS NOT NULL") == "0", 300, "all crowds to be told")

        # One decision for each person of each event, and four pushes for each who has a cap of four.
        rows = sql(self.stack, "SELECT id, count(*), count(DISTINCT user_id), count(DISTINCT notification) "
                               f"FROM rules.decision JOIN rules.event ON event = key WHERE {ours} GROUP BY id")
        decided = {row.split("|")[0]: row.split("|")[1:] for row in rows.split()}
        assert decided == {id: [str(NAMED)] * 3 for id in self.named} | {id: [str(STAFF)] * 3 for id in self.announced}
        per_player = (f"SELECT count(*) FROM (SELECT user_id FROM rules.decision JOIN rules.event ON event = key "
                      f"WHERE {ours} AND app = 'baolife' AND answer = 'push' GROUP BY user_id "
                      f"HAVING count(*) = {CAP}) AS capped")
        assert sql(self.stack, per_player) == str(NAMED), "nobody is charged twice, and nobody spared"
        charged = ("SELECT count(*) FROM rules.person WHERE app = 'baolife' AND user_id LIKE "
                   f"'named%-{self.run}' AND jsonb_array_length(logs -> 'hourly') = {CAP}")
        assert sql(self.stack, charged) == str(NAMED)
        kept = f"SELECT count(*) FROM rules.inbox WHERE app = 'baolife' AND user_id LIKE 'named%-{self.run}'"
        assert sql(self.stack, kept) == str(NAMED * len(self.named))

        # What was published is what was decided to be pushed, each at least once.
        pushed = set(sql(self.stack, "SELECT notification FROM rules.decision JOIN rules.event ON event = key "
                                     f"WHERE {ours} AND answer = 'push'").split())
        published = self.published()
        assert set(published) == pushed, f"{len(pushed - set(published))} missing, {len(set(published) - pushed)} strange"
        self.found["people told again"] = published.total() - len(published)
        # And it came through: the registry answers for who has no device.
        eventually(lambda: sql(self.stack, "SELECT count(*) FROM rules.decision JOIN rules.event ON event = key "
                                           f"WHERE {ours} AND answer = 'push' AND NOT EXISTS (SELECT FROM rules.outcome "
                                           "WHERE outcome.notification = decision.notification)") == "0",
                   180, "an answer about everybody")

    def published(self) -> collections.Counter:
        people = set(self.players) | set(self.staff)
        return collections.Counter(
            str(uuid.UUID(recipient["notification"]))
            for _, body in self.stack.take(self.queue)
            for recipient in json.loads(body)["recipients"] if recipient["user"] in people)
