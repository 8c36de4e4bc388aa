"""Traces: one event's spans from rules to feedback, at a receiver that decodes with the official definitions."""

import json
import secrets
import time
import uuid

import pytest

from conftest import further_stack, phones_of
from local_stack import SERVICES, eventually
from trace_receiver import Span, TraceReceiver
from upstream import chat_event

APP = "family-portal"
TYPE = "chat.message.created"
STAGES = [service for service in SERVICES if service != "provider-simulator"]
EVENTS = f"process rules.events.app.{APP}"
NOTIFICATIONS = f"process token-registry.notifications.interactive.app.{APP}"
PUSHES = f"process apns-sender.pushes.interactive.{APP}"


@pytest.fixture(scope="module")
def receiver():
    with TraceReceiver() as receiver:
        yield receiver


def configure(stack, lines: list[str]) -> None:
    """Sets further variables of all services, which they read at their next start."""
    folder = stack.state / "environment"
    folder.mkdir(parents=True, exist_ok=True)
    for service in STAGES:
        (folder / service).write_text("".join(f"{line}\n" for line in lines))


@pytest.fixture(scope="module")
def traced(tmp_path_factory, receiver):
    """A stack whose services send their spans to the receiver."""
    state = tmp_path_factory.mktemp("traced")
    secret = state / "headers"
    secret.write_text("authorization=Bearer%20receiver-secret\n")

    class Prepared:
        pass

    Prepared.state = state
    configure(Prepared, [f"OTEL_EXPORTER_OTLP_ENDPOINT={receiver.url}", f"OTEL_EXPORTER_OTLP_HEADERS_FILE={secret}"])
    with further_stack(state) as stack:
        yield stack


class Upstream:
    """The upstream's span, as W3C Trace Context."""

    def __init__(self, sampled: bool = True):
        self.trace, self.span = secrets.token_hex(16), secrets.token_hex(8)
        self.traceparent = f"00-{self.trace}-{self.span}-0{int(sampled)}"


def event(user: str, id: str, **attributes) -> bytes:
    body = chat_event(user, id)
    if attributes:
        body = json.dumps(json.loads(body) | attributes).encode()
    return body


def publish(stack, user: str, headers: dict | None = None, **attributes) -> str:
    id = str(uuid.uuid4())
    stack.publish(f"{APP}.{TYPE}", event(user, id, **attributes), content_type="application/cloudevents+json",
                  headers=headers)
    return id


def named(spans: list[Span], name: str) -> Span:
    found = [span for span in spans if span.name == name]
    assert len(found) == 1, (name, spans)
    return found[0]


def complete(receiver, trace: str, *names: str) -> list[Span]:
    """The spans of a trace, once they have these names."""
    def spans():
        received = receiver.spans(trace)
        return received if set(names) <= {span.name for span in received} else None

    try:
        return eventually(spans, 30, f"the spans {names}")
    except AssertionError as error:
        raise AssertionError(f"{error}: {receiver.spans(trace)}") from None


def phone(stack) -> tuple[str, str]:
    """A user with one phone."""
    user, token = f"u-{uuid.uuid4()}", secrets.token_hex(32)
    phones_of(stack)(APP, user, token)
    return user, token


