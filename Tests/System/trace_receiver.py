"""A receiver of OTLP over HTTP, which decodes with the official definitions (PyPI opentelemetry-proto)."""

import http.server
import threading

from opentelemetry.proto.collector.trace.v1 import trace_service_pb2


class Span:
    """A received span, with plain values."""

    def __init__(self, service: str, span):
        self.service = service
        self.name = span.name
        self.trace, self.id, self.parent = span.trace_id.hex(), span.span_id.hex(), span.parent_span_id.hex()
        self.state = span.trace_state
        self.kind = span.SpanKind.Name(span.kind).removeprefix("SPAN_KIND_").lower()
        self.start, self.end = span.start_time_unix_nano, span.end_time_unix_nano
        self.attributes = {pair.key: value_of(pair.value) for pair in span.attributes}
        self.links = [(link.trace_id.hex(), link.span_id.hex()) for link in span.links]
        self.failed = span.status.code == 2
        self.message = span.status.message

    def __repr__(self) -> str:
        return f"{self.service}: {self.name} {self.trace[:6]} {self.id} < {self.parent} {self.attributes}"


def value_of(value):
    kind = value.WhichOneof("value")
    if kind == "array_value":
        return [value_of(element) for element in value.array_value.values]
    return getattr(value, kind)


class TraceReceiver:
    """Listens on a free port of the loopback address while it is entered."""

    def __init__(self):
        receiver = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                status = receiver.take(self.path, dict(self.headers), body)
                answer = trace_service_pb2.ExportTraceServiceResponse().SerializeToString()
                self.send_response(status)
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *arguments):
                pass

        self.lock = threading.Lock()
        self.refusals: list[int] = []
        self.requests: list[tuple[str, dict, bytes]] = []
        self.received: list[Span] = []
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def __enter__(self) -> "TraceReceiver":
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *error) -> None:
        self.server.shutdown()
        self.server.server_close()

    def take(self, path: str, headers: dict, body: bytes) -> int:
        with self.lock:
            self.requests.append((path, headers, body))
            if self.refusals:
                return self.refusals.pop(0)
            request = trace_service_pb2.ExportTraceServiceRequest.FromString(body)
            for group in request.resource_spans:
                resource = {pair.key: value_of(pair.value) for pair in group.resource.attributes}
                for scope in group.scope_spans:
                    self.received += [Span(resource["service.name"], span) for span in scope.spans]
            return 200

    def refuse(self, *statuses: int) -> None:
        """Answers the next requests with these statuses."""
        with self.lock:
            self.refusals += statuses

    def spans(self, trace: str | None = None) -> list[Span]:
        with self.lock:
            return [span for span in self.received if trace is None or span.trace == trace]
