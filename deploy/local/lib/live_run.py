"""Many followers of one live surface that changes often: a run on a stack, and what the simulator's phones got.

The rule file of the app has an entry `live.delivery` with the events `order.accepted`, `courier.moved` (paced) and
`order.delivered`, for the users of the event's member `users` (`rules`). With `channel`, phones follow a broadcast
channel.
"""

import dataclasses
import datetime
import json
import pathlib
import time
import uuid

from local_stack import cloud_event, eventually, sql

APP = "family-portal"


def rules(every: str, channel: bool = False) -> str:
    """The text of the rule file, with the time between two updates."""
    channel_key = "channel: { above: 1 }" if channel else "about: An order"
    return f"""
app: {APP}
events:
  order.accepted: &order {{ examples: [{{ order: {{ id: o, minutes: 25 }}, users: [u] }}] }}
  courier.moved: *order
  order.delivered: *order
live:
  delivery:
    to: {{ users: users }}
    item: "{{{{order.id}}}}"
    title: Your order
    attributes-type: DeliveryAttributes
    state: {{ minutes: "{{{{order.minutes}}}}" }}
    start: {{ event: order.accepted }}
    update: {{ event: courier.moved, every: {every} }}
    end: {{ event: order.delivered }}
    {channel_key}
rules: {{}}
"""


@dataclasses.dataclass
class Phone:
    """A phone with the states that APNs delivered to it."""

    start: str
    activity: str
    channel: str | None = None
    got: list[dict] = dataclasses.field(default_factory=list)

    def shown(self) -> list[int]:
        """The states that the phone showed, in order: it ignores a state that is older than the newest one."""
        newest, shown = 0, []
        for push in self.got:
            if push["timestamp"] >= newest:
                newest = push["timestamp"]
                shown.append(push["minutes"])
        return shown

    @property
    def has_ended(self) -> bool:
        return any(push["event"] == "end" for push in self.got)