def test_one_event_is_one_trace(traced, receiver):
    user, token = phone(traced)
    upstream = Upstream()
    id = publish(traced, user, {"traceparent": upstream.traceparent, "tracestate": "vendor=1"})
    spans = complete(receiver, upstream.trace, EVENTS, "decide", NOTIFICATIONS, "look up devices", PUSHES, "push apns",
                     "process rules.outcomes", "store outcomes")

    rules = named(spans, EVENTS)
    assert (rules.parent, rules.service, rules.kind) == (upstream.span, "rules", "consumer")
    assert rules.attributes["messaging.system"] == "rabbitmq"
    assert rules.attributes["messaging.operation.type"] == "process"
    assert rules.attributes["messaging.destination.name"] == f"events:{APP}.{TYPE}:rules.events.app.{APP}"
    assert rules.attributes["cloudevents.event_id"] == id
    assert rules.attributes["cloudevents.event_type"] == TYPE
    assert rules.attributes["heliograph.recipients.push"] == 1
    assert len(rules.attributes["heliograph.rules"]) == 1
    assert named(spans, "decide").parent == rules.id

    registry = named(spans, NOTIFICATIONS)
    assert (registry.parent, registry.service) == (rules.id, "token-registry")
    assert registry.attributes["messaging.message.conversation_id"] == id
    assert (registry.attributes["heliograph.pushes"], registry.attributes["heliograph.targets"]) == (1, 1)
    lookup = named(spans, "look up devices")
    assert (lookup.parent, lookup.kind) == (registry.id, "client")

    sender = named(spans, PUSHES)
    assert (sender.parent, sender.service) == (registry.id, "apns-sender")
    assert sender.attributes["heliograph.targets.accepted"] == 1
    push = named(spans, "push apns")
    assert (push.parent, push.kind, push.failed) == (sender.id, "client", False)
    assert push.attributes["http.response.status_code"] == 200
    assert push.attributes["heliograph.outcome"] == "accepted"
    assert push.attributes["heliograph.provider.message_id"]

    outcomes = named(spans, "process rules.outcomes")
    assert (outcomes.parent, outcomes.service) == (sender.id, "rules")
    assert named(spans, "store outcomes").parent == outcomes.id
    assert all(span.state == "vendor=1" for span in spans)
    assert all(0 < span.start <= span.end <= time.time_ns() for span in spans)
    assert not any(span.failed for span in spans)
    for path, headers, body in receiver.requests:
        assert path == "/v1/traces" and headers["Content-Type"] == "application/x-protobuf"
        assert headers["authorization"] == "Bearer receiver-secret"
        assert token.encode() not in body and user.encode() not in body


def test_an_event_without_a_trace_begins_one(traced, receiver):
    user, _ = phone(traced)
    id = publish(traced, user)
    root = eventually(
        lambda: next((s for s in receiver.spans() if s.attributes.get("cloudevents.event_id") == id), None),
        what="the event's span")
    assert root.parent == "" and root.name == EVENTS
    spans = complete(receiver, root.trace, NOTIFICATIONS, PUSHES, "push apns", "process rules.outcomes")
    assert named(spans, PUSHES).parent == named(spans, NOTIFICATIONS).id


def test_the_attribute_of_an_event_is_its_upstream(traced, receiver):
    user, _ = phone(traced)
    upstream = Upstream()
    publish(traced, user, traceparent=upstream.traceparent)
    spans = complete(receiver, upstream.trace, EVENTS, "push apns")
    assert named(spans, EVENTS).parent == upstream.span


def test_the_header_of_a_request_is_the_event_s_upstream(traced, receiver):
    user, _ = phone(traced)
    upstream = Upstream()
    code, key = traced.pushctl("keys", "create", "--service", "rules", "--name", f"traces-{uuid.uuid4().hex[:8]}",
                               "--app", APP, "--may", "events:publish")
    assert code == 0, key
    key = next(line for line in key.splitlines() if line.startswith("hgk_"))
    status, answer = traced.http(
        "POST", f"{traced.env['EVENTS_API_URL']}/v1/events", raw=event(user, str(uuid.uuid4())),
        headers={"Authorization": f"Bearer {key}", "Content-Type": "application/cloudevents+json",
                 "traceparent": upstream.traceparent})
    assert status in (200, 202), answer
    spans = complete(receiver, upstream.trace, "publish events", EVENTS, "push apns")
    published = named(spans, "publish events")
    assert (published.parent, published.service, published.kind) == (upstream.span, "events-api", "producer")
    assert named(spans, EVENTS).parent == published.id


