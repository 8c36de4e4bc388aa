"""Runs faults one after the other on a stack with little traffic, without the checks of the chaos bench.

    chaos_faults_trial.py --state FOLDER [--port-base PORT] [--build debug|release] [--seed N] [--keep] gate|all|NAME…

For each fault: its choices, the signals seen and missing, the processor time of each service while it held, the seconds
until everything was ready, empty and open again, and the pushes. Exits with 1 if a fault fails. Events are published
until the broker confirms them, so at the end each user has one push of each event.
"""

import argparse
import collections
import contextlib
import http.client
import itertools
import json
import os
import pathlib
import random
import sys
import threading
import time
import traceback
import uuid

import pika
from chaos_faults import select
from chaos_signals import SERVICES, SignalWatch
from chaos_stack import ChaosStack
from local_stack import cloud_event, eventually

RATE = 20


class Traffic:
    """Chat messages to one iOS and one Android user, a few each second, and registrations of another user."""

    def __init__(self, stack):
        self.stack, self.run = stack, uuid.uuid4().hex[:8]
        self.sent: list[str] = []
        self.ends, self.flows = threading.Event(), threading.Event()
        self.flows.set()
        self.tokens = {"apns": uuid.uuid4().hex, "fcm": f"fcm:{self.run}"}
        for provider, platform in (("apns", "ios"), ("fcm", "android")):
            status, answer = stack.register(
                "family-portal", f"{provider}-{self.run}", self.tokens[provider], platform=platform)
            if status != 200:
                raise RuntimeError(f"cannot register: {answer}")
        self.threads = [threading.Thread(target=work, daemon=True) for work in (self._publish, self._register)]
        for thread in self.threads:
            thread.start()

    def _register(self) -> None:
        bearer = self.stack.bearer("family-portal", f"registering-{self.run}")
        while not self.ends.wait(1):
            self.flows.wait()
            with contextlib.suppress(OSError, http.client.HTTPException):
                self.stack.register("family-portal", "", uuid.uuid4().hex * 2, bearer=bearer)

    def _publish(self) -> None:
        bodies = self._events()
        event, body = next(bodies)
        while not self.ends.is_set():
            self.flows.wait()
            try:
                with self.stack.channel() as channel:
                    while not self.ends.is_set() and self.flows.is_set():
                        channel.basic_publish(
                            "events", "family-portal.chat.message.created", body,
                            pika.BasicProperties(content_type="application/cloudevents+json", delivery_mode=2),
                            mandatory=True)
                        self.sent.append(event)
                        event, body = next(bodies)
                        time.sleep(1 / RATE)
            except Exception:  # pika has no common base class for its errors and those of sockets.
                time.sleep(0.2)

    def _events(self):
        for number in itertools.count():
            event = f"{self.run}-{number}"
            readers = [f"{provider}-{self.run}" for provider in self.tokens]
            yield event, cloud_event("chat.message.created", {
                "message": {"id": event, "text": event, "thread_id": None}, "sender": {"id": "w", "name": "P"},
                "participants": readers}, event)

    def counts(self, statuses: set[int]) -> dict[str, collections.Counter]:
        """The requests of each event with one of these statuses, by provider."""
        data = {"apns": lambda body: body["data"], "fcm": lambda body: body["message"]["data"]}
        return {
            provider: collections.Counter(
                data[provider](request["body"])["message_id"] for request in self.stack.requests(provider)
                if request.get("token") == token and request.get("status") in statuses)
            for provider, token in self.tokens.items()}

    def missing(self) -> int:
        """The pushes without an answer that settles them."""
        return sum(len(set(self.sent) - seen.keys()) for seen in self.counts({200, 400, 404, 410}).values())

    def extra(self) -> int:
        return sum(sum(seen.values()) - len(seen) for seen in self.counts({200}).values())

    def end(self) -> None:
        self.ends.set()
        self.flows.set()
        for thread in self.threads:
            thread.join(60)


def processor_seconds(stack) -> dict[str, float]:
    found = {}
    for service in SERVICES:
        pid = stack.pid(service)
        if pid is not None:
            fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            found[service] = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return found


def try_out(stack, fault, traffic: Traffic, seed: int) -> bool:
    extra_before = traffic.extra()
    watch = SignalWatch(stack, fault.signals_of(stack))
    result = {"fault": fault.name}
    problem = None
    try:
        try:
            result["choices"] = fault.begin(stack, random.Random(seed))
            watch.chosen(result["choices"])
            before, begun = processor_seconds(stack), time.monotonic()
            while time.monotonic() - begun < fault.hold:
                watch.sample()
                time.sleep(0.5)
            held = time.monotonic() - begun
            result["processor"] = {
                service: round((after - before[service]) / held, 2)
                for service, after in processor_seconds(stack).items() if service in before}
        finally:
            watch.sample()
            fault.end(stack)
        traffic.flows.clear()
        result["recovered"] = round(stack.await_recovered(fault.recovery), 1)
        if result["recovered"] > 5:
            result["awaited"] = sorted(stack.awaited.items(), key=lambda one: -one[1])[:6]
        eventually(lambda: traffic.missing() == 0, 30, "a push of every event")
    except Exception:
        problem = traceback.format_exc(limit=4)
    traffic.flows.set()
    result |= {"seen": watch.seen, "missing": watch.missing, "extra": traffic.extra() - extra_before,
               "bound": fault.extra_pushes, "events": len(traffic.sent)}
    failed = problem is not None or bool(watch.missing) or result["extra"] > fault.extra_pushes
    print(json.dumps(result | {"ok": not failed}), flush=True)
    if problem:
        print(problem, file=sys.stderr, flush=True)
    return not failed


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--state", required=True)
    arguments.add_argument("--port-base", type=int, default=19200)
    arguments.add_argument("--build", default="debug")
    arguments.add_argument("--nodes", type=int, default=1)
    arguments.add_argument("--standby", action="store_true")
    arguments.add_argument("--seed", type=int, default=1)
    arguments.add_argument("--keep", action="store_true", help="keep the stack's data and logs")
    arguments.add_argument("names", nargs="+")
    options = arguments.parse_args()
    faults = [fault for name in options.names for fault in select(name)]
    stack = ChaosStack(
        pathlib.Path(options.state), options.port_base, options.build, options.nodes, options.standby)
    failed = []
    try:
        stack.up("--no-demo")
        stack.await_recovered(60)
        traffic = Traffic(stack)
        for number, fault in enumerate(faults):
            reason = fault.needs_of(stack)
            if reason:
                print(json.dumps({"fault": fault.name, "skipped": reason}), flush=True)
            elif not try_out(stack, fault, traffic, options.seed + number):
                failed.append(fault.name)
        traffic.end()
        try:
            eventually(lambda: traffic.missing() == 0, 60, "a push of every event")
        except AssertionError:
            failed.append("lost")
        print(json.dumps({"events": len(traffic.sent), "missing": traffic.missing(), "failed": failed}), flush=True)
    finally:
        stack.down(*([] if options.keep else ["--erase"]))
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