class LiveRun:
    ENTRY, START, UPDATE, END = "delivery", "order.accepted", "courier.moved", "order.delivered"

    def __init__(self, stack, folder: pathlib.Path, followers: int, seconds: int, late: int, note=lambda text: None):
        self.stack, self.folder, self.seconds, self.note = stack, folder, seconds, note
        self.order = f"o-{uuid.uuid4().hex[:8]}"
        self.users = [f"{self.order}-{number}" for number in range(followers)]
        self.phones = {user: Phone(uuid.uuid4().hex * 2, uuid.uuid4().hex * 2) for user in self.users}
        self.late = self.users[:late]
        self.by_token = {token: phone for phone in self.phones.values() for token in (phone.start, phone.activity)}
        self.channels: dict[str, list[Phone]] = {}
        self.broadcasts = 0
        self.events: list[str] = []
        self.since = stack.http("GET", f"{stack.env['SIMULATOR_URL']}/apns/requests?limit=100000")[1]["last"]

    def run(self, patience: float = 600) -> None:
        """Starts the surface, moves the courier once a second, and ends it. The late phones report their token halfway.

        A phone that follows a channel reports no token.
        """
        self.register("push-to-start", self.users)
        self.happen(self.START, self.seconds + 1)
        self.wait(lambda phone: phone.got, self.users, patience, "start")
        self.register("live-activity", self.users[len(self.late):])
        begin = time.monotonic()
        for second in range(self.seconds):
            self.happen(self.UPDATE, self.seconds - second)
            if second == self.seconds // 2:
                self.register("live-activity", self.late)
            self.collect()
            time.sleep(max(0.0, begin + second + 1 - time.monotonic()))
        self.happen(self.END, 0)
        self.wait(lambda phone: phone.has_ended, self.users, patience, "end")

    def register(self, kind: str, users: list[str]) -> None:
        """Imports a token of each user's phone."""
        users = [user for user in users if not self.phones[user].channel]
        if not users:
            return
        lines = [json.dumps({
            "user": user, "token": self.phones[user].start if kind == "push-to-start" else self.phones[user].activity,
            "kind": kind, "environment": "production", "installation": f"phone-{user}",
            **({"scope": self.order} if kind == "live-activity" else {})}) for user in users]
        file = self.folder / f"{self.order}-{kind}-{len(users)}.ndjson"
        file.write_text("\n".join(lines) + "\n")
        code, output = self.stack.pushctl("devices", "import", str(file), "--app", APP)
        assert code == 0, output

    def happen(self, type: str, minutes: int) -> None:
        self.events.append(uuid.uuid4().hex)
        body = json.loads(cloud_event(
            type, {"order": {"id": self.order, "minutes": minutes}, "users": self.users}, self.events[-1]))
        body["time"] = datetime.datetime.now(datetime.timezone.utc).isoformat().replace("+00:00", "Z")
        self.stack.publish(f"{APP}.{type}", json.dumps(body).encode(), content_type="application/cloudevents+json")

    def collect(self) -> None:
        """Reads the simulator's new requests."""
        while True:
            status, answer = self.stack.http(
                "GET", f"{self.stack.env['SIMULATOR_URL']}/apns/requests?since={self.since}&limit=5000", timeout=60)
            assert status == 200, answer
            self.since = answer["last"]
            for request in answer["requests"]:
                if request.get("status") != 200 or not request.get("body"):
                    continue
                phone, channel = self.by_token.get(request.get("token")), request["headers"].get("apns-channel-id")
                phones = [phone] if phone else self.channels.get(channel, [])
                self.broadcasts += bool(phones) and not phone
                for phone in phones:
                    aps = request["body"]["aps"]
                    if channel := aps.get("input-push-channel"):
                        phone.channel = channel
                        self.channels.setdefault(channel, []).append(phone)
                    phone.got.append({
                        "event": aps["event"], "timestamp": aps["timestamp"],
                        "minutes": aps.get("content-state", {}).get("minutes"),
                        "priority": request["headers"].get("apns-priority", "10")})
            if len(answer["requests"]) < 5000:
                return

    def wait(self, holds, users: list[str], patience: float, what: str) -> None:
        deadline = time.monotonic() + patience
        while missing := [user for user in users if not holds(self.phones[user])]:
            assert time.monotonic() < deadline, f"{len(missing)} of {len(users)} phones have no {what}: {missing[:3]}"
            time.sleep(0.2)
            self.collect()
        self.note(f"{len(users)} phones have the {what}")

    # The result

    def disordered(self) -> list[str]:
        """The users whose phone showed an older state after a newer one, or not the last one at the end."""
        def is_ordered(states: list[int]) -> bool:
            return states == sorted(states, reverse=True) and states[-1] == 0
        return [user for user, phone in self.phones.items() if not is_ordered(phone.shown())]

    def over_budget(self, every: int) -> list[str]:
        """The users whose phone got pushes of high priority beside start and end, or more than one update in a step."""
        def is_over(phone: Phone) -> bool:
            updates = [push for push in phone.got if push["event"] == "update"]
            high = [push for push in updates if push["priority"] != "5"]
            # A late phone gets the newest state once more.
            return len(high) > 0 or len(updates) > self.seconds // every + 3
        return [user for user, phone in self.phones.items() if is_over(phone)]

    def orphans(self) -> list[str]:
        return [user for user, phone in self.phones.items() if phone.got and not phone.has_ended]

    def updates(self) -> int:
        return sum(push["event"] == "update" for phone in self.phones.values() for push in phone.got)

    def fewest_updates(self) -> int:
        """The updates of the phone with the fewest, among those that reported their token in time."""
        late = set(self.late)
        return min(sum(push["event"] == "update" for push in phone.got)
                   for user, phone in self.phones.items() if user not in late)

    def saved(self) -> int:
        """The updates that no phone got, because a later one replaced them."""
        return len(self.users) * self.seconds - self.updates()

    def saved_by_channels(self) -> int:
        """The pushes that phones got through a channel, without one request for each of them."""
        got = sum(push["event"] != "start" for phone in self.phones.values() if phone.channel for push in phone.got)
        return got - self.broadcasts

    def delete_channels(self) -> None:
        """Has the channels of ended surfaces deleted, without the hours in which offline phones can get the end."""
        sql(self.stack, "UPDATE rules.channel SET due_at = now() WHERE item = :'item' AND ends_at <= now()",
            item=f"live/{self.ENTRY}/{self.order}")
        eventually(lambda: self.channels_left() == 0, 60, "the deletion of the channel")

    def channels_left(self) -> int:
        return int(sql(self.stack, "SELECT count(*) FROM rules.channel WHERE item = :'item'",
                       item=f"live/{self.ENTRY}/{self.order}"))
