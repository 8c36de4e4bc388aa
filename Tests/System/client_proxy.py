"""A proxy in front of the HTTP APIs, as an app's web server is one: one origin for the page, the registry and rules.

It refuses requests and cuts streams on demand, so that tests see what a client does then.
"""

import contextlib
import http.client
import http.server
import pathlib
import threading
import urllib.parse

ROOT = pathlib.Path(__file__).resolve().parents[2]
TYPES = {".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8"}


class Proxy:
    """`/registry/…`, `/rules/…` and `/events/…` lead to the services, `/token` returns `bearer`, other paths are files of `folder`."""

    def __init__(self, stack, folder: pathlib.Path = ROOT / "deploy" / "clients" / "web"):
        self.folder = folder
        self.bearer = ""
        self.services = {"registry": stack.env["REGISTRY_URL"], "rules": stack.env["RULES_URL"],
                         "events": stack.env["EVENTS_API_URL"]}
        self.lock = threading.Lock()
        self.requests: list[tuple[str, str, dict[str, str]]] = []
        self.refusals = 0
        self.streams: set[http.client.HTTPConnection] = set()
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), self.handler())
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def refuse(self, count: int) -> None:
        """Answers the next requests with 503."""
        with self.lock:
            self.refusals = count

    def cut_streams(self) -> int:
        """Ends all open streams, and returns their number."""
        with self.lock:
            streams = list(self.streams)
        for stream in streams:
            with contextlib.suppress(OSError):
                stream.sock.shutdown(2)
        return len(streams)

    def last_event_ids(self) -> list[str | None]:
        """The `Last-Event-ID` of each request for the stream, oldest first."""
        with self.lock:
            return [headers.get("last-event-id") for _, path, headers in self.requests if path.endswith("/inbox/stream")]

    def close(self) -> None:
        self.cut_streams()
        self.server.shutdown()
        self.server.server_close()

    def handler(proxy):
        class Handler(http.server.BaseHTTPRequestHandler):
            def answer(self):
                name, _, rest = self.path[1:].partition("/")
                if name in proxy.services:
                    self.forward(name, "/" + rest)
                elif self.path == "/token":
                    self.give(200, proxy.bearer.encode(), "text/plain")
                else:
                    file = proxy.folder / urllib.parse.urlparse(self.path).path[1:]
                    if file.parent == proxy.folder and file.is_file():
                        self.give(200, file.read_bytes(), TYPES[file.suffix])
                    else:
                        self.give(404, b"", "text/plain")

            do_GET = do_PUT = do_POST = do_PATCH = do_DELETE = answer

            def give(self, status: int, body: bytes, type: str) -> None:
                self.send_response(status)
                self.send_header("Content-Type", type)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def forward(self, service: str, path: str) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                with proxy.lock:
                    proxy.requests.append((self.command, self.path, {k.lower(): v for k, v in self.headers.items()}))
                    is_refused = proxy.refusals > 0
                    proxy.refusals -= is_refused
                if is_refused:
                    return self.give(503, b'{"detail": "refused by the test"}', "application/problem+json")
                address = urllib.parse.urlparse(proxy.services[service]).netloc
                connection = http.client.HTTPConnection(address, timeout=120)
                headers = {
                    name: value for name, value in self.headers.items()
                    if name.lower() in ("authorization", "content-type", "accept", "last-event-id")}
                try:
                    connection.request(self.command, path, body or None, headers)
                    answer = connection.getresponse()
                    if answer.headers.get_content_type() != "text/event-stream":
                        return self.give(answer.status, answer.read(), answer.headers["Content-Type"] or "text/plain")
                    self.stream(connection, answer)
                finally:
                    connection.close()

            def stream(self, connection, answer) -> None:
                # The response may have taken the socket over.
                connection.sock = connection.sock or answer.fp.raw._sock
                # First, so that a client that is connected finds its stream here.
                with proxy.lock:
                    proxy.streams.add(connection)
                self.send_response(answer.status)
                self.send_header("Content-Type", answer.headers["Content-Type"])
                self.send_header("Connection", "close")
                self.end_headers()
                self.wfile.flush()
                try:
                    # Also the client may have gone.
                    with contextlib.suppress(OSError, http.client.HTTPException):
                        while part := answer.read1(65536):
                            self.wfile.write(part)
                            self.wfile.flush()
                finally:
                    with proxy.lock:
                        proxy.streams.discard(connection)
                    self.close_connection = True

            def log_message(self, *_):
                pass

        return Handler
