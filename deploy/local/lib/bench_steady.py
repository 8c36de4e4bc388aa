"""A steady stream of messages through a stage, with the delay from each publish to its result."""

import dataclasses
import threading
import time
from collections.abc import Callable, Iterable

import pika
from local_stack import Stack, eventually


@dataclasses.dataclass
class Stream:
    """The messages to publish, and the identification of their results."""

    exchange: str
    routing_key: str
    content_type: str
    # The queue that receives the results.
    queue: str
    # Returns the n-th message: its name and body.
    message: Callable[[int], tuple[str, bytes]]
    # Returns the names that a result refers to.
    names: Callable[[bytes], Iterable[str]]


def delays(stack: Stack, stream: Stream, rate: float, seconds: float, is_over=lambda: False) -> list[float]:
    """Sorted delays in milliseconds, at a steady rate until the time is over or `is_over` returns true."""
    sent: dict[str, float] = {}
    found: list[float] = []
    ready, stop = threading.Event(), threading.Event()

    def listen() -> None:
        connection = pika.BlockingConnection(pika.URLParameters(stack.env["AMQP_URL"]))
        channel = connection.channel()
        ready.set()
        for method, _, body in channel.consume(stream.queue, auto_ack=True, inactivity_timeout=0.5):
            if method is None:
                if stop.is_set():
                    break
                continue
            arrived = time.monotonic()
            for name in stream.names(body):
                begun = sent.pop(name, None)
                if begun is not None:
                    found.append((arrived - begun) * 1000)
        connection.close()

    listener = threading.Thread(target=listen)
    listener.start()
    ready.wait(30)
    with stack.channel() as channel:
        begin, number, looked = time.monotonic(), 0, 0.0
        while time.monotonic() - begin < seconds:
            if time.monotonic() - looked > 1:
                looked = time.monotonic()
                if is_over():
                    break
            pause = begin + number / rate - time.monotonic()
            if pause > 0:
                time.sleep(pause)
            name, body = stream.message(number)
            sent[name] = time.monotonic()
            channel.basic_publish(
                stream.exchange, stream.routing_key, body,
                pika.BasicProperties(content_type=stream.content_type, delivery_mode=2), mandatory=True)
            number += 1
    eventually(lambda: not sent, 120, "a result for every message")
    stop.set()
    listener.join()
    return sorted(found)


def percentile(sorted_values: list[float], share: float) -> float:
    return sorted_values[min(int(len(sorted_values) * share), len(sorted_values) - 1)]
