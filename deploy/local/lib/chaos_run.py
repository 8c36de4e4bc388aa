"""One chaos run: workload, faults one after the other, the end of all work, and the observations."""

import json
import pathlib
import random
import sys
import threading
import time
import traceback

from chaos_census import lose_message
from chaos_history import FaultSpan, History
from chaos_observer import Observer
from chaos_people import APPS, People
from chaos_phones import Phones
from chaos_publisher import Publisher
from chaos_signals import SignalWatch
from chaos_snapshot import await_end, find_leaks, take_dead_letters, take_tables
from chaos_stack import LATE_RETRIES

# Seconds of the workload alone, beside large groups, and after the end of each fault.
BASELINE, BULK, AFTER = 20, 15, 2
# Seconds between two pauses of a run without faults.
BURST = 50
# Seconds without progress after which a run stops waiting for the end of all work.
PATIENCE = 120


class ChaosRun:
    def __init__(self, stack, faults: list, seed: int, minutes: float | None, rate: float, state: pathlib.Path):
        self.stack, self.faults, self.seed, self.minutes = stack, faults, seed, minutes
        self.random = random.Random(seed)
        self.history = History(state / "history.jsonl")
        self.people = People(seed, pathlib.Path(stack.env["BEARER_SECRET_FILE"]))
        self.flows = threading.Event()
        self.observer = Observer(stack, self.history.run)
        self.publishers = [
            Publisher(stack, self.people, self.history, seed * 10 + number, rate / 2, self.flows) for number in (1, 2)]
        self.phones = Phones(stack, self.people, self.history, seed, self.flows)

    @property
    def run(self):
        return self.history.run

    def perform(self) -> None:
        self.observer.start()
        self.phones.set_up()
        begun = time.monotonic()
        for thread in [*self.publishers, self.phones]:
            thread.start()
        self._phase("warm-up", 5)
        self._phase("baseline", BASELINE)
        self.publishers[0].call_crowds(APPS)
        self._phase("bulk", BULK)
        self._rest(None)
        for fault in self._sequence(begun):
            self._play(fault)
        if not self.faults and self.minutes:
            self._soak(begun + self.minutes * 60)
        self.flows.set()
        time.sleep(AFTER)
        for thread in [*self.publishers, self.phones]:
            thread.stop()
        self._conclude()

    def _sequence(self, begun: float):
        """The faults in random order: each once, or again and again until the time is over. Those whose messages are
        retried late come first.
        """
        while self.faults:
            order = list(self.faults)
            self.random.shuffle(order)
            order.sort(key=lambda fault: (fault.final, not fault.lasting))
            for fault in order:
                if self.minutes is not None and time.monotonic() > begun + self.minutes * 60:
                    return
                yield fault
            if self.minutes is None:
                return

    def _phase(self, name: str, seconds: float) -> None:
        self.flows.set()
        begun = time.time()
        time.sleep(seconds)
        self.run.phases[name] = (begun, time.time())
        note(f"{name}: {seconds} s, {len(self.run.operations)} operations so far")

    def _soak(self, end: float) -> None:
        """The workload without faults. A sample of every process is taken in each pause."""
        while time.monotonic() < end:
            self._phase("soak", BURST)
            self._rest(None)

    def _play(self, fault) -> None:
        needs = fault.needs_of(self.stack)
        if needs:
            self.history.note("skipped", fault=fault.name, needs=needs)
            note(f"{fault.name}: skipped, {needs}")
            return
        self.flows.set()
        watch = SignalWatch(self.stack, fault.signals_of(self.stack))
        span = FaultSpan(fault.name, time.time(), 0, None, fault.recovery)
        self.history.note("fault-begins", fault=fault.name)
        # A large group and a campaign are under way in every third fault.
        if self.random.random() < 0.33:
            self.publishers[1].call_crowds([self.random.choice(list(APPS))])
        try:
            try:
                span.choices = fault.begin(self.stack, random.Random(self.random.getrandbits(32))) or {}
                watch.chosen(span.choices)
                ends = time.monotonic() + fault.hold
                while time.monotonic() < ends:
                    watch.sample()
                    time.sleep(0.5)
            finally:
                watch.sample()
                fault.end(self.stack)
        except Exception:
            span.problem = traceback.format_exc(limit=4)
        span.ended = time.time()
        self._allow_late_retries(fault.lasting)
        span.extra_pushes, span.dead_letters = fault.extra_pushes, fault.dead_letters
        self._await_ready(span)
        time.sleep(AFTER)
        self._rest(span)
        span.seen, span.missing = watch.seen, tuple(watch.missing)
        self.history.add(span)

    def _allow_late_retries(self, lasting: float) -> None:
        """Messages may wait on the longest level of retries that ends within `lasting` seconds."""
        levels = [level for level, delay in LATE_RETRIES.items() if delay < lasting]
        if levels:
            until = self.stack.retries_until
            until[levels[-1]] = max(until[levels[-1]], time.monotonic() + lasting)

    def _await_ready(self, span: FaultSpan) -> None:
        """Waits, under load, until every service is ready and every route open."""
        begun = time.monotonic()
        try:
            self.stack.await_recovered(span.recovery_limit, drained=False)
            span.ready = time.monotonic() - begun
        except AssertionError as failure:
            span.problem += str(failure)

    def _rest(self, span: FaultSpan | None) -> None:
        """Pauses the workload until everything is ready and empty, and registers phones whose token a fault ended."""
        self.flows.clear()
        try:
            self.stack.await_recovered(span.recovery_limit if span else 60)
            if span:
                span.recovered = time.time()
                note(f"{span.name}: ready after {span.ready or 0:.1f} s, "
                     f"drained {span.recovered - span.ended:.1f} s after its end")
        except AssertionError as failure:
            if span:
                span.problem += str(failure)
            note(f"{span.name if span else 'without a fault'}: {failure}")
        self.observer.tap()
        self.observer.collect()
        self.observer.sample()
        self._register_again(span)

    def _register_again(self, span: FaultSpan | None) -> None:
        refused = {request.token for request in self.run.requests
                   if span and request.at >= span.began and request.status in (400, 404, 410)}
        for app in self.people.apps.values():
            for phone in app.lasting:
                if phone.token in refused:
                    self.phones.register(phone, phone.users[0])

    def _conclude(self) -> None:
        late = max(self.stack.retries_until.values()) - time.monotonic()
        self.run.undrained = await_end(self.stack, PATIENCE + max(0, late))
        try:
            self.stack.await_recovered(60)
        except AssertionError as failure:
            self.run.undrained += (str(failure),)
        time.sleep(1.5)
        self.observer.stop()
        self.observer.collect()
        self.observer.check_complete()
        self.observer.sample()
        self.observer.drain_taps()
        if not self.run.tapped or not self.run.announced:
            raise RuntimeError("the bench's own queues received nothing")
        take_tables(self.stack, self.run)
        take_dead_letters(self.stack, self.run)
        # After everything that the other checks look at.
        self.run.census = lose_message(self.stack, self.people, self.random)
        self.run.leaks = find_leaks(self.stack.state / "log", self._secrets())
        self.history.close()

    def _secrets(self) -> dict[str, set[str]]:
        """Everything that no log may contain."""
        keys = {path.read_text().strip().rpartition(":")[2] for path in (self.stack.state / "secrets").iterdir()
                if path.is_file() and "-url" not in path.name}
        credentials = self.stack.state / "credentials"
        lines = {line for path in credentials.glob("*.p8") for line in path.read_text().splitlines()}
        account = json.loads((credentials / "service-account.json").read_text())["private_key"]
        return {
            "token": {one.token for one in self.run.operations if one.token},
            "text": {text for publisher in self.publishers for text in publisher.texts},
            "key": {key for key in keys | lines | set(account.splitlines()) | {self.people.secret.decode()}
                    if len(key) > 15 and "-----" not in key},
            "bearer": {part for bearer in self.people.bearers.values() for part in bearer.split(".")[1:]},
        }


def note(text: str) -> None:
    print(f"    {text}", file=sys.stderr, flush=True)
