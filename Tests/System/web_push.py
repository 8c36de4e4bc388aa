"""Helpers of the tests about Web Push: simulated browsers, and a sender that shares no code with webpush-sender."""

import base64
import json
import subprocess
import time
import uuid

from py_vapid import Vapid02
from pywebpush import WebPusher
from test_token_deactivation import requests_of

APP = "family-portal"


def decoded(text: str) -> bytes:
    """The bytes of base64url without padding."""
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def encoded(data: bytes) -> str:
    """Base64url without padding."""
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


class Browser:
    """A browser with a new subscription at the simulated push service, for a page of family-portal."""

    def __init__(self, stack, host: str = "localhost", key: str | None = None, **terms):
        """`key` is another application server key than the app's. `localhost` and `127.0.0.1` are two push services."""
        self.stack, self.installation = stack, f"browser-{uuid.uuid4()}"
        self.origin = f"https://{host}:{stack.env['WEBPUSH_URL'].rpartition(':')[2]}"
        page = {"application_server_key": key} if key else {"app": APP}
        self.subscribe(page | {"origin": self.origin} | terms)

    def subscribe(self, terms: dict) -> None:
        status, answer = self.stack.http("POST", f"{self.stack.env['SIMULATOR_URL']}/subscriptions", terms)
        assert status == 200, answer
        self.token, self.private_key = answer["token"], answer["privateKey"]
        self.subscription = {name: answer[name] for name in ("endpoint", "expirationTime", "keys")}

    def put(self, user: str, subscription: dict | None = None):
        """Registers the browser over the HTTP API of the registry. Returns its status and answer."""
        entry = {"kind": "web-push", "subscription": subscription or self.subscription}
        return self.call("PUT", user, {"registrations": [entry]})

    def register(self, user: str) -> "Browser":
        status, answer = self.put(user)
        assert status in (200, 201), answer
        return self

    def sign_out(self, user: str) -> None:
        assert self.call("DELETE", user)[0] == 204

    def call(self, method: str, user: str, body: dict | None = None):
        return self.stack.http(
            method, f"{self.stack.env['REGISTRY_URL']}/v1/installations/{self.installation}", body,
            {"Authorization": f"Bearer {self.stack.bearer(APP, user)}"})

    def end(self, status: int) -> None:
        """Ends the subscription: the push service answers with this status."""
        answered, _ = self.stack.http(
            "DELETE", f"{self.stack.env['SIMULATOR_URL']}/subscriptions?token={self.token}&status={status}")
        assert answered == 204

    def requests(self) -> list[dict]:
        return requests_of(self.stack, self.token, "webpush")

    def statuses(self) -> list[int]:
        return [request["status"] for request in self.requests()]

    def messages(self) -> list[str]:
        """The ids of the chat messages that the browser decrypted."""
        return [request["body"]["notification"]["data"]["message_id"] for request in self.requests()
                if request["status"] == 201]

    def shown(self) -> list[dict]:
        """The notifications on the screen, newest first."""
        status, phone = self.stack.http(
            "GET", f"{self.stack.env['SIMULATOR_URL']}/shown?provider=webpush&token={self.token}")
        assert status == 200, phone
        return phone["shown"]


def app_key(stack) -> Vapid02:
    """The VAPID key of family-portal."""
    return Vapid02.from_raw((stack.state / "credentials" / "family-portal.vapid").read_bytes().strip())


def send_with_pywebpush(stack, browser: Browser, message: bytes, **claims) -> tuple[int, str]:
    """Encrypts with pywebpush, signs with py_vapid, and sends with curl. Returns the status and the body."""
    body = WebPusher(browser.subscription).encode(message)["body"]
    terms = {"aud": browser.origin, "exp": int(time.time()) + 3600, "sub": "mailto:ops@example.com"} | claims
    done = subprocess.run(
        ["curl", "-sS", "--http2", "--cacert", stack.env["PROVIDER_CA_FILE"], "-H", "TTL: 60",
         "-H", "Content-Encoding: aes128gcm", "-H", f"Authorization: {app_key(stack).sign(terms)['Authorization']}",
         "--data-binary", "@-", "-w", "\n%{http_code}", browser.subscription["endpoint"]],
        input=body, capture_output=True, timeout=30, check=True)
    text, _, status = done.stdout.decode().rpartition("\n")
    return int(status), text


def declarative(title: str, badge: int | None = None, **notification) -> bytes:
    """A declarative push message."""
    message = {"web_push": 8030, "notification": {
        "title": title, "navigate": "https://family-portal.example/", **notification}}
    return json.dumps(message if badge is None else message | {"app_badge": badge}).encode()
