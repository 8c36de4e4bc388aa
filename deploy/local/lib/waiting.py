"""Waiting for a condition with a deadline."""

import time


def eventually(condition, within: float = 30, what: str = "the condition"):
    """Waits until the condition returns a true value, and returns it."""
    deadline = time.monotonic() + within
    while True:
        result = condition()
        if result:
            return result
        if time.monotonic() > deadline:
            raise AssertionError(f"{what} did not hold within {within} s")
        time.sleep(0.1)
