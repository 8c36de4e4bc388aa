"""Observes a chaos run while it is under way: the simulator's request log, metrics, processes and messages."""

import http.client
import json
import os
import pathlib
import threading
import time

from chaos_history import Outcome, Request, Run, Sample
from chaos_signals import SERVICES

PAGE = 5000
TAPS = {"chaos.outcomes": ("outcomes", "#"), "chaos.devices": ("devices", "event.#")}


class Observer:
    """Reads the simulator's log and the metrics every second, before the log wraps and a restart resets counters."""

    def __init__(self, stack, run: Run):
        self.stack, self.run = stack, run
        self.last = {"apns": 0, "fcm": 0}
        self.counted: dict[tuple[str, str], float] = {}
        self.lock = threading.Lock()
        self.ends = threading.Event()
        self.thread = threading.Thread(target=self._work, daemon=True)

    def start(self) -> None:
        self.tap()
        self.thread.start()

    def stop(self) -> None:
        self.ends.set()
        self.thread.join(60)

    def tap(self) -> None:
        """Declares and binds the queues of the bench; again after a fault that may have removed a binding."""
        with self.stack.channel() as channel:
            for queue, (exchange, key) in TAPS.items():
                channel.queue_declare(queue, durable=True)
                channel.queue_bind(queue, exchange, key)

    def _work(self) -> None:
        while not self.ends.wait(1):
            try:
                self.collect()
            except (OSError, http.client.HTTPException):
                pass  # The next round reads what this one missed.

    def collect(self) -> None:
        with self.lock:
            for provider in self.last:
                self._requests(provider)
            for service in SERVICES:
                self._discards(service)

    def _requests(self, provider: str) -> None:
        while True:
            url = f"{self.stack.env['SIMULATOR_URL']}/{provider}/requests?since={self.last[provider]}&limit={PAGE}"
            status, page = self.stack.http("GET", url)
            if status != 200:
                raise RuntimeError(f"{url}: {status}")
            for request in page["requests"]:
                self.last[provider] = request["sequence"]
                self.run.requests.append(request_of(provider, request))
            if len(page["requests"]) < PAGE:
                return

    def check_complete(self) -> None:
        """Fails if the simulator's log dropped requests before they were read."""
        summary = self.stack.http("GET", f"{self.stack.env['SIMULATOR_URL']}/summary")[1]
        for provider in self.last:
            read = sum(request.provider == provider for request in self.run.requests)
            if read < summary[provider]["count"]:
                raise RuntimeError(f"read {read} of {summary[provider]['count']} requests of {provider}")

    def _discards(self, service: str) -> None:
        for series, value in (self.stack.metrics(service) or {}).items():
            if series.startswith("heliograph_messages_discarded_total{"):
                before = self.counted.get((service, series), 0)
                reason = series.split('reason="')[1].split('"')[0]
                rise = value - before if value >= before else value
                self.run.discards[reason] = self.run.discards.get(reason, 0) + rise
                self.counted[service, series] = value

    def sample(self) -> None:
        """Memory and descriptors of every service, while nothing waits."""
        for service in SERVICES:
            pid = self.stack.pid(service)
            if pid is None:
                continue
            process = pathlib.Path(f"/proc/{pid}")
            resident = int((process / "statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6
            self.run.samples.append(
                Sample(service, pid, time.time(), resident, len(os.listdir(process / "fd"))))

    def drain_taps(self) -> None:
        """Reads the messages of the bench's queues."""
        for _, body in self.stack.take("chaos.outcomes"):
            message = json.loads(body)
            table = message.get("accepted")
            if table:
                several = len(table["notifications"]) > 1
                for number, device in enumerate(table["devices"]):
                    notification = table["notifications"][number if several else 0]
                    self.run.tapped.append(Outcome(notification.lower(), device.lower(), "accepted"))
            for outcome in message.get("outcomes", []):
                device = outcome.get("device")
                self.run.tapped.append(Outcome(
                    outcome["notification"].lower(), device.lower() if device else None,
                    outcome["answer"]["disposition"], outcome["answer"].get("reason")))
        for _, body in self.stack.take("chaos.devices"):
            event = json.loads(body)
            device = (event.get("device") or {}).get("id", "").lower()
            self.run.announced.append((event["past"], event["user"], device))


def request_of(provider: str, request: dict) -> Request:
    """A request of the simulator's log."""
    body = request.get("body")
    body = body if isinstance(body, dict) else {}
    data = (body if provider == "apns" else body.get("message", {})).get("data") or {}
    status = request.get("status")
    is_accepted = status == 200 or (status is None and "accepted" in request.get("fault", ""))
    return Request(
        provider, request.get("token") or "", data.get("event", ""), data.get("rule", ""),
        request["receivedAt"] / 1000, status, is_accepted)
