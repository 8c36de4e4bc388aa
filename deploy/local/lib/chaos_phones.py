"""The requests of phones during a chaos run: registrations, sign-outs, takeovers, erasures, preferences."""

import json
import random
import threading
import time

from chaos_history import History, Operation
from chaos_people import PLATFORMS, People, Phone
from simulated_users import Simulator

# A request without an answer may still be processed. Its successor waits this long after the retry succeeded.
SETTLING = 10
QUIET = {"quiet_hours": {"start": "00:00", "end": "23:59"}, "zone": "UTC"}


class Phones:
    """One thread for each app, so the requests of one phone are in sequence."""

    def __init__(self, stack, people: People, history: History, seed: int, flows: threading.Event, pause: float = 0.4):
        self.stack, self.people, self.history, self.flows, self.pause = stack, people, history, flows, pause
        self.env = stack.env
        self.ends = threading.Event()
        self.busy_until: dict[str, float] = {}
        self.moved: dict[str, int] = {}
        self.threads = [
            threading.Thread(target=self._work, args=(name, random.Random(f"{seed}-{name}")), daemon=True)
            for name in people.apps]

    def set_up(self) -> None:
        """Registers every phone. The run has not begun, so each request must succeed."""
        for app in self.people.apps.values():
            for phone in [*app.lasting, *app.moving, *app.renewing]:
                self._must(self.register(phone, phone.users[0]))
            for phone in app.quiet:
                self._must(self._prefer(phone, QUIET, wants=True))

    @staticmethod
    def _must(operation: Operation) -> None:
        if operation.result != "ok":
            raise RuntimeError(f"cannot set up: {operation}")

    def start(self) -> None:
        for thread in self.threads:
            thread.start()

    def stop(self) -> None:
        self.ends.set()
        self.flows.set()
        for thread in self.threads:
            thread.join(120)

    def _work(self, name: str, chance: random.Random) -> None:
        app = self.people.apps[name]
        while not self.ends.wait(chance.uniform(0.5, 1.5) * self.pause):
            self.flows.wait()
            if self.ends.is_set():
                return
            match chance.choices(["move", "leave", "prefer", "erase", "refresh", "renew"], [6, 3, 3, 1, 4, 2])[0]:
                case "move":
                    self._move(chance.choice(app.moving))
                case "leave":
                    self._leave(chance.choice(app.moving))
                case "prefer":
                    self._choose(chance.choice(app.choosing))
                case "erase":
                    self._erase(self.people.passing(name))
                case "refresh":
                    phone = chance.choice(app.steady)
                    self.register(phone, phone.users[0])
                case "renew":
                    self._renew(chance.choice(app.renewing))

    # The steps

    def _owner(self, phone: Phone) -> int:
        return self.moved.get(phone.token, 0)

    def _move(self, phone: Phone) -> None:
        """The phone's other user registers it."""
        if self._is_free(phone):
            self.moved[phone.token] = 1 - self._owner(phone)
            self._surely(phone, lambda: self.register(phone, phone.users[self._owner(phone)]))

    def _leave(self, phone: Phone) -> None:
        """The phone's user signs out, and mostly returns later."""
        if self._is_free(phone):
            user = phone.users[self._owner(phone)]
            self._surely(phone, lambda: self._request(
                "signed-out", phone, user, "POST", "/api/notifications/push/unregister", body_of(phone)))

    def _choose(self, phone: Phone) -> None:
        if self._is_free(phone):
            wants = bool(self.moved.get(phone.token, 0))
            self.moved[phone.token] = int(not wants)
            self._surely(phone, lambda: self._prefer(phone, {"types": {"news": wants}}, wants))

    def _erase(self, phone: Phone) -> None:
        user = phone.users[0]
        if self._surely(phone, lambda: self.register(phone, user)):
            self._surely(phone, lambda: self._request(
                "erased", phone, user, "DELETE", f"/v1/operator/devices?app={phone.app}&user={user}", None,
                key=self.env["REGISTRY_OPERATOR_KEY"]))

    def _renew(self, phone: Phone) -> None:
        """The provider reports the token as gone, and the phone registers again before feedback decides."""
        if not self._is_free(phone):
            return
        gone = {"provider": phone.provider, "token": phone.token, "count": 1}
        gone |= ({"status": 410, "reason": "Unregistered", "timestamp": None} if phone.provider == "apns"
                 else {"status": 404, "error_code": "UNREGISTERED"})
        event = f"{self.people.run}-renewal-{phone.token[-6:]}-{time.time_ns()}"
        try:
            Simulator(self.stack).ask("POST", "/outcomes", gone)
            if self._push(phone, event):
                deadline = time.monotonic() + 5
                while time.monotonic() < deadline and not self._was_refused(phone, event):
                    time.sleep(0.05)
        except Exception as error:  # Without broker or simulator there is nothing to renew.
            self.history.note("renewal-failed", token=phone.token, error=repr(error)[:80])
        self._surely(phone, lambda: self.register(phone, phone.users[0]))

    def _push(self, phone: Phone, event: str) -> bool:
        body = {"specversion": "1.0", "id": event, "source": "/chaos", "type": "note.plain",
                "data": {"who": [phone.users[0]], "text": f"text-{event}"}}
        operation = Operation(
            "published", "unknown", time.time(), 0, phone.app, event, "note.plain", phone.users,
            monotonic=time.monotonic())
        try:
            self.stack.publish(
                f"{phone.app}.note.plain", json.dumps(body).encode(), content_type="application/cloudevents+json",
                delivery_mode=2)
            operation.result = "ok"
        except Exception as error:  # pika has no common base class for its errors and those of sockets.
            operation.error = repr(error)[:80]
        operation.ended = time.time()
        self.history.add(operation)
        return operation.result == "ok"

    def _was_refused(self, phone: Phone, event: str) -> bool:
        page = Simulator(self.stack).ask("GET", f"/{phone.provider}/requests?token={phone.token}&limit=1000")
        return any(event in json.dumps(request.get("body")) for request in page["requests"])

    # Requests

    def _is_free(self, phone: Phone) -> bool:
        return time.monotonic() >= self.busy_until.get(phone.token, 0)

    def _surely(self, phone: Phone, request) -> bool:
        """Repeats a request until it is answered with success. Returns whether it was."""
        for attempt in range(60):
            operation = request()
            if operation.result == "ok":
                if attempt:
                    self.busy_until[phone.token] = time.monotonic() + SETTLING
                return True
            if self.ends.wait(1):
                return False
        return False

    def register(self, phone: Phone, user: str) -> Operation:
        return self._request("registered", phone, user, "POST", "/api/notifications/push/register", body_of(phone))

    def _prefer(self, phone: Phone, patch: dict, wants: bool) -> Operation:
        return self._request(
            "preferred", phone, phone.users[0], "PATCH", "/v1/preferences", patch, service="RULES_URL", wants=wants,
            content_type="application/merge-patch+json")

    def _request(
        self, kind: str, phone: Phone, user: str, method: str, path: str, body, service: str = "REGISTRY_URL",
        wants: bool = True, content_type: str = "application/json", key: str | None = None
    ) -> Operation:
        operation = Operation(
            kind, "unknown", time.time(), 0, phone.app, user=user, provider=phone.provider, token=phone.token,
            wants=wants, monotonic=time.monotonic())
        bearer = key or self.people.bearer(phone.app, user)
        headers = {"Authorization": f"Bearer {bearer}", "Content-Type": content_type}
        try:
            status, answer = self.stack.http(
                method, self.env[service] + path, raw=None if body is None else json.dumps(body).encode(),
                headers=headers, timeout=12)
            operation.result = "ok" if status < 300 else "unknown" if status >= 500 else "failed"
            operation.error = "" if status < 300 else f"{status} {str(answer)[:80]}"
        except Exception as error:  # A lost connection: urllib has no common base class for these errors.
            operation.error = repr(error)[:80]
        operation.ended = time.time()
        self.history.add(operation)
        return operation


def body_of(phone: Phone) -> dict:
    return {"token": phone.token, "platform": PLATFORMS[phone.provider], "environment": "production"}
