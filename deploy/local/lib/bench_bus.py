"""The plain bus client (benches/bus.c), generated pushes, and a sender process with its measurements."""

import contextlib
import json
import os
import pathlib
import re
import signal
import subprocess
import time
import urllib.request
from dataclasses import dataclass, field

import pika
from local_stack import ROOT

PLACEHOLDER = "@" * 12
TICKS = os.sysconf("SC_CLK_TCK")


class Bus:
    """The bench's broker, used through a plain C client."""

    def __init__(self, folder: pathlib.Path, url: str):
        self.folder, self.url, self.tool = folder, url, folder / "bus"
        subprocess.run(
            ["cc", "-O2", "-Wall", "-Werror", "-D_GNU_SOURCE", "-o", self.tool, ROOT / "deploy/local/benches/bus.c",
             "-lrabbitmq", "-lpthread", "-lm"],
            check=True,
        )
        # Like pika: the path of the URL is the virtual host.
        parameters = pika.URLParameters(url)
        # No heartbeats are sent while a part of the bench runs.
        parameters.heartbeat = 0
        self.connection = pika.BlockingConnection(parameters)
        self.channel = self.connection.channel()

    def run(self, mode: str, *arguments) -> dict:
        with self.running(mode, *arguments) as answer:
            return answer()

    @contextlib.contextmanager
    def running(self, mode: str, *arguments):
        """Yields a function that waits for the client to end and returns its output."""
        process = subprocess.Popen(
            [self.tool, mode, self.url, *map(str, arguments)], stdout=subprocess.PIPE, text=True)

        def answer() -> dict:
            line, _ = process.communicate()
            if process.returncode:
                raise SystemExit(f"bus {mode} ended with {process.returncode}")
            return json.loads(line)

        try:
            yield answer
        finally:
            process.kill()
            process.wait()

    def depth(self, queue: str) -> int:
        return self.channel.queue_declare(queue, passive=True).method.message_count

    def consumers(self, queue: str) -> int:
        return self.channel.queue_declare(queue, passive=True).method.consumer_count

    def purge(self, *queues: str) -> None:
        for queue in queues:
            self.channel.queue_purge(queue)

    def close(self) -> None:
        self.connection.close()


# A browser's public key and secret: those of the example in RFC 8291. No part of a bench decrypts.
BROWSER_KEYS = {
    "auth": "BTBZMqHH6r4Tts7J_aSIgg",
    "p256dh": "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4",
}


@dataclass
class Pushes:
    """Distinct messages for one provider's queue, each to a number of users with one device each."""

    bus: Bus
    provider: str
    targets: int
    lane: str = "interactive"
    app: str = "family-portal"
    # The push service of browsers.
    origin: str = ""
    published: int = 0
    template: pathlib.Path = field(init=False)

    def __post_init__(self):
        self.template = self.bus.folder / f"push-{self.key}-{self.targets}.json"
        # Like the registry: sorted members, no spaces.
        self.template.write_text(json.dumps(self.message(), separators=(",", ":"), sort_keys=True))

    @property
    def queue(self) -> str:
        return f"{self.provider}-sender.pushes.{self.lane}.{self.app}"

    @property
    def sender(self) -> str:
        return f"{self.provider}-sender"

    @property
    def key(self) -> str:
        return f"{self.provider}.{self.lane}.{self.app}"

    def message(self) -> dict:
        def token(number: int) -> str:
            match self.provider:
                case "apns":
                    return f"{number:064x}"
                case "fcm":
                    return f"bench-{number:06}:{'A' * 140}"
            return json.dumps(
                {"endpoint": f"{self.origin}/push/{number:06}{'A' * 140}", "keys": BROWSER_KEYS}, separators=(",", ":"))

        return {
            "type": "heliograph.push", "version": 2,
            "trace": {"id": f"00000002-0000-5000-8000-{PLACEHOLDER}", "correlation": "bench", "causation": "bench"},
            "app": self.app, "provider": self.provider, "environment": "production", "lane": self.lane,
            "content": {
                "title": "New message", "body": "Pat: " + "are you coming tonight? " * 5, "sound": "default",
                "category": "chat_message", "thread": "family", "silent": False,
                "data": {"message_id": "00000000000000000001", "thread_id": None},
            },
            "expiresAt": 4102444800000,
            "targets": {
                "badges": [3], "devices": [f"00000003-0000-5000-8000-{number:012x}" for number in range(self.targets)],
                "notifications": [f"00000001-{number:04x}-5000-8000-{PLACEHOLDER}" for number in range(self.targets)],
                "registeredAt": [1767220000000 + number * 977 for number in range(self.targets)],
                "tokens": [token(number) for number in range(self.targets)],
            },
        }

    def publish(self, count: int) -> None:
        self.bus.run("load", "pushes", self.key, self.template, self.published, count)
        self.published += count

    def pace(self, outcomes: str, rate: float, seconds: float) -> dict:
        first = self.published
        self.published += int(rate * seconds)
        return self.bus.run("pace", "pushes", self.key, self.template, outcomes, first, rate, seconds)


