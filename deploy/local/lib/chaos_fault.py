"""The interface of one kind of fault."""

import random

# A readiness condition holds for 30 s after its connection was lost.
NOT_CONNECTED = "any not-ready broker-out: not connected"
# The log line of a connection that cannot be made at once.
CONNECTION_LOST = "any log: Broker connection failed; reconnecting|Cannot connect to the broker"


class Fault:
    """A fault that begins, holds for some seconds, and ends.

    An instance keeps the choices of its last `begin` until `end`, so one instance runs once at a time.
    """

    # Unique; the name on the command line.
    name: str
    # The rows of deploy/operations/faults.md that the fault exercises.
    numbers: tuple[int, ...]
    # Whether it is part of the short run in CI.
    gate: bool = False
    # 3: needs a broker cluster of three nodes.
    nodes: int = 1
    # Whether it prevents other faults afterwards, so that a run plays it last.
    final: bool = False
    # Seconds between begin and end.
    hold: float = 10
    # Seconds after the end, until every service is ready, every queue is empty and every route is open.
    recovery: float = 90
    # Seconds after the end in which messages may wait for a late retry, while other faults follow.
    lasting: float = 0
    # The maximum of extra pushes of one occurrence: pushes that a phone receives twice. In pushes with one target;
    # a push with more targets counts once for each.
    extra_pushes: int = 0
    # What must appear while the fault holds; chaos_signals.py has the syntax.
    signals: tuple[str, ...] = ()
    # Whether confirmed messages may end as dead letters of this fault: its own poison messages.
    dead_letters: int = 0

    @property
    def needs(self) -> str | None:
        """The reason why it cannot run on this machine; None if it can."""
        return None

    def needs_of(self, stack) -> str | None:
        """The reason why it cannot run on this stack; None if it can."""
        nodes = len(stack.broker_nodes)
        if self.nodes > nodes:
            return f"needs {self.nodes} broker nodes, the stack has {nodes}"
        return self.needs

    def signals_of(self, stack) -> tuple[str, ...]:
        """The signals on this stack. With several broker nodes, services are connected to another one at once, or were
        not connected to the one with the fault.
        """
        expected = len(stack.broker_nodes) == 1 or self.nodes > 1
        return tuple(one for one in self.signals if expected or one not in (NOT_CONNECTED, CONNECTION_LOST))

    def begin(self, stack, random: random.Random) -> dict:
        """Starts the fault. Returns its choices for the history."""
        raise NotImplementedError

    def end(self, stack) -> None:
        """Heals the fault completely, also after a `begin` that failed half-way. Does nothing the second time."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return self.name
