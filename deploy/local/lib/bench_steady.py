"""A steady stream of messages through a stage, and how long each takes from its publish to what comes of it."""

import dataclasses
import threading
import time
from collections.abc import Callable, Iterable

import pika
from local_stack import Stack, eventually


@dataclasses.dataclass
class Stream:
    """What is published, and how what comes of it is known again."""

    exchange: str
    routing_key: str
    content_type: str
    # The queue that what comes of it arrives in.
    queue: str
    # The n-th message: its name, and its body.
    message: Callable[[int], tuple[str, bytes]]
    # The names that a message from the queue is about.
    names: Callable[[bytes], Iterable[str]]


def delays(stack: Stack, stream: Stream, rate: float, seconds: float, is_over=lambda: False) -> list[float]:
    """Milliseconds from each message to what comes of it, sorted; at a steady rate until the time is up or it is over."""
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
    eventually(lambda: not sent, 120, "what comes of every message")
    stop.set()
    listener.join()
    return sorted(found)


def percentile(sorted_values: list[float], share: float) -> float:
    return sorted_values[min(int(len(sorted_values) * share), len(sorted_values) - 1)]
