"""Large fan-outs while the rules service is killed. Checks that every recipient is notified exactly once."""

import collections
import json
import os
import signal
import uuid

from local_stack import cloud_event, eventually
from test_products import sql

NAMED = 3000
STAFF = 2500
# More than the rule's limit of four an hour.
OF_NAMED = 6
CAP = 4
TO_STAFF = 4


class LargeGroups:
    """Events to thousands of recipients: players named by the event, with a cap each, and members of a group."""

    def __init__(self, stack, run: str):
        self.stack, self.run = stack, run
        self.players = [f"named{number}-{run}" for number in range(NAMED)]
        self.staff = [f"staff{number}-{run}" for number in range(STAFF)]
        self.queue = f"test-groups-{run}"
        self.named: list[str] = []
        self.announced: list[str] = []
        self.found: collections.Counter = collections.Counter()
        self.killed_at = "-infinity"

    def __enter__(self):
        with self.stack.channel() as channel:
            # Receives every notification to them, with duplicates.
            channel.queue_declare(self.queue, durable=True, arguments={"x-queue-type": "quorum"})
            for key in ("interactive.baolife", "bulk.monolite-hr"):
                channel.queue_bind(self.queue, "notifications", key)
        self._publish("monolite-hr", "employee.hired", {"employee": {"id": self.staff}}, f"{self.run}-hired")
        eventually(lambda: sql(self.stack, "SELECT count(*) FROM rules.member WHERE app = 'monolite-hr' AND NOT has_left "
                                           f"AND user_id LIKE 'staff%-{self.run}'") == str(STAFF), 60, "the staff")
        return self

    def __exit__(self, *_):
        self._publish("monolite-hr", "employee.left", {"employee": {"id": self.staff}}, f"{self.run}-left")
        with self.stack.channel() as channel:
            channel.queue_delete(self.queue)

    def _publish(self, app: str, type: str, data: dict, id: str) -> None:
        self.stack.publish(f"{app}.{type}", cloud_event(type, data, id), content_type="application/cloudevents+json",
                           delivery_mode=2)

    def address_players(self) -> None:
        id = f"{self.run}-named-{len(self.named)}"
        self._publish("baolife", "achievement.unlocked",
                     {"player": {"id": self.players}, "achievement": {"id": "a", "name": "A"}}, id)
        self.named.append(id)

    def address_staff(self) -> None:
        id = f"{self.run}-news-{len(self.announced)}"
        self._publish("monolite-hr", "announcement.published", {"announcement": {"id": id, "title": "T", "text": "x"}}, id)
        self.announced.append(id)

    @property
    def events(self) -> int:
        """The number of events of the run that concern the groups."""
        return len(self.named) + len(self.announced) + 1

    def unpublished_steps(self) -> str:
        """The fan-out steps that the running or last process decided but has not marked as published. Their lease is
        half a minute.
        """
        return sql(self.stack, "SELECT event, rule, decided FROM rules.crowd WHERE decided IS NOT NULL "
                               f"AND due_at > '{self.killed_at}'::timestamptz + interval '30 seconds' ORDER BY event, rule")

    def record_state(self) -> None:
        """After a kill: records whether fan-outs were in progress, and whether a decided step was not marked as
        published.
        """
        self.found["kills during fan-outs"] += sql(
            self.stack, "SELECT count(*) > 0 FROM rules.crowd WHERE due_at IS NOT NULL") == "t"
        self.found["kills between decision and publish"] += self.unpublished_steps() != ""
        self.killed_at = sql(self.stack, "SELECT now()")

    def kill_between_decision_and_publish(self) -> None:
        """Kills rules after a step was decided and before the broker can confirm it: the broker is stopped meanwhile.
        """
        self.address_staff()
        self.stack.service("ready", "rules")
        eventually(lambda: sql(self.stack, f"SELECT 1 FROM rules.event WHERE id = '{self.announced[-1]}'"), 60,
                   "the announcement to be decided")
        broker = int(self.stack.service("pid", "broker"))
        os.kill(broker, signal.SIGSTOP)
        try:
            seen = ["", ""]

            def is_stuck() -> bool:
                seen.append(self.unpublished_steps())
                return seen[-1] != "" and seen[-3:] == seen[-1:] * 3

            eventually(is_stuck, 60, "a step that waits for the broker")
            self.stack.service("kill", "rules")
        finally:
            os.kill(broker, signal.SIGCONT)
        self.record_state()
        self.stack.service("start", "rules")

    def check(self) -> None:
        ours = f"id = ANY('{{{','.join(self.named + self.announced)}}}')"
        eventually(lambda: sql(self.stack, "SELECT count(*) FROM rules.crowd JOIN rules.event ON event = key "
                                           f"WHERE {ours} AND due_at IS NOT NULL") == "0", 300, "all fan-outs to end")

        # One decision per recipient and event, and four pushes for each recipient with a cap of four.
        rows = sql(self.stack, "SELECT id, count(*), count(DISTINCT user_id), count(DISTINCT notification) "
                               f"FROM rules.decision JOIN rules.event ON event = key WHERE {ours} GROUP BY id")
        decided = {row.split("|")[0]: row.split("|")[1:] for row in rows.split()}
        assert decided == {id: [str(NAMED)] * 3 for id in self.named} | {id: [str(STAFF)] * 3 for id in self.announced}
        per_player = (f"SELECT count(*) FROM (SELECT user_id FROM rules.decision JOIN rules.event ON event = key "
                      f"WHERE {ours} AND app = 'baolife' AND answer = 'push' GROUP BY user_id "
                      f"HAVING count(*) = {CAP}) AS capped")
        assert sql(self.stack, per_player) == str(NAMED), "each player's cap counts each push once"
        charged = ("SELECT count(*) FROM rules.person WHERE app = 'baolife' AND user_id LIKE "
                   f"'named%-{self.run}' AND jsonb_array_length(logs -> 'hourly') = {CAP}")
        assert sql(self.stack, charged) == str(NAMED)
        kept = f"SELECT count(*) FROM rules.inbox WHERE app = 'baolife' AND user_id LIKE 'named%-{self.run}'"
        assert sql(self.stack, kept) == str(NAMED * len(self.named))

        # The published notifications are those decided as pushes, each at least once.
        pushed = set(sql(self.stack, "SELECT notification FROM rules.decision JOIN rules.event ON event = key "
                                     f"WHERE {ours} AND answer = 'push'").split())
        published = self.published()
        assert set(published) == pushed, f"{len(pushed - set(published))} missing, {len(set(published) - pushed)} unexpected"
        self.found["repeated notifications"] = published.total() - len(published)
        # The registry reports an outcome for recipients without a device.
        eventually(lambda: sql(self.stack, "SELECT count(*) FROM rules.decision JOIN rules.event ON event = key "
                                           f"WHERE {ours} AND answer = 'push' AND NOT EXISTS (SELECT FROM rules.outcome "
                                           "WHERE outcome.notification = decision.notification)") == "0",
                   180, "an outcome for every recipient")

    def published(self) -> collections.Counter:
        people = set(self.players) | set(self.staff)
        return collections.Counter(
            str(uuid.UUID(recipient["notification"]))
            for _, body in self.stack.take(self.queue)
            for recipient in json.loads(body)["recipients"] if recipient["user"] in people)