@dataclass
class Sample:
    at: float
    cpu: float
    memory: float


@dataclass
class Histogram:
    """Counts by bucket, keyed by upper bound in seconds."""

    buckets: dict[float, float]

    @property
    def count(self) -> float:
        return sum(self.buckets.values())

    def __sub__(self, earlier: "Histogram") -> "Histogram":
        return Histogram({bound: n - earlier.buckets.get(bound, 0) for bound, n in self.buckets.items()})

    def quantile(self, share: float) -> float:
        """Like Prometheus: interpolates within a bucket, up to the last finite bound."""
        below, lower = 0.0, 0.0
        for bound in sorted(self.buckets):
            if below + self.buckets[bound] >= share * self.count:
                if bound == float("inf"):
                    return lower
                return lower + (bound - lower) * (share * self.count - below) / self.buckets[bound]
            below, lower = below + self.buckets[bound], bound
        return lower


# The addresses and limits that each sender reads.
OWN = {
    "apns-sender": {"APNS_URL", "APNS_SANDBOX_URL", "APNS_CHANNELS_URL", "APNS_CHANNELS_SANDBOX_URL"},
    "fcm-sender": {"FCM_URL", "FCM_TOKEN_URL", "FCM_QUOTA"},
    "webpush-sender": set(),
}


class Sender:
    """A release build of a sender, connected to the bench's provider."""

    def __init__(self, name: str, folder: pathlib.Path, provider, **more: str):
        lines = (folder / f"{name}.env").read_text().splitlines()
        self.name, self.folder = name, folder
        self.environment = dict(line.split("=", 1) for line in lines) | {
            "APNS_URL": provider.url, "APNS_SANDBOX_URL": provider.url,
            "APNS_CHANNELS_URL": provider.url, "APNS_CHANNELS_SANDBOX_URL": provider.url, "FCM_URL": provider.url,
            "FCM_TOKEN_URL": provider.url + "/token", "PROVIDER_CA_FILE": str(provider.certificate),
            "LOG_LEVEL": "warning",
            # The default project quota is below a sender's throughput.
            "FCM_QUOTA": "1000000000",
        } | more
        for unused in set().union(*OWN.values()) - OWN[name]:
            del self.environment[unused]

    @contextlib.contextmanager
    def running(self):
        with open(self.folder / "log" / f"{self.name}.log", "a") as log:
            self.process = subprocess.Popen(
                [ROOT / ".build/release" / self.name], env=self.environment, stdout=log, stderr=log)
        try:
            yield self
        finally:
            self.process.send_signal(signal.SIGTERM)
            self.process.wait(60)

    def sample(self) -> Sample:
        """The current CPU seconds and resident memory in MB."""
        if self.process.poll() is not None:
            raise SystemExit(f"{self.name} ended: see {self.folder}/log/{self.name}.log")
        fields = pathlib.Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        pages = int(pathlib.Path(f"/proc/{self.process.pid}/statm").read_text().split()[1])
        return Sample(
            time.monotonic(), (int(fields[11]) + int(fields[12])) / TICKS, pages * os.sysconf("SC_PAGE_SIZE") / 1e6)

    def metrics(self) -> list[str]:
        with urllib.request.urlopen(f"{self.admin}/metrics", timeout=10) as answer:
            return answer.read().decode().splitlines()

    def gauge(self, name: str) -> float:
        """The current sum of all series with a name in `/metrics`."""
        return sum(float(line.rsplit(" ", 1)[1]) for line in self.metrics() if line.startswith(name + "{"))

    def histogram(self, name: str) -> Histogram:
        """The current histogram over all series with a name in `/metrics`."""
        buckets: dict[float, float] = {}
        last: dict[str, float] = {}
        for line in self.metrics():
            if found := re.match(name + r'_bucket\{(.*)le="([^"]+)"\} (\S+)$', line):
                series, bound, total = found[1], float(found[2]), float(found[3])
                buckets[bound] = buckets.get(bound, 0) + total - last.get(series, 0)
                last[series] = total
        return Histogram(buckets)

    @property
    def admin(self) -> str:
        return f"http://127.0.0.1:{self.environment['HELIOGRAPH_ADMIN_PORT']}"

    def await_ready(self) -> None:
        url = f"{self.admin}/health/ready"
        deadline = time.monotonic() + 60
        while True:
            self.sample()
            try:
                with urllib.request.urlopen(url, timeout=2):
                    return
            except OSError:
                if time.monotonic() > deadline:
                    raise SystemExit(f"{self.name} did not become ready: see {self.folder}/log/{self.name}.log")
                time.sleep(0.05)
