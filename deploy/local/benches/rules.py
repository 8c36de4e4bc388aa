"""Rules: what matching costs, how fast events become notifications, and whether the many let the few wait.

Its own broker and database; the registry rests, so that what is decided stays in its queues. Everything is on one machine:
each figure is a ratio of two things measured one after the other in the same run.
"""
# Builds: pushctl token-registry provider-simulator rules feedback apns-sender fcm-sender

import argparse
import pathlib
import statistics
import sys
import tempfile
import time

from bench_figures import Figures
from bench_postgres import buffers
from bench_rules import APP, NOTIFICATIONS, USERS, House, thing
from bench_steady import delays, percentile
from local_stack import Stack, cloud_event, eventually

PORT_BASE = 19040


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--state", required=True)
    arguments.add_argument("--rules", type=int, default=10_000, help="of the large rule file")
    arguments.add_argument("--events", type=int, default=20_000, help="of a round")
    arguments.add_argument("--rounds", type=int, default=3)
    arguments.add_argument("--recipients", type=int, default=10_000, help="of the one event to many")
    arguments.add_argument("--items", type=int, default=1_000_000, help="that are due in one minute")
    arguments.add_argument("--rate", type=float, default=50, help="interactive events a second beside that")
    arguments.add_argument("--seconds", type=int, default=15, help="of pgbench")
    arguments.add_argument("--only", choices=["waiting"], help="one part: what the few wait for beside the many")
    options = arguments.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        house = House(Stack(pathlib.Path(options.state), PORT_BASE, build="release"), pathlib.Path(folder))
        house.write(1)
        house.stack.environment["LOCAL_RULES_DIRECTORY"] = folder
        house.stack.environment["LOCAL_DATABASE_BUFFERS"] = buffers()
        house.stack.up("--no-demo", timeout=1800)
        figures = Figures("rules")
        try:
            for service in ["token-registry", "feedback", "apns-sender", "fcm-sender", "provider-simulator"]:
                house.stack.service("stop", service)
            Bench(house, options, figures).run()
        finally:
            house.stack.down("--erase")
    figures.finish(pathlib.Path(options.state).parent)


class Bench:
    def __init__(self, house: House, options, figures: Figures):
        self.house, self.options, self.figures = house, options, figures

    def run(self) -> None:
        if not self.options.only:
            self.deciding()
            self.matching()
        # The first ones pay for connections and caches.
        self.interactive("warming up", 10)
        before = self.interactive("alone", 20)
        resident = self.house.resident()
        self.one_to_many(before)
        self.due_at_once(before)
        self.figures.add("growth of resident memory by all that", self.house.resident() - resident, "MB", at_most=32)

    # Throughput

    def deciding(self) -> None:
        """One recipient, whose preferences and cap are consulted."""
        ours, theirs = [], []
        for _ in range(self.options.rounds):
            theirs.append(self.house.writes(clients=8, seconds=self.options.seconds))
            self.house.clear()
            events = [thing("k-0", [f"someone-{index % USERS}"])[1] for index in range(self.options.events)]
            ours.append(self.house.work_off(events))
            note(f"{ours[-1]:.0f} events/s, pgbench {theirs[-1]:.0f} transactions/s")
        ours, theirs = statistics.median(ours), statistics.median(theirs)
        self.figures.add(
            "events to one recipient a second, notifications confirmed: over pgbench's writes", ours / theirs, "ratio",
            at_least=0.5, ours=ours, limit=theirs)

    def matching(self) -> None:
        """Events that no rule is about: nothing but reading, matching, and noting that they were seen."""
        few, many = [], []
        for _ in range(self.options.rounds):
            for rules, costs in [(1, few), (self.options.rules, many)]:
                self.house.keep(rules)
                self.house.clear()
                costs.append(1e6 * self.house.spend([thing("none", ["nobody"])[1] for _ in range(self.options.events)]))
                note(f"{rules:,} rules: {costs[-1]:.1f} µs an event")
        few, many = statistics.median(few), statistics.median(many)
        self.figures.add(
            f"CPU of an event among {self.options.rules:,} rules over one", many / few, "ratio", at_most=2, ours=many, limit=few)
        self.house.keep(1)

    # The many and the few

    def interactive(self, words: str, seconds: float, is_over=lambda: False) -> float:
        found = delays(self.house.stack, self.house.stream(), self.options.rate, seconds, is_over)
        note(f"{words}: {len(found)} interactive events, p50 {percentile(found, 0.5):.1f} ms, "
             f"p99 {percentile(found, 0.99):.1f} ms, worst {found[-1]:.1f} ms")
        return percentile(found, 0.99)

    def one_to_many(self, before: float) -> None:
        users = [f"reader-{number}" for number in range(self.options.recipients)]
        event = cloud_event("list.published", {"who": users, "what": "it"}, f"list-{time.time_ns()}")
        self.house.publish([event], f"{APP}.list.published")
        during = self.interactive(f"beside one event to {self.options.recipients:,}", 10)
        told = eventually(lambda: self.house.stack.depth(NOTIFICATIONS["bulk"]), 60, "the notifications of the many")
        note(f"they came in {told} notifications")
        self.figures.add(
            f"p99 of interactive events beside one to {self.options.recipients:,} recipients over before",
            during / before, "ratio", at_most=2, ours=during, limit=before)

    def due_at_once(self, before: float) -> None:
        self.house.purge()
        self.house.schedule(self.options.items, seconds=60, wait=5)
        begin = time.monotonic()
        during = self.interactive(f"while {self.options.items:,} items fall due", 900, lambda: not self.house.is_waiting())
        eventually(lambda: not self.house.is_waiting(), 900, "the last item")
        if not self.house.stack.depth(NOTIFICATIONS["bulk"]):
            raise SystemExit("nothing was said of what fell due: this measures nothing")
        self.figures.add(
            f"p99 of interactive events while {self.options.items:,} items fall due in a minute over before",
            during / before, "ratio", at_most=2, ours=during, limit=before)
        self.figures.add("until the last of them has left", time.monotonic() - begin - 5, "s")


def note(text: str) -> None:
    print(f"    {text}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
