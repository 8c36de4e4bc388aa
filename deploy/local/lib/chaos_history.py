"""What happened in a run of the chaos bench: operations, faults and observations. The checks are functions of it.

All times are seconds since 1970, of one machine's clock.
"""

import dataclasses
import json
import pathlib
import threading
import time
import uuid
from dataclasses import dataclass, field

# The namespace of ids that services derive: DerivedID.swift.
NAMESPACE = uuid.UUID("6f1f8f5e-53f2-5b0c-9d0a-0b1de15c7c3a")


def device_id(app: str, provider: str, token: str, environment: str = "production") -> str:
    """The id of a registration."""
    parts = ["device", app, provider, environment, token]
    return str(uuid.uuid5(NAMESPACE, "".join(f"{len(part.encode())}:{part}" for part in parts)))


@dataclass
class Operation:
    """One operation of the workload: published, registered, signed-out, erased, preferred."""

    kind: str
    # ok: the broker's confirm or a 2xx. failed: refused. unknown: no answer.
    result: str
    began: float
    ended: float
    app: str = ""
    # The event's id, type, recipients and expiry (kind published).
    event: str = ""
    type: str = ""
    users: tuple[str, ...] = ()
    expires: float | None = None
    # Whether each recipient keeps one registration for the whole run.
    steady: bool = False
    # kinds registered, signed-out, erased, preferred
    user: str = ""
    provider: str = ""
    token: str = ""
    # kind preferred: whether the user wants pushes
    wants: bool = True
    error: str = ""
    # The monotonic clock at the begin.
    monotonic: float = 0
    # The number of its line `invoked`, from 1; 0 without such a line.
    number: int = 0


@dataclass
class FaultSpan:
    """One occurrence of a fault. `recovered` is None if the stack did not recover in time."""

    name: str
    began: float
    ended: float
    recovered: float | None
    recovery_limit: float = 90
    # Seconds from its end until every service was ready, under load.
    ready: float | None = None
    extra_pushes: int = 0
    dead_letters: int = 0
    choices: dict = field(default_factory=dict)
    seen: dict = field(default_factory=dict)
    missing: tuple[str, ...] = ()
    problem: str = ""

    @property
    def over(self) -> float:
        """The end of its effects."""
        return self.recovered if self.recovered is not None else float("inf")


@dataclass
class Request:
    """One request at the simulator."""

    provider: str
    token: str
    event: str
    rule: str
    at: float
    status: int | None
    accepted: bool


@dataclass
class Decision:
    """A row of rules.decision, with the event's id."""

    notification: str
    step: int
    event: str
    app: str
    rule: str
    user: str
    answer: str
    reason: str
    at: float


@dataclass
class Outcome:
    """A row of rules.outcome, or an outcome on the bus."""

    notification: str
    device: str | None
    disposition: str
    reason: str | None = None


@dataclass
class Charge:
    """The times charged to one user's cap: a member of rules.person.logs."""

    app: str
    user: str
    cap: str
    times: list[float]


@dataclass
class Registration:
    """A row of registry.registration."""

    device: str
    app: str
    user: str
    state: str
    at: float


@dataclass
class DeadLetter:
    queue: str
    reason: str
    body: str


@dataclass
class Sample:
    """A process while nothing waits: resident memory in megabytes, open descriptors."""

    service: str
    pid: int
    at: float
    resident: float
    descriptors: int


@dataclass
class CensusLoss:
    """The message that was taken from a queue by hand at the end of a run, and what the census says."""

    event: str
    # The state that the census must name.
    state: str
    taken: float = 0
    found: float = 0
    named: str = ""
    # Why the message could not be taken, or was not named.
    problem: str = ""
    # Other missing notifications: state, event and notification.
    others: tuple[str, ...] = ()

    @property
    def seconds(self) -> float:
        """From the loss until the census named it."""
        return self.found - self.taken


@dataclass
class Run:
    operations: list[Operation] = field(default_factory=list)
    faults: list[FaultSpan] = field(default_factory=list)
    requests: list[Request] = field(default_factory=list)
    decisions: list[Decision] = field(default_factory=list)
    outcomes: list[Outcome] = field(default_factory=list)
    # Outcomes on the bus, in a queue of the bench.
    tapped: list[Outcome] = field(default_factory=list)
    # Device events on the bus: name, user, device.
    announced: list[tuple[str, str, str]] = field(default_factory=list)
    # Ids of stored events, one for each row; of held notifications; of notifications in a digest.
    events: list[str] = field(default_factory=list)
    held: list[str] = field(default_factory=list)
    gathered: list[str] = field(default_factory=list)
    # Inbox rows: notification, user, the row of its content.
    inbox: list[tuple[str, str, str]] = field(default_factory=list)
    # Digests: user, number of items.
    summaries: list[tuple[str, int]] = field(default_factory=list)
    charges: list[Charge] = field(default_factory=list)
    registrations: list[Registration] = field(default_factory=list)
    # Rows of erased users: table, user.
    remains: list[tuple[str, str]] = field(default_factory=list)
    dead: list[DeadLetter] = field(default_factory=list)
    # Discarded messages by reason, counted by metrics while the process lived.
    discards: dict[str, float] = field(default_factory=dict)
    samples: list[Sample] = field(default_factory=list)
    # Log files with secrets: file, kind of the secret.
    leaks: list[tuple[str, str]] = field(default_factory=list)
    # Named spans without faults: baseline, bulk.
    phases: dict[str, tuple[float, float]] = field(default_factory=dict)
    # The work that was left when the run waited for its end.
    undrained: tuple[str, ...] = ()
    census: CensusLoss | None = None

    def published(self, *results: str) -> list[Operation]:
        return [one for one in self.operations if one.kind == "published" and one.result in (results or ("ok",))]


@dataclass
class Verdict:
    """The result of one check: violations, and figures to print."""

    invariant: str
    violations: list[str] = field(default_factory=list)
    figures: dict = field(default_factory=dict)

    @property
    def holds(self) -> bool:
        return not self.violations


class History:
    """Records operations and faults, each as one line of a file as soon as it ended."""

    def __init__(self, path: pathlib.Path):
        self.run = Run()
        self.lock = threading.Lock()
        self.file = path.open("w")
        self.invoked = 0

    def invoke(self, operation: Operation) -> None:
        """Numbers an operation and writes its line `invoked`, before its first byte is sent."""
        with self.lock:
            self.invoked += 1
            operation.number = self.invoked
            self.file.write(line_of("invoked", operation))

    def add(self, record: Operation | FaultSpan) -> None:
        kept = self.run.operations if isinstance(record, Operation) else self.run.faults
        line = line_of(type(record).__name__.lower(), record)
        with self.lock:
            kept.append(record)
            self.file.write(line)

    def note(self, what: str, **details) -> None:
        with self.lock:
            self.file.write(json.dumps({"record": what, "at": time.time(), **details}, default=list) + "\n")
            self.file.flush()

    def close(self) -> None:
        with self.lock:
            self.file.close()


def line_of(name: str, record: Operation | FaultSpan) -> str:
    """A line of the history. Fields without a value are left out."""
    fields = {name: value for name, value in dataclasses.asdict(record).items() if value not in ("", (), None)}
    return json.dumps({"record": name, **fields}, default=list) + "\n"
