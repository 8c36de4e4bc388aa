"""The registry's throughput compared with Postgres alone: pgbench runs the same lookup and the same upsert.

Uses its own broker and database, filled by COPY with ten thousand and ten million registrations. Everything runs on one
machine, so each figure is a ratio of two consecutive measurements.
"""
# Builds: pushctl token-registry provider-simulator rules feedback apns-sender fcm-sender events-api webhook-sender

import argparse
import os
import pathlib
import signal
import statistics
import sys
import time
import uuid

from bench_figures import Figures
from bench_postgres import buffers
from bench_registry import QUEUES, RegisteredUsers, drain_queues
from bench_steady import percentile
from local_stack import Stack, eventually

PORT_BASE = 18960
BATCH = 500  # users of a notification


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--state", required=True)
    arguments.add_argument("--small", type=int, default=10_000, help="registrations in the small table")
    arguments.add_argument("--large", type=int, default=10_000_000, help="registrations in the large table")
    arguments.add_argument("--broadcast", type=int, default=1_000_000, help="devices of a broadcast")
    arguments.add_argument("--notifications", type=int, default=1600, help="per round, with 500 users each")
    arguments.add_argument("--rounds", type=int, default=3)
    arguments.add_argument("--seconds", type=int, default=15, help="duration of pgbench and wrk runs")
    arguments.add_argument("--only", choices=["resolving"], help="only this part")
    options = arguments.parse_args()
    stack = Stack(pathlib.Path(options.state), PORT_BASE, build="release")
    stack.environment["LOCAL_DATABASE_BUFFERS"] = buffers()
    stack.up("--no-demo", timeout=1800)
    figures = Figures("registry")
    try:
        # Senders, rules and feedback are not measured and would use the same two cores.
        for service in ["rules", "feedback", "apns-sender", "fcm-sender", "events-api", "webhook-sender", "provider-simulator"]:
            stack.service("stop", service)
        Bench(stack, options, figures).run()
    finally:
        stack.down("--erase")
    figures.finish(pathlib.Path(options.state).parent)


class Bench:
    def __init__(self, stack: Stack, options, figures: Figures):
        self.stack, self.options, self.figures = stack, options, figures
        self.users = RegisteredUsers(stack)

    def run(self) -> None:
        small = self.resolving(self.options.small)
        if not self.options.only:
            self.registering()
            self.broadcasting()
        large = self.resolving(self.options.large)
        self.figures.add(
            "resolving 500 users a notification: over pgbench's lookups", small[0] / small[1], "ratio", at_least=0.6,
            ours=small[0], limit=small[1])
        # The registry's share must stay flat; pgbench measures how Postgres slows down with size (decision 68).
        sizes = f"{self.options.large:,} registrations over {self.options.small:,}"
        ours, theirs = large[0] / large[1], small[0] / small[1]
        self.figures.add(f"the same with {sizes}", ours / theirs, "ratio", at_least=0.75, ours=ours, limit=theirs)
        self.figures.add(
            f"with {self.options.large:,} registrations: over pgbench's lookups there", ours, "ratio", ours=large[0],
            limit=large[1])
        self.figures.add(
            f"pgbench's lookups, {sizes}", large[1] / small[1], "ratio", ours=large[1], limit=small[1])
        self.figures.add(f"notifications/s, {sizes}", large[0] / small[0], "ratio", ours=large[0], limit=small[0])

    # Resolving

    def resolving(self, size: int) -> tuple[float, float]:
        """Notifications with 500 users each per second: by the registry, and as pgbench lookups."""
        self.users.resize(size)
        # Warm-up: each connection's process reads the pages of a large table once.
        self.resolve(size)
        ours, theirs = [], []
        for _ in range(self.options.rounds):
            theirs.append(self.users.lookups(BATCH, self.options.seconds))
            ours.append(self.resolve(size))
            note(f"{size:,} registrations: {ours[-1]:.1f} notifications/s, pgbench {theirs[-1]:.1f} lookups/s")
        return statistics.median(ours), statistics.median(theirs)

    def resolve(self, size: int) -> float:
        """Fills the queue while the registry is stopped, and measures until its last push is published."""
        registry = int(self.stack.service("pid", "token-registry"))
        drain_queues(self.stack)
        os.kill(registry, signal.SIGSTOP)
        try:
            expected = self.users.notify(self.options.notifications, BATCH)
        finally:
            os.kill(registry, signal.SIGCONT)
        begin = time.monotonic()
        eventually(lambda: self.depth() >= expected, 300, "the last push")
        seconds = time.monotonic() - begin
        if self.depth() != expected:
            raise SystemExit(f"{self.depth()} pushes instead of {expected}: the measurement is invalid")
        drain_queues(self.stack)
        return self.options.notifications / seconds

    def depth(self) -> int:
        return sum(self.stack.depth(queue) for queue in QUEUES)

    # Registering

    def registering(self) -> None:
        theirs = self.users.upserts(self.options.seconds)
        ours = self.users.wrk(self.options.seconds)
        self.figures.add(
            "registrations a second over HTTP, 64 clients: over pgbench's upserts", ours / theirs, "ratio", at_least=0.4,
            ours=ours, limit=theirs)

    # Broadcasting

    def broadcasting(self) -> None:
        self.users.resize(self.options.broadcast)
        before = self.interactive(20, lambda: False)
        drain_queues(self.stack)
        campaign = str(uuid.uuid4())
        begin = time.monotonic()
        self.users.announce(campaign)
        during = self.interactive(600, lambda: self.users.is_done(campaign))
        seconds = self.users.duration(campaign)
        devices = self.users.devices(campaign)
        if devices != self.options.broadcast:
            raise SystemExit(f"{devices} devices instead of {self.options.broadcast}: the measurement is invalid")
        self.figures.add(
            f"a broadcast to {self.options.broadcast:,} devices, beside interactive notifications", seconds, "s", at_most=60)
        self.figures.add(
            "p99 of interactive notifications during the broadcast over before it", during / before, "ratio", at_most=2,
            ours=during, limit=before)
        drain_queues(self.stack)
        # The same without interactive notifications.
        campaign = str(uuid.uuid4())
        self.users.announce(campaign)
        eventually(lambda: self.users.is_done(campaign), 600, "the second broadcast")
        self.figures.add("the same alone", self.users.duration(campaign), "s", at_most=60)
        drain_queues(self.stack)

    def interactive(self, seconds: float, is_over) -> float:
        """p99 in milliseconds from a notification to one user until its push is in the sender's queue."""
        delays = self.users.round_trips(50, seconds, is_over)
        note(f"{len(delays)} interactive notifications: p50 {percentile(delays, 0.5):.1f} ms, "
             f"p99 {percentile(delays, 0.99):.1f} ms, worst {delays[-1]:.1f} ms")
        return percentile(delays, 0.99)


def note(text: str) -> None:
    print(f"    {text}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
