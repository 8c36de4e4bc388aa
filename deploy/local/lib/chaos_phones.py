"""The requests of phones during a chaos run: registrations, sign-outs, takeovers, erasures, preferences."""

import json
import threading
import time
from collections.abc import Iterator

from chaos_history import History, Operation
from chaos_people import PLATFORMS, People, Phone
from chaos_workload import Request, requests
from simulated_users import Simulator

# A request without an answer may still be processed. Its successor waits this long after the retry succeeded.
SETTLING = 10
QUIET = {"quiet_hours": {"start": "00:00", "end": "23:59"}, "zone": "UTC"}


class Phones:
    """One thread for each app, so the requests of one phone are in sequence."""

    def __init__(self, stack, people: People, history: History, seed: int, flows: threading.Event, pause: float = 0.4):
        self.stack, self.people, self.history, self.flows = stack, people, history, flows
        self.env = stack.env
        self.ends = threading.Event()
        self.busy_until: dict[str, float] = {}
        self.threads = [
            threading.Thread(target=self._work, args=(requests(people, seed, app, pause),), daemon=True)
            for app in people.apps.values()]

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

    def _work(self, requests: Iterator[Request]) -> None:
        for request in requests:
            if self.ends.wait(request.pause):
                return
            self.flows.wait()
            if self.ends.wait(max(0, self.busy_until.get(request.phone.token, 0) - time.monotonic())):
                return
            self._play(request)

    def _play(self, request: Request) -> None:
        phone, user = request.phone, request.user
        match request.kind:
            case "takeover" | "registration":
                self._surely(phone, lambda: self.register(phone, user))
            case "sign-out":
                self._surely(phone, lambda: self._request(
                    "signed-out", phone, user, "POST", "/api/notifications/push/unregister", body_of(phone)))
            case "preference":
                self._surely(phone, lambda: self._prefer(phone, {"types": {"news": request.wants}}, request.wants))
            case "erasure":
                self._surely(phone, lambda: self._request(
                    "erased", phone, user, "DELETE", f"/v1/operator/devices?app={phone.app}&user={user}", None,
                    key=self.env["REGISTRY_OPERATOR_KEY"]))
            case "revocation":
                self._revoke(phone)

    def _revoke(self, phone: Phone) -> None:
        """The provider reports the token as gone. The phone registers again, often before feedback decides."""
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
            self.history.note("revocation-failed", token=phone.token, error=repr(error)[:80])

    def _push(self, phone: Phone, event: str) -> bool:
        body = {"specversion": "1.0", "id": event, "source": "/chaos", "type": "note.plain",
                "data": {"who": [phone.users[0]], "text": f"text-{event}"}}
        operation = Operation(
            "published", "unknown", time.time(), 0, phone.app, event, "note.plain", phone.users,
            monotonic=time.monotonic())
        self.history.invoke(operation)
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
        self.history.invoke(operation)
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
