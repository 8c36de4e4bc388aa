"""The users, devices and bearer tokens of a chaos run."""

import base64
import hashlib
import hmac
import json
import pathlib
import random
import time
from dataclasses import dataclass, field

# The apps of the demo with their providers. Each has all kinds of events.
APPS = {"family-portal": ("apns", "fcm"), "hide-and-seek": ("apns",), "baolife": ("apns",), "monolite-hr": ("fcm",)}
PLATFORMS = {"apns": "ios", "fcm": "android"}
# More than one transaction decides about: LargeAudience.threshold.
CROWD = 1100


@dataclass
class Phone:
    """A device token. `users` take it over from one another."""

    app: str
    provider: str
    token: str
    users: tuple[str, ...]


@dataclass
class App:
    name: str
    # One phone each, for the whole run.
    steady: list[Phone] = field(default_factory=list)
    # Users with a cap, a cap that holds, quiet hours, digests: phones of the same kind.
    capped: list[Phone] = field(default_factory=list)
    waiting: list[Phone] = field(default_factory=list)
    quiet: list[Phone] = field(default_factory=list)
    digesting: list[Phone] = field(default_factory=list)
    # Users who switch pushes off and on.
    choosing: list[Phone] = field(default_factory=list)
    # Phones that two users take over from one another and sign out of.
    moving: list[Phone] = field(default_factory=list)
    # Phones whose provider reports the token as gone before they register again.
    renewing: list[Phone] = field(default_factory=list)

    @property
    def lasting(self) -> list[Phone]:
        """Phones with one user for the whole run."""
        return [*self.steady, *self.capped, *self.waiting, *self.quiet, *self.digesting, *self.choosing]


class People:
    """The population, derived from a seed and unique to a run."""

    SIZES = {
        "steady": 12, "capped": 8, "waiting": 3, "quiet": 2, "digesting": 3, "choosing": 2, "moving": 4, "renewing": 2}

    def __init__(self, seed: int, bearer_secret: pathlib.Path):
        self.random = random.Random(seed)
        self.run = f"{self.random.getrandbits(32):08x}"
        self.secret = bearer_secret.read_text().splitlines()[0].encode()
        self.apps = {name: self._app(name) for name in APPS}
        self.bearers: dict[tuple[str, str], str] = {}

    def token(self, provider: str) -> str:
        digits = f"{self.random.getrandbits(256):064x}"
        return digits if provider == "apns" else f"fcm-{digits[:40]}"

    def _app(self, name: str) -> App:
        app, providers = App(name), APPS[name]
        for kind, size in self.SIZES.items():
            for number in range(size):
                provider = providers[number % len(providers)]
                names = ("a", "b") if kind == "moving" else ("a",)
                users = tuple(f"{kind}-{self.run}-{name}-{number}{suffix}" for suffix in names)
                getattr(app, kind).append(Phone(name, provider, self.token(provider), users))
        return app

    def crowd(self, app: str) -> list[str]:
        """The users of a crowd: the steady ones, and users without a device."""
        steady = [phone.users[0] for phone in self.apps[app].steady]
        return steady + [f"crowd-{self.run}-{app}-{number}" for number in range(CROWD - len(steady))]

    def bearer(self, app: str, user: str) -> str:
        """A bearer token as the app's backend would sign it."""
        if (app, user) not in self.bearers:
            claims = {"iss": "heliograph-development", "aud": app, "sub": user, "iat": int(time.time()),
                      "exp": int(time.time()) + 86_400}
            signed = ".".join(encoded(json.dumps(part).encode()) for part in ({"alg": "HS256", "typ": "JWT"}, claims))
            digest = hmac.new(self.secret, signed.encode(), hashlib.sha256).digest()
            self.bearers[app, user] = f"{signed}.{encoded(digest)}"
        return self.bearers[app, user]


def encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()
