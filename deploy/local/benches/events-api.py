"""events-api: the delay of POST /v1/events at half of its best rate, beside that of a bare confirmed publish.

Uses its own broker and database. The stages are stopped, so that events stay in their queue. HTTP clients and AMQP
publishers are threads of this process, each with its own connection; both send at the same rate in turn.
"""
# Builds: pushctl token-registry provider-simulator rules feedback apns-sender fcm-sender events-api webhook-sender

import argparse
import http.client
import pathlib
import statistics
import sys
import threading
import time
import urllib.parse
import uuid

import pika
from bench_figures import Figures
from bench_steady import percentile
from local_stack import Stack, cloud_event

PORT_BASE = 19065
APP, TYPE = "family-portal", "chat.message.created"
CONTENT_TYPE = "application/cloudevents+json"


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--state", required=True)
    arguments.add_argument("--build", choices=["debug", "release"], default="release")
    arguments.add_argument("--connections", type=int, default=8)
    arguments.add_argument("--seconds", type=float, default=10, help="duration of a measurement")
    arguments.add_argument("--rounds", type=int, default=3)
    options = arguments.parse_args()
    stack = Stack(pathlib.Path(options.state), PORT_BASE, build=options.build)
    stack.up("--no-demo", timeout=1800)
    figures = Figures("events-api")
    try:
        for service in ["rules", "token-registry", "feedback", "apns-sender", "fcm-sender", "provider-simulator"]:
            stack.service("stop", service)
        measure(stack, options, figures)
    finally:
        stack.down("--erase")
    figures.finish(pathlib.Path(options.state).parent)


def measure(stack: Stack, options, figures: Figures) -> None:
    code, key = stack.pushctl("keys", "create", "--service", "rules", "--name", "bench", "--app", APP, "--may",
                              "events:publish")
    assert code == 0, key
    key = next(line for line in key.splitlines() if line.startswith("hgk_"))

    def over_http() -> HTTPPublisher:
        return HTTPPublisher(stack.env["EVENTS_API_URL"], key)

    def over_amqp() -> AMQPPublisher:
        return AMQPPublisher(stack.env["AMQP_URL"])

    run(over_http, options, rate=None, seconds=3)  # Warm-up.
    best = statistics.median(
        len(run(over_http, options, rate=None, seconds=options.seconds / 2)) / (options.seconds / 2)
        for _ in range(options.rounds))
    rate = best / 2
    print(f"    best rate {best:.0f}/s; measuring at {rate:.0f}/s", file=sys.stderr)
    ours, bare = [], []
    for _ in range(options.rounds):
        bare.append(percentile(sorted(run(over_amqp, options, rate, options.seconds)), 0.99))
        ours.append(percentile(sorted(run(over_http, options, rate, options.seconds)), 0.99))
    figures.add("best rate of POST /v1/events", best, "events/s")
    figures.add("p99 of POST /v1/events at half of it", statistics.median(ours) * 1000, "ms")
    figures.add("p99 of a confirmed publish at this rate", statistics.median(bare) * 1000, "ms")
    ratio = statistics.median(ours) / statistics.median(bare)
    figures.add(
        "p99 of POST /v1/events over a confirmed publish", ratio, "ratio", at_most=3,
        ours=statistics.median(ours) * 1000, limit=statistics.median(bare) * 1000)


def run(publisher, options, rate: float | None, seconds: float) -> list[float]:
    """Publishes on all connections. Returns the delay of each event, from the time at which it was due.

    Without a rate, each connection sends its next event after the answer.
    """
    delays: list[float] = []
    failures: list[BaseException] = []
    publishers = [publisher() for _ in range(options.connections)]
    start = time.monotonic() + 0.2

    def work(number: int, own) -> None:
        taken: list[float] = []
        try:
            index = number
            while True:
                due = time.monotonic() if rate is None else start + index / rate
                if due - start > seconds:
                    break
                time.sleep(max(0, due - time.monotonic()))
                id = str(uuid.uuid4())
                own.publish(id, cloud_event(TYPE, {"message": {"id": id}, "participants": ["someone"]}, id))
                taken.append(time.monotonic() - due)
                index += options.connections
        except BaseException as error:
            failures.append(error)
        delays.extend(taken)

    threads = [threading.Thread(target=work, args=pair) for pair in enumerate(publishers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for own in publishers:
        own.close()
    if failures:
        raise failures[0]
    return delays


class HTTPPublisher:
    """A client with one kept connection."""

    def __init__(self, url: str, key: str):
        self.connection = http.client.HTTPConnection(urllib.parse.urlsplit(url).netloc, timeout=60)
        self.headers = {"Authorization": f"Bearer {key}", "Content-Type": CONTENT_TYPE}

    def publish(self, id: str, body: bytes) -> None:
        self.connection.request("POST", "/v1/events", body, self.headers)
        answer = self.connection.getresponse()
        text = answer.read()
        assert answer.status == 202, text

    def close(self) -> None:
        self.connection.close()


class AMQPPublisher:
    """A connection that publishes persistent, mandatory events and waits for each confirm."""

    def __init__(self, url: str):
        self.connection = pika.BlockingConnection(pika.URLParameters(url))
        self.channel = self.connection.channel()
        self.channel.confirm_delivery()

    def publish(self, id: str, body: bytes) -> None:
        self.channel.basic_publish(
            "events", f"{APP}.{TYPE}", body,
            pika.BasicProperties(content_type=CONTENT_TYPE, message_id=id, delivery_mode=2), mandatory=True)

    def close(self) -> None:
        self.connection.close()


if __name__ == "__main__":
    main()
