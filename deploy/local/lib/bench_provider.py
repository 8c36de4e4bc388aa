"""A provider faster than every client, and a reference client: haproxy and h2load from Debian.

haproxy waits for each request's body and answers 200 from one thread, over TLS 1.3 with an ECDSA certificate.
"""

import contextlib
import os
import pathlib
import re
import signal
import socket
import subprocess
import time
from dataclasses import dataclass

# The responses of a push service of browsers, APNs, FCM and Google's token endpoint.
ANSWERS = """
  http-request return status 200 content-type application/json string '{"access_token":"bench","expires_in":3600,"token_type":"Bearer"}' if { path /token }
  http-request return status 200 content-type application/json string '{"name":"projects/bench/messages/1"}' if { path_beg /v1/ }
  http-request return status 201 hdr location "https://localhost/message/1" hdr ttl 60 if { path_beg /push/ }
  http-request return status 200 hdr apns-id "%[req.hdr(apns-id)]"
"""

CONFIGURATION = """
global
  nbthread 1
  maxconn 2000
  ssl-default-bind-options ssl-min-ver TLSv1.3
  tune.h2.max-concurrent-streams {streams}
  {load_lua}
defaults
  mode http
  timeout client 120s
  timeout server 120s
  timeout connect 5s
frontend provider
  bind 127.0.0.1:{port} ssl crt {pem} alpn h2
  option http-buffer-request
  {delay}
{answers}
"""

# A delay before each response.
DELAY = """
core.register_action("late", {{ "http-req" }}, function(txn) core.msleep({milliseconds}) end, 0)
"""

PAYLOAD = (
    '{"aps":{"alert":{"title":"New message","body":"%s"},"badge":3,"sound":"default","category":"chat_message"},'
    '"message_id":"00000000000000000001","thread_id":null}'
)
PAYLOAD %= "Pat: are you coming tonight? ".ljust(300 - len(PAYLOAD) + 2, ".")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def pinned(core: int | None) -> list[str]:
    return [] if core is None else ["taskset", "-c", str(core)]


class Provider:
    """haproxy without a backend, in its own folder."""

    def __init__(self, folder: pathlib.Path, core: int | None = None, streams: int = 1000, delay_ms: int = 0,
                 port: int | None = None):
        folder.mkdir(parents=True, exist_ok=True)
        self.folder, self.core, self.port = folder, core, port or free_port()
        self.certificate = folder / "provider.pem"
        self.payload = folder / "payload.json"
        self.payload.write_text(PAYLOAD)
        key, both, late = folder / "provider.key", folder / "both.pem", folder / "late.lua"
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
             "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost", "-keyout", key,
             "-out", self.certificate],
            check=True, capture_output=True,
        )
        both.touch(mode=0o600)
        both.write_text(self.certificate.read_text() + key.read_text())
        late.write_text(DELAY.format(milliseconds=delay_ms))
        self.configuration = folder / "haproxy.cfg"
        self.configuration.write_text(CONFIGURATION.format(
            streams=streams, port=self.port, pem=both, answers=ANSWERS,
            load_lua=f"lua-load {late}" if delay_ms else "", delay="http-request lua.late" if delay_ms else "",
        ))

    @property
    def url(self) -> str:
        return f"https://localhost:{self.port}"

    @contextlib.contextmanager
    def running(self):
        with open(self.folder / "haproxy.log", "w") as log:
            process = subprocess.Popen(
                [*pinned(self.core), "haproxy", "-db", "-f", self.configuration], stdout=log, stderr=log)
        try:
            deadline = time.monotonic() + 10
            while not accepts(self.port):
                if process.poll() is not None or time.monotonic() > deadline:
                    raise SystemExit(f"haproxy did not start: {(self.folder / 'haproxy.log').read_text()}")
                time.sleep(0.05)
            self.pid = process.pid
            yield self
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(10)


def accepts(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@dataclass
class Spent:
    """The output of a command, and its user and system CPU seconds."""

    output: str
    cpu: float


def run_measured(command: list, core: int | None = None) -> Spent:
    process = subprocess.Popen([*pinned(core), *map(str, command)], stdout=subprocess.PIPE, text=True)
    output = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise SystemExit(f"{command[0]} ended with {process.returncode}:\n{output}")
    return Spent(output, usage.ru_utime + usage.ru_stime)


@dataclass
class Limit:
    """h2load's requests per second, and CPU microseconds per request."""

    rate: float
    cpu: float


def h2load(provider: Provider, requests: int, core: int | None = None) -> Limit:
    """Two connections with a hundred streams each; every response must be 2xx."""
    spent = run_measured(
        ["h2load", "-c", 2, "-m", 100, "-n", requests, "-d", provider.payload, "-H", ":method: POST",
         "-H", "authorization: bearer " + "x" * 180, "-H", "apns-topic: com.example.app",
         "-H", "apns-id: 00000000-0000-0000-0000-000000000001", "-H", "apns-push-type: alert",
         "-H", "apns-priority: 10", "-H", "apns-expiration: 1767229200",
         "-H", "apns-collapse-id: 00000000-0000-0000-0000-000000000001", f"{provider.url}/3/device/{'a' * 64}"],
        core,
    )
    rate = re.search(r"finished in .*?, ([\d.]+) req/s", spent.output)
    accepted = re.search(r"status codes: (\d+) 2xx", spent.output)
    if not rate or not accepted or int(accepted[1]) != requests:
        raise SystemExit(f"h2load did not get {requests} 2xx responses:\n{spent.output}")
    return Limit(float(rate[1]), spent.cpu * 1e6 / requests)