def test_a_failed_push_is_traced_although_its_trace_is_not_sampled(traced, receiver):
    user, token = phone(traced)
    status, answer = traced.http(
        "POST", f"{traced.env['SIMULATOR_URL']}/outcomes",
        {"provider": "apns", "token": token, "status": 410, "reason": "Unregistered",
         "timestamp": int(time.time() * 1000) + 1000})
    assert status in (200, 201, 204), answer
    upstream = Upstream(sampled=False)
    publish(traced, user, {"traceparent": upstream.traceparent})
    devices = f"process token-registry.devices.app.{APP}"
    spans = complete(receiver, upstream.trace, PUSHES, "push apns", "process rules.outcomes",
                     "process feedback.outcomes", "store evidence", devices)
    push = named(spans, "push apns")
    assert push.failed and push.message == "Unregistered"
    assert push.attributes["http.response.status_code"] == 410
    assert push.attributes["heliograph.provider.reason"] == push.attributes["error.type"] == "Unregistered"
    assert push.attributes["heliograph.outcome"] == "unregistered"
    sender = named(spans, PUSHES)
    assert push.parent == sender.id and sender.failed
    assert sender.attributes["heliograph.targets.unregistered"] == 1
    feedback = named(spans, "process feedback.outcomes")
    assert (feedback.parent, feedback.service) == (sender.id, "feedback")
    assert named(spans, "store evidence").parent == feedback.id
    # The command that deactivates the registration, after the evaluation.
    assert named(spans, devices).parent == feedback.id
    # The stages before the failure had ended their spans.
    assert not {EVENTS, NOTIFICATIONS} & {span.name for span in spans}
    assert not any(token.encode() in body for _, _, body in receiver.requests)


def test_an_unsampled_trace_without_a_failure_is_not_sent(traced, receiver):
    user, token = phone(traced)
    upstream = Upstream(sampled=False)
    id = publish(traced, user, {"traceparent": upstream.traceparent})
    eventually(lambda: traced.is_answered(id), what="the outcome")
    marker = Upstream()
    publish(traced, user, {"traceparent": marker.traceparent})
    complete(receiver, marker.trace, EVENTS, NOTIFICATIONS, PUSHES, "process rules.outcomes")
    assert receiver.spans(upstream.trace) == []


def test_the_outcomes_of_several_pushes_are_linked(traced, receiver):
    user, _ = phone(traced)

    def linked() -> list[Span]:
        with traced.channel() as channel:
            for _ in range(60):
                channel.basic_publish("events", f"{APP}.{TYPE}", event(user, str(uuid.uuid4())))
        time.sleep(2)
        return [span for span in receiver.spans() if span.name == "process rules.outcomes" and span.links]

    span = eventually(linked, 60, "a message with the outcomes of several pushes")[0]
    senders = {other.id: other for other in receiver.spans() if other.name == PUSHES}
    eventually(lambda: all(id in {s.id for s in receiver.spans()} for _, id in span.links), what="the linked spans")
    senders = {other.id: other for other in receiver.spans() if other.name == PUSHES}
    assert all(senders[id].trace == trace != span.trace for trace, id in span.links)
    assert senders[span.parent].trace == span.trace


def test_an_overloaded_receiver_gets_the_spans_later(traced, receiver):
    user, _ = phone(traced)
    receiver.refuse(503, 429)
    upstream = Upstream()
    id = publish(traced, user, {"traceparent": upstream.traceparent})
    eventually(lambda: traced.is_answered(id), what="the outcome")
    complete(receiver, upstream.trace, EVENTS, NOTIFICATIONS, PUSHES, "push apns", "process rules.outcomes")
    status, metrics = traced.http("GET", f"http://127.0.0.1:{traced.admin_port('apns-sender')}/metrics")
    assert status == 200 and 'heliograph_trace_spans_total{result="exported"' in metrics


def test_the_spans_of_the_last_messages_are_sent_at_shutdown(traced, receiver):
    user, _ = phone(traced)
    upstream = Upstream()
    id = publish(traced, user, {"traceparent": upstream.traceparent})
    eventually(lambda: traced.is_answered(id), what="the outcome")
    for service in ("apns-sender", "token-registry"):
        traced.service("stop", service)
    try:
        spans = receiver.spans(upstream.trace)
        assert {NOTIFICATIONS, PUSHES} <= {span.name for span in spans}, spans
    finally:
        for service in ("apns-sender", "token-registry"):
            traced.service("start", service)


def test_nothing_is_sent_without_a_configuration(traced, receiver):
    configure(traced, [])
    traced.restart_all(*STAGES)
    before = len(receiver.requests)
    user, _ = phone(traced)
    id = publish(traced, user, {"traceparent": Upstream().traceparent})
    eventually(lambda: traced.is_answered(id), what="the outcome")
    for service in STAGES:
        status, metrics = traced.http("GET", f"http://127.0.0.1:{traced.admin_port(service)}/metrics")
        assert status == 200 and "heliograph_trace_spans_total" not in metrics
    # An exporter would send its last spans now.
    for service in STAGES:
        traced.service("stop", service)
    assert len(receiver.requests) == before
