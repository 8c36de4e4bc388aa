"""A sender's complete path on one machine: the broker's queue, the sender, a provider, and outcomes on the broker.

Compared in the same run with h2load as the limit of the provider's side, and with a plain librabbitmq loop
(benches/bus.c) as the floor of the broker's side. Floor and sender use the same queues and number of messages.
webpush-sender encrypts each message, so apns-sender is its reference.
"""
# Builds: pushctl apns-sender fcm-sender webpush-sender
# Needs: bus

import argparse
import pathlib
import statistics
import sys
import time
from dataclasses import dataclass

from bench_bus import PLACEHOLDER, Bus, Histogram, Pushes, Sample, Sender
from bench_figures import Figures
from bench_provider import Provider, free_port, h2load
from local_stack import eventually

OUTCOMES = "rules.outcomes"
OTHER_OUTCOMES = "feedback.outcomes"
CORE_OF_H2LOAD, CORE_OF_ITS_PROVIDER = 1, 0
DELIVERY_TO_ACK = "heliograph_delivery_to_ack_seconds"
HANDLE = "heliograph_handle_seconds"
STREAMS_OPEN = "heliograph_push_streams_open"
PREFETCH = 500  # of a sender's interactive queue
IN_FLIGHT = 5000
QUEUED = 100_000
# For the memory measurement: the apps with full queues, and the targets of a push. All prefetched pushes are in flight.
FULL = {"apns": (["family-portal", "hide-and-seek"], 6), "fcm": (["family-portal"], 12), "webpush": (["family-portal"], 12)}
# As many streams as requests in flight.
MORE_STREAMS = {"apns": {"APNS_CONNECTIONS": "5"}, "fcm": {"FCM_CONNECTIONS": "50"}, "webpush": {"WEBPUSH_CONNECTIONS": "50"}}


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--state", required=True)
    arguments.add_argument("--provider", choices=["apns", "fcm", "webpush"], default="apns")
    arguments.add_argument("--pushes", type=int, default=300_000, help="per round, with one target each")
    arguments.add_argument("--notifications", type=int, default=500_000, help="per round, with 100 targets per push")
    arguments.add_argument("--rounds", type=int, default=3)
    arguments.add_argument("--seconds", type=float, default=20, help="duration of a steady stream, per round")
    arguments.add_argument("--minutes", type=float, default=2, help="duration of the memory measurement; 0 skips it")
    arguments.add_argument("--only", choices=["rates", "delays", "memory"], help="only this part; delays needs --halves")
    arguments.add_argument(
        "--halves", type=float, nargs=2, metavar=("ONE", "HUNDRED"),
        help="notifications per second of the steady streams with 1 and 100 targets per push; default: half of the measured rates")
    options = arguments.parse_args()
    if options.only == "delays" and not options.halves:
        arguments.error("--only delays needs --halves")
    bench = Bench(options)
    try:
        bench.run()
    finally:
        bench.bus.close()


@dataclass
class Run:
    """Notifications per second, and CPU microseconds of the sender for each."""

    rate: float
    cpu: float


