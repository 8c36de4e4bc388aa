"""Rules: the cost of matching, the throughput, and the delay of interactive events beside large ones.

Uses its own broker and database. The registry is stopped, so that notifications stay in its queues. Everything runs on
one machine: each figure is a ratio of two consecutive measurements.
"""
# Builds: pushctl token-registry provider-simulator rules feedback apns-sender fcm-sender events-api webhook-sender

import argparse
import pathlib
import statistics
import sys
import tempfile
import time

from bench_figures import Figures
from bench_postgres import buffers
from bench_rules import APP, NOTIFICATIONS, USERS, RulesService, thing
from bench_steady import delays, percentile
from local_stack import Stack, cloud_event, eventually

PORT_BASE = 19040


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--state", required=True)
    arguments.add_argument("--rules", type=int, default=10_000, help="rules in the large file")
    arguments.add_argument("--events", type=int, default=20_000, help="events per round")
    arguments.add_argument("--rounds", type=int, default=3)
    arguments.add_argument("--recipients", type=int, default=10_000, help="recipients of the large event")
    arguments.add_argument("--items", type=int, default=1_000_000, help="notifications due in one minute")
    arguments.add_argument("--rate", type=float, default=50, help="interactive events per second during the measurements")
    arguments.add_argument("--seconds", type=int, default=15, help="duration of a pgbench run")
    arguments.add_argument("--only", choices=["waiting"], help="only the delays of interactive events")
    options = arguments.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        rules_service = RulesService(Stack(pathlib.Path(options.state), PORT_BASE, build="release"), pathlib.Path(folder))
        rules_service.write(1)
        rules_service.stack.environment["LOCAL_RULES_DIRECTORY"] = folder
        rules_service.stack.environment["LOCAL_DATABASE_BUFFERS"] = buffers()
        rules_service.stack.up("--no-demo", timeout=1800)
        figures = Figures("rules")
        try:
            for service in ["token-registry", "feedback", "apns-sender", "fcm-sender", "events-api", "webhook-sender",
                            "provider-simulator"]:
                rules_service.stack.service("stop", service)
            Bench(rules_service, options, figures).run()
        finally:
            rules_service.stack.down("--erase")
    figures.finish(pathlib.Path(options.state).parent)


class Bench:
    def __init__(self, rules_service: RulesService, options, figures: Figures):
        self.rules_service, self.options, self.figures = rules_service, options, figures

    def run(self) -> None:
        if not self.options.only:
            self.deciding()
            self.matching()
        # Warm-up: connections and caches.
        self.interactive("warming up", 10)
        before = self.interactive("alone", 20)
        resident = self.rules_service.resident()
        self.one_to_many(before)
        self.due_at_once(before)
        self.figures.add("growth of resident memory", self.rules_service.resident() - resident, "MB", at_most=32)

    # Throughput

    def deciding(self) -> None:
        """Events to one recipient with preferences and a cap."""
        ours, theirs = [], []
        for _ in range(self.options.rounds):
            theirs.append(self.rules_service.writes(clients=8, seconds=self.options.seconds))
            self.rules_service.clear()
            events = [thing("k-0", [f"someone-{index % USERS}"])[1] for index in range(self.options.events)]
            ours.append(self.rules_service.work_off(events))
            note(f"{ours[-1]:.0f} events/s, pgbench {theirs[-1]:.0f} transactions/s")
        ours, theirs = statistics.median(ours), statistics.median(theirs)
        self.figures.add(
            "events to one recipient a second, notifications confirmed: over pgbench's writes", ours / theirs, "ratio",
            at_least=0.5, ours=ours, limit=theirs)

    def matching(self) -> None:
        """Events without a matching rule: only decoding, matching and recording."""
        few, many = [], []
        for _ in range(self.options.rounds):
            for rules, costs in [(1, few), (self.options.rules, many)]:
                self.rules_service.keep(rules)
                self.rules_service.clear()
                costs.append(1e6 * self.rules_service.spend([thing("none", ["nobody"])[1] for _ in range(self.options.events)]))
                note(f"{rules:,} rules: {costs[-1]:.1f} µs an event")
        few, many = statistics.median(few), statistics.median(many)
        self.figures.add(
            f"CPU of an event among {self.options.rules:,} rules over one", many / few, "ratio", at_most=2, ours=many, limit=few)
        self.rules_service.keep(1)

    # Large and small

    def interactive(self, label: str, seconds: float, is_over=lambda: False) -> float:
        found = delays(self.rules_service.stack, self.rules_service.stream(), self.options.rate, seconds, is_over)
        note(f"{label}: {len(found)} interactive events, p50 {percentile(found, 0.5):.1f} ms, "
             f"p99 {percentile(found, 0.99):.1f} ms, worst {found[-1]:.1f} ms")
        return percentile(found, 0.99)

    def one_to_many(self, before: float) -> None:
        users = [f"reader-{number}" for number in range(self.options.recipients)]
        event = cloud_event("list.published", {"who": users, "what": "it"}, f"list-{time.time_ns()}")
        self.rules_service.publish([event], f"{APP}.list.published")
        during = self.interactive(f"beside one event to {self.options.recipients:,}", 10)
        notifications = eventually(lambda: self.rules_service.stack.depth(NOTIFICATIONS["bulk"]), 60, "the bulk notifications")
        note(f"{notifications} notification messages")
        self.figures.add(
            f"p99 of interactive events beside one to {self.options.recipients:,} recipients over before",
            during / before, "ratio", at_most=2, ours=during, limit=before)

    def due_at_once(self, before: float) -> None:
        self.rules_service.purge()
        self.rules_service.schedule(self.options.items, seconds=60, wait=5)
        begin = time.monotonic()
        during = self.interactive(f"while {self.options.items:,} items fall due", 900, lambda: not self.rules_service.is_waiting())
        eventually(lambda: not self.rules_service.is_waiting(), 900, "the last item")
        if not self.rules_service.stack.depth(NOTIFICATIONS["bulk"]):
            raise SystemExit("no due notification was published: the measurement is invalid")
        self.figures.add(
            f"p99 of interactive events while {self.options.items:,} items fall due in a minute over before",
            during / before, "ratio", at_most=2, ours=during, limit=before)
        self.figures.add("until the last item is published", time.monotonic() - begin - 5, "s")


def note(text: str) -> None:
    print(f"    {text}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
