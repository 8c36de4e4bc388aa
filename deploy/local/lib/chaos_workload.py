"""The operations of a chaos run as data. Reads no clock, file or connection.

Each operation is a function of the seed and its number. The result of an earlier operation changes none, so runs with
equal seeds have equal operations also when a fault meets them at other moments.
"""

import datetime
import itertools
import json
import random
from collections.abc import Iterator
from dataclasses import dataclass

from chaos_people import APPS, App, Phone

# Events by type, and how often each occurs. `moving`: a plain event to a user whose phone changes.
EVENTS = {
    "note.plain": 50, "note.once": 10, "note.capped": 12, "note.waiting": 4, "note.quiet": 3, "note.scheduled": 8,
    "note.gathered": 8, "moving": 9,
}
# Shares of events that expire soon, that are published twice, and that are published again after an unknown result.
EXPIRING, REPEATED, RETRIED = 0.1, 0.1, 0.5
# Seconds until an expiring event is void, and the most until a scheduled one is due.
LIFETIMES, SCHEDULE = (0.05, 2, 6), 12
CROWDS = ("crowd.called", "campaign.started")
# Requests of phones, and how often each occurs.
REQUESTS = {"takeover": 6, "sign-out": 3, "preference": 3, "erasure": 1, "registration": 4, "revocation": 2}


@dataclass(frozen=True)
class Event:
    """An event to publish. Its times count from the publish."""

    app: str
    type: str
    id: str
    text: str
    # Empty for a campaign, which goes to every device.
    users: tuple[str, ...]
    # Whether each recipient keeps one registration for the whole run.
    steady: bool = True
    expires_after: float | None = None
    due_after: float | None = None
    # Whether it is published again after a confirm, and after an unknown result.
    twice: bool = False
    retried: bool = False

    @property
    def key(self) -> str:
        """The routing key."""
        return f"{self.app}.{self.type}"

    def body(self, at: float) -> bytes:
        """The CloudEvent, if it is published at this time."""
        data, attributes = {"text": self.text}, {}
        if self.type != "campaign.started":
            data["who"] = list(self.users)
        if self.due_after is not None:
            data["at"] = rfc3339(at + self.due_after)
        if self.expires_after is not None:
            attributes["expirytime"] = rfc3339(at + self.expires_after)
        event = {"specversion": "1.0", "id": self.id, "source": "/chaos", "type": self.type, "data": data}
        return json.dumps(event | attributes).encode()


@dataclass(frozen=True)
class Request:
    """A request of a phone. `wants` is the choice of a preference change."""

    kind: str
    phone: Phone
    user: str
    # Seconds after the previous request of the same app.
    pause: float
    wants: bool = True


class Events:
    """The events of one publisher."""

    def __init__(self, people, seed: int):
        self.people, self.seed, self.name = people, seed, f"{people.run}-{seed}"

    def __iter__(self) -> Iterator[Event]:
        return map(self.event, itertools.count())

    def event(self, number: int) -> Event:
        chance = self._chance(number)
        app = self.people.apps[chance.choice(list(APPS))]
        kind = chance.choices(list(EVENTS), list(EVENTS.values()))[0]
        users, type = self._recipients(chance, app, kind), "note.plain" if kind == "moving" else kind
        may_expire = type in ("note.plain", "note.once")
        return Event(
            app.name, type, f"{self.name}-{number}", self._text(chance, number), users, kind != "moving",
            chance.choice(LIFETIMES) if may_expire and chance.random() < EXPIRING else None,
            chance.uniform(0, SCHEDULE) if type == "note.scheduled" else None,
            # A sender may push such an event twice if it is published twice.
            type != "note.once" and chance.random() < REPEATED, type != "note.once" and chance.random() < RETRIED)

    def crowd(self, app: str, type: str, number: int) -> Event:
        """An event to a large group or, for a campaign, to every device of an app."""
        name = f"crowd-{number}"
        users = tuple(self.people.crowd(app)) if type == "crowd.called" else ()
        return Event(app, type, f"{self.name}-{name}", self._text(self._chance(name), name), users, steady=False)

    def _chance(self, number) -> random.Random:
        return random.Random(f"{self.name}-{number}")

    def _text(self, chance: random.Random, number) -> str:
        return f"text-{self.name}-{number}-{chance.getrandbits(48):012x}"

    def _recipients(self, chance: random.Random, app: App, kind: str) -> tuple[str, ...]:
        if kind == "moving":
            return (chance.choice(chance.choice([*app.moving, *app.choosing]).users),)
        if kind in ("note.plain", "note.once"):
            return tuple(phone.users[0] for phone in chance.sample(app.steady, chance.choice([1, 1, 1, 3])))
        phones = {"note.capped": app.capped, "note.waiting": app.waiting, "note.quiet": app.quiet,
                  "note.scheduled": app.steady, "note.gathered": app.digesting}
        return (chance.choice(phones[kind]).users[0],)


def requests(people, seed: int, app: App, pause: float = 0.4) -> Iterator[Request]:
    """The requests of the phones of one app, without end. A phone's owner is the user of its last takeover."""
    chance = random.Random(f"{seed}-{app.name}")
    owners = {phone.token: 0 for phone in app.moving}
    wanted = {phone.token: True for phone in app.choosing}
    for number in itertools.count(1):
        wait = chance.uniform(0.5, 1.5) * pause
        match chance.choices(list(REQUESTS), list(REQUESTS.values()))[0]:
            case "takeover":
                phone = chance.choice(app.moving)
                owners[phone.token] = (owners[phone.token] + 1) % len(phone.users)
                yield Request("takeover", phone, phone.users[owners[phone.token]], wait)
            case "sign-out":
                phone = chance.choice(app.moving)
                yield Request("sign-out", phone, phone.users[owners[phone.token]], wait)
            case "preference":
                phone = chance.choice(app.choosing)
                wanted[phone.token] = not wanted[phone.token]
                yield Request("preference", phone, phone.users[0], wait, wanted[phone.token])
            case "erasure":
                phone = passing(people, app.name, number)
                yield Request("registration", phone, phone.users[0], wait)
                yield Request("erasure", phone, phone.users[0], 0)
            case "registration":
                phone = chance.choice(app.steady)
                yield Request("registration", phone, phone.users[0], wait)
            case "revocation":
                # The provider reports the token as gone; then the phone registers again.
                phone = chance.choice(app.renewing)
                yield Request("revocation", phone, phone.users[0], wait)
                yield Request("registration", phone, phone.users[0], 0)


def passing(people, app: str, number: int) -> Phone:
    """A phone of a user who is erased."""
    provider = APPS[app][number % len(APPS[app])]
    digits = f"{random.Random(f'{people.run}-{app}-{number}').getrandbits(256):064x}"
    token = digits if provider == "apns" else f"fcm-{digits[:40]}"
    return Phone(app, provider, token, (f"passing-{people.run}-{app}-{number}",))


def rfc3339(at: float) -> str:
    return datetime.datetime.fromtimestamp(at, datetime.timezone.utc).isoformat(timespec="milliseconds")