class Bench:
    def __init__(self, options):
        self.options = options
        self.state = pathlib.Path(options.state)
        address = next(
            line for line in (self.state / "env").read_text().splitlines() if line.startswith("export AMQP_URL="))
        self.bus = Bus(self.state, address.split("=", 1)[1].strip("'"))
        # Endpoints of browsers name the provider, so its port stays.
        self.port = free_port()
        self.figures = Figures(f"sender {options.provider}")
        self.single = self.pushes(1)
        self.hundred = self.pushes(100)
        self.encrypts = options.provider == "webpush"

    def pushes(self, targets: int, provider: str | None = None, **more) -> Pushes:
        return Pushes(
            self.bus, provider or self.options.provider, targets, origin=f"https://localhost:{self.port}", **more)

    def provider(self, **more) -> Provider:
        return Provider(self.state / "provider", port=self.port, **more)

    def run(self) -> None:
        only = self.options.only
        halves = dict(zip((1, 100), self.options.halves or ()))
        if only in (None, "rates"):
            halves = {targets: reached / 2 for targets, reached in self.rates().items()} | halves
        if only in (None, "delays"):
            with self.provider().running() as provider:
                for pushes in (self.single, self.hundred):
                    self.delays(provider, pushes, halves[pushes.targets])
        if only in (None, "memory") and self.options.minutes > 0:
            self.memory()
        self.figures.finish(self.state)

    def rates(self) -> dict[int, float]:
        """Returns the rate in notifications per second, by targets per push."""
        limits, floors, singles, hundreds, apns_singles, apns_hundreds = [], [], [], [], [], []
        for _ in range(self.options.rounds):
            with self.provider(core=CORE_OF_ITS_PROVIDER).running() as provider:
                limits.append(h2load(provider, 300_000, CORE_OF_H2LOAD))
            note(f"h2load {limits[-1].rate:.0f}/s at {limits[-1].cpu:.2f} µs")
            floors.append(self.floor())
            note(f"floor {floors[-1].rate:.0f}/s at {floors[-1].cpu:.2f} µs")
            with self.provider().running() as provider:
                singles.append(self.drain(provider, self.single, self.options.pushes))
                note(f"1 target a push: {singles[-1].rate:.0f}/s at {singles[-1].cpu:.2f} µs")
                hundreds.append(self.drain(provider, self.hundred, self.options.notifications // 100))
                note(f"100 targets a push: {hundreds[-1].rate:.0f}/s at {hundreds[-1].cpu:.2f} µs")
                if self.encrypts:
                    apns_singles.append(self.drain(provider, self.pushes(1, "apns"), self.options.pushes))
                    apns_hundreds.append(self.drain(provider, self.pushes(100, "apns"), self.options.notifications // 100))
                    note(f"apns-sender: {apns_singles[-1].rate:.0f}/s and {apns_hundreds[-1].rate:.0f}/s")
        if self.encrypts:
            for words, ours, apns in [("1 target", singles, apns_singles), ("100 targets", hundreds, apns_hundreds)]:
                self.compare(f"{words} a push: notifications/s over apns-sender's", ours, apns, "rate")
                self.compare(f"{words} a push: CPU over apns-sender's", ours, apns, "cpu")
        self.compare("1 target a push: notifications/s over the floor", singles, floors, "rate", **self.bound(at_least=0.55))
        self.compare("1 target a push: CPU over h2load's per request", singles, limits, "cpu", **self.bound(at_most=5))
        self.compare("100 targets a push: notifications/s over h2load's", hundreds, limits, "rate", **self.bound(at_least=0.3))
        self.compare("100 targets a push: CPU over h2load's per request", hundreds, limits, "cpu", **self.bound(at_most=2.5))
        return {1: statistics.median(run.rate for run in singles), 100: statistics.median(run.rate for run in hundreds)}

    def bound(self, **bound) -> dict:
        """The bound of senders that do not encrypt."""
        return {} if self.encrypts else bound

    def compare(self, figure: str, ours: list, limits: list, part: str, **bound) -> None:
        pairs = [(getattr(a, part), getattr(b, part)) for a, b in zip(ours, limits)]
        self.figures.add(
            figure, statistics.median(a / b for a, b in pairs), "ratio", **bound,
            ours=statistics.median(a for a, _ in pairs), limit=statistics.median(b for _, b in pairs))

    def empty(self, queue: str) -> None:
        eventually(lambda: self.bus.consumers(queue) == 0, 10, f"{queue} without a consumer (a sender of an earlier run?)")
        self.bus.purge(OUTCOMES, OTHER_OUTCOMES, queue)

    def floor(self) -> Run:
        """Consumes the same pushes and publishes a message of the outcome's size for each, without a sender."""
        self.empty(self.single.queue)
        self.single.publish(self.options.pushes)
        ran = self.bus.run("floor", *self.floor_between(self.single, 0, self.options.pushes, 1000))
        if self.bus.depth(OUTCOMES) != self.options.pushes or self.bus.depth(self.single.queue) != 0:
            raise SystemExit("the floor lost messages: the measurement is invalid")
        return Run(ran["messages"] / ran["seconds"], ran["cpu"] * 1e6 / ran["messages"])

    def floor_between(self, pushes: Pushes, first: int, count: int, prefetch: int) -> list:
        """The arguments of a floor run that consumes `count` pushes and publishes outcomes numbered from `first`."""
        result = self.state / "outcome.json"
        result.write_text(accepted(self.options.provider, pushes.targets))
        return [pushes.queue, "outcomes", f"{self.options.provider}.accepted", result, first, count, prefetch]

    def drain(self, provider: Provider, pushes: Pushes, count: int) -> Run:
        """From the first outcome on the bus to the last, by the depth of their queue."""
        self.empty(pushes.queue)
        pushes.publish(count)
        samples: list[tuple[Sample, int]] = []
        with Sender(pushes.sender, self.state, provider).running() as sender:
            while not samples or samples[-1][0].at - last_growth(samples)[0].at < patience:
                sample, depth = sender.sample(), self.bus.depth(OUTCOMES)
                if depth > 0:
                    samples.append((sample, depth))
                patience = 2 if self.bus.depth(pushes.queue) == 0 else 30
                time.sleep(0.02)
        first, last = samples[0], last_growth(samples)
        counted = self.bus.run("count", OUTCOMES)
        wanted = count * pushes.targets
        if (counted["outcomes"], counted["numbers"]) != (wanted, count) or self.bus.depth(pushes.queue) != 0:
            raise SystemExit(f"of {wanted} notifications in {count} pushes found outcomes: {counted}, "
                             f"{self.bus.depth(OTHER_OUTCOMES)} are not acceptances, "
                             f"and {self.bus.depth(pushes.queue)} pushes remain")
        notifications = wanted * (last[1] - first[1]) / last[1]
        return Run(
            notifications / (last[0].at - first[0].at), (last[0].cpu - first[0].cpu) * 1e6 / notifications)

    def delays(self, provider: Provider, pushes: Pushes, notifications: float) -> None:
        """Medians over all rounds: on a busy machine, one pause determines a round's tail."""
        rate, words = notifications / pushes.targets, f"with {pushes.targets} a push, at half of that rate"
        rounds = []
        for _ in range(self.options.rounds):
            floor = self.delays_of_floor(pushes, rate)
            rounds.append((*self.delays_of_sender(provider, pushes, rate), floor))
            note(f"{pushes.targets} a push, {rate:.0f} pushes/s: p99 from delivery to ack {rounds[-1][0]['p99']:.1f} ms")
        acknowledged, handled, paced, floor = zip(*rounds)
        for figure, ran, bounds in [
            # With one target, broker and publisher alone use the whole machine at that rate.
            (f"p99 from delivery to ack {words}", acknowledged, {"at_most": 30} if pushes.targets > 1 else {}),
            (f"of which at the provider {words}", handled, {}),
            (f"the same of the floor {words}", floor, {}),
            (f"p99 from publish to outcome {words}", paced, {}),
        ]:
            p99s = [each["p99"] for each in ran]
            self.figures.add(
                figure, statistics.median(p99s), "ms", **bounds, worst=max(p99s),
                p50=statistics.median(each["p50"] for each in ran),
                pushes=statistics.median(each["rate"] for each in paced))

    def delays_of_sender(self, provider: Provider, pushes: Pushes, rate: float) -> tuple[dict, dict, dict]:
        """Delays in milliseconds: from delivery to ack at the sender's connection, the provider's part of it, and from
        publish to a consumer of the outcome, which adds the broker at both ends.
        """
        self.empty(pushes.queue)
        with Sender(pushes.sender, self.state, provider).running() as sender:
            sender.await_ready()
            # Warm-up: connections and caches.
            pushes.pace(OUTCOMES, rate, self.options.seconds / 10)
            before = [sender.histogram(name) for name in (DELIVERY_TO_ACK, HANDLE)]
            paced = pushes.pace(OUTCOMES, rate, self.options.seconds)
            acknowledged, handled = (
                milliseconds(sender.histogram(name) - earlier)
                for name, earlier in zip((DELIVERY_TO_ACK, HANDLE), before))
        if paced["rate"] < rate * 0.9:
            raise SystemExit(f"the publisher reached {paced['rate']}/s of {rate:.0f}/s: the delays are invalid")
        return acknowledged, handled, paced

    def delays_of_floor(self, pushes: Pushes, rate: float) -> dict:
        """From delivery to ack of the plain loop, which waits only for the broker."""
        self.empty(pushes.queue)
        count = int(rate * self.options.seconds)
        with self.bus.running("floor", *self.floor_between(pushes, pushes.published, count, PREFETCH)) as answer:
            pushes.pace(OUTCOMES, rate, self.options.seconds)
            return answer()

    def memory(self) -> None:
        """Resident memory with full queues and many requests in flight, sampled over minutes."""
        self.empty(self.single.queue)
        # Work from every queue of this provider.
        more = MORE_STREAMS[self.options.provider]
        apps, targets = FULL[self.options.provider]
        loads = [
            self.pushes(targets, lane=lane, app=app) for app in apps for lane in ("interactive", "bulk")]
        for pushes in loads:
            self.bus.purge(pushes.queue)
            pushes.publish(QUEUED // len(loads))
        # Slow enough that publisher and provider are far below their limits.
        with self.provider(delay_ms=1500).running() as provider:
            with Sender(loads[0].sender, self.state, provider, **more).running() as sender:
                sender.await_ready()
                samples = self.watch(sender, loads)
        for pushes in loads:
            self.bus.purge(pushes.queue)
        memory = [sample.memory for sample, _ in samples]
        third = len(memory) // 3
        in_flight = statistics.median(open_streams for _, open_streams in samples[third:])
        self.figures.add(
            f"resident memory, {QUEUED} pushes queued, over {self.options.minutes:g} min", max(memory), "MB", at_most=60,
            in_flight=in_flight)
        self.figures.add(
            "growth from the second third to the last",
            statistics.median(memory[2 * third:]) - statistics.median(memory[third:2 * third]), "MB", at_most=2)
        self.figures.add("requests in flight meanwhile", in_flight, "requests", at_least=IN_FLIGHT * 0.9)

    def watch(self, sender: Sender, loads: list[Pushes]) -> list[tuple[Sample, float]]:
        """Samples the sender and its open streams every second."""
        samples: list[tuple[Sample, float]] = []
        end = time.monotonic() + self.options.minutes * 60
        while time.monotonic() < end:
            time.sleep(1)
            for pushes in loads:
                if self.bus.depth(pushes.queue) < QUEUED // len(loads) - 2000:
                    pushes.publish(2000)
            samples.append((sender.sample(), sender.gauge(STREAMS_OPEN)))
            self.bus.purge(OUTCOMES, OTHER_OUTCOMES)
        return samples


def last_growth(samples: list[tuple[Sample, int]]) -> tuple[Sample, int]:
    """The sample since which the outcome queue has not grown."""
    return next(sample for sample in samples if sample[1] == samples[-1][1])


def milliseconds(histogram: Histogram) -> dict:
    return {f"p{quantile}": histogram.quantile(quantile / 100) * 1000 for quantile in (50, 99)}


def note(text: str) -> None:
    print(f"    {text}", file=sys.stderr)


def accepted(provider: str, targets: int) -> str:
    """The outcome message of a fully accepted push, equal to a sender's except for its ids."""
    devices = ",".join(f'"00000003-0000-5000-8000-{number:012x}"' for number in range(targets))
    ids = ",".join(['"00000004-0000-5000-8000-000000000000"'] * targets)
    return (
        f'{{"accepted":{{"at":1767225600123,"devices":[{devices}],"ids":[{ids}],'
        f'"notifications":["00000001-0000-5000-8000-{PLACEHOLDER}"]}},'
        f'"app":"family-portal","environment":"production","lane":"interactive","origin":"{provider}",'
        '"trace":{"causation":"00000002-0000-5000-8000-000000000000","correlation":"bench","id":'
        '"00000005-0000-5000-8000-000000000000"},"type":"heliograph.outcomes","version":2}')


if __name__ == "__main__":
    main()
