"""Latency from a publisher to the provider: p50, p99 and maximum at a steady rate of chat events."""

import argparse
import json
import pathlib
import sys
import time

import pika
from bench_figures import Figures
from local_stack import Stack, eventually

PORT_BASE = 18820


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--state", required=True)
    arguments.add_argument("--rate", type=float, default=50, help="events per second")
    arguments.add_argument("--seconds", type=float, default=30)
    options = arguments.parse_args()

    stack = Stack(pathlib.Path(options.state), PORT_BASE, build="release")
    stack.up("--no-demo")
    try:
        measure(stack, options)
    finally:
        stack.down()


def measure(stack: Stack, options) -> None:
    token = "be" * 32
    status, answer = stack.register("family-portal", "bench-reader", token)
    assert status == 200, answer
    # Warm-up: connections and caches.
    publish(stack, "warm", 50, options.rate)
    stack.forget_requests()
    count = int(options.rate * options.seconds)
    print(f"    {count} events at {options.rate}/s", file=sys.stderr)
    sent = publish(stack, "run", count, options.rate)

    def arrived() -> bool:
        messages = {request["body"]["data"]["message_id"] for request in stack.requests("apns")}
        return messages >= sent.keys()

    eventually(arrived, 60, "every event's push")
    received = {
        request["body"]["data"]["message_id"]: request["receivedAt"] / 1000 for request in stack.requests("apns")
    }
    delays = sorted((received[message] - at) * 1000 for message, at in sent.items() if message in received)
    figures = Figures("latency")
    figures.add("p50 from publish to simulator", delays[len(delays) // 2], "ms")
    figures.add("p99 from publish to simulator", delays[int(len(delays) * 0.99)], "ms", at_most=250)
    figures.add("maximum from publish to simulator", delays[-1], "ms")
    figures.add("events without a push", count - len(delays), "events", at_most=0)
    figures.table()


def publish(stack: Stack, run: str, count: int, rate: float) -> dict[str, float]:
    """Publishes events one by one at the rate, each confirmed. Returns the publish times by message id."""
    sent: dict[str, float] = {}
    body = json.loads((pathlib.Path(__file__).parents[1] / "demo" / "chat-message-created.json").read_text())
    with stack.channel() as channel:
        start = time.monotonic()
        for index in range(count):
            pause = start + index / rate - time.monotonic()
            if pause > 0:
                time.sleep(pause)
            message = f"{run}-{time.time_ns()}"
            body["id"] = message
            body["data"]["message"]["id"] = message
            body["data"]["participants"] = ["bench-reader"]
            sent[message] = time.time()
            channel.basic_publish(
                "events", "family-portal.chat.message.created", json.dumps(body).encode(),
                pika.BasicProperties(content_type="application/cloudevents+json", delivery_mode=2), mandatory=True,
            )
    return sent


if __name__ == "__main__":
    main()
