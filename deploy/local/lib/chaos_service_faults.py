"""Faults of one service process: ended, frozen, short of descriptors, memory, processor, or with blocked output."""

import contextlib
import os
import pathlib
import random
import signal
import subprocess
import time

import yaml
from chaos_fault import Fault
from chaos_resources import CPU, MEMORY, Cgroup, has_command
from chaos_signals import SERVICES

# The unacknowledged pushes of a sender's two queues of one app: PushStageHandler.policy. A push whose answer was lost
# or forgotten is unacknowledged, so this bounds what is sent again.
UNACKNOWLEDGED = 500 + 64
SENDERS = {"apns-sender": "apns", "fcm-sender": "fcm"}


def unacknowledged_pushes(stack, service: str | None = None) -> int:
    """The bound for one sender, or for all of them."""
    apps = yaml.safe_load((stack.state / "apps.yaml").read_text())["apps"].values()
    providers = list(SENDERS.values()) if service is None else [SENDERS[service]] if service in SENDERS else []
    return UNACKNOWLEDGED * sum(provider in app for app in apps for provider in providers)


class ServiceFault(Fault):
    """A fault of one service: the named one, or one that `begin` chooses."""

    def __init__(self, service: str | None = None):
        self.service = service
        self.victim: str | None = None
        if service is not None:
            self.name = f"{service}-{self.name}"

    def choose(self, random: random.Random) -> str:
        self.victim = self.service or random.choice(SERVICES)
        return self.victim


class Killed(ServiceFault):
    """SIGKILL. A sender forgets the outcomes of its unacknowledged pushes."""

    name = "killed"
    numbers = (54,)
    gate = True
    hold = 5
    signals = ("VICTIM down",)

    def begin(self, stack, random):
        self.extra_pushes = unacknowledged_pushes(stack, self.choose(random))
        stack.kill(self.victim)
        return {"service": self.victim}

    def end(self, stack):
        if self.victim is not None:
            stack.start(self.victim)


class Stopped(Killed):
    """TERM under load. The service drains, so no push is repeated."""

    name = "stopped"
    numbers = (52,)
    gate = False

    def begin(self, stack, random):
        begun = time.monotonic()
        stack.stop(self.choose(random))
        return {"service": self.victim, "seconds": round(time.monotonic() - begun, 1)}


class Frozen(ServiceFault):
    """SIGSTOP, shorter than the broker's heartbeat time-out."""

    name = "frozen"
    numbers = (56,)
    hold = 20
    signals = ("VICTIM down",)

    def begin(self, stack, random):
        # The deadlines of requests in flight pass.
        self.extra_pushes = unacknowledged_pushes(stack, self.choose(random))
        return {"service": self.victim, "pids": stack.signal(self.victim, signal.SIGSTOP)}

    def end(self, stack):
        if self.victim is not None:
            stack.signal(self.victim, signal.SIGCONT)


class FrozenLong(Frozen):
    """SIGSTOP for longer than three heartbeats: the broker has closed the connections and redelivered.

    Of one service for each run, which the seed chooses: it takes as long as ten other faults.
    """

    name = "service-frozen-long"
    hold = 75


class DescriptorsExhausted(ServiceFault):
    """No further file descriptor, while the broker closes the connections.

    Swift's thread pool (libdispatch) may end the process: it traps when it cannot open a file of /proc.
    """

    name = "descriptors-exhausted"
    numbers = (58,)
    hold = 20
    # The trap prints a backtrace.
    signals = ("VICTIM log: [Tt]oo many open files|EMFILE|file descriptor|Signal 4:",)

    @property
    def needs(self):
        return None if has_command("prlimit") else "needs prlimit"

    def begin(self, stack, random):
        pid = stack.pid(self.choose(random))
        self.pid = pid
        self.extra_pushes = unacknowledged_pushes(stack, self.victim)
        self.before = limit_of(pid, "NOFILE")
        prlimit(pid, f"--nofile=4:{self.before[1]}")
        stack.close_broker_connections(self.victim)
        return {"service": self.victim, "open": len(os.listdir(f"/proc/{pid}/fd"))}

    def end(self, stack):
        if self.victim is None or not hasattr(self, "before"):
            return
        pid = stack.pid(self.victim)
        if pid == self.pid:
            prlimit(pid, f"--nofile={self.before[0]}:{self.before[1]}")
            # A process that prints its backtrace runs on, and does not answer.
            ends = time.monotonic() + 60
            while stack.pid(self.victim) == pid and stack.readiness(self.victim) is None and time.monotonic() < ends:
                time.sleep(0.5)
        stack.start(self.victim)


def limit_of(pid: int, resource: str) -> tuple[str, str]:
    done = subprocess.run(
        ["prlimit", "--pid", str(pid), "--raw", "--noheadings", "--output=SOFT,HARD", f"--{resource.lower()}"],
        capture_output=True, text=True, timeout=10, check=True)
    soft, hard = done.stdout.split()
    return soft, hard


def prlimit(pid: int, option: str) -> None:
    subprocess.run(["prlimit", "--pid", str(pid), option], capture_output=True, timeout=10, check=True)


class OutOfMemory(ServiceFault):
    """The kernel ends a process whose control group has used up its memory."""

    name = "out-of-memory"
    numbers = (55,)
    hold = 10
    signals = ("VICTIM down",)

    @property
    def needs(self):
        return MEMORY.needs

    def begin(self, stack, random):
        self.extra_pushes = unacknowledged_pushes(stack, self.choose(random))
        self.group = Cgroup(MEMORY, f"heliograph-{stack.port_base}-{self.victim}")
        pid = stack.pid(self.victim)
        killed = self.group.exhaust_memory(pid, within=30)
        return {"service": self.victim, "killed": killed}

    def end(self, stack):
        if self.victim is None:
            return
        stack.start(self.victim)
        if hasattr(self, "group"):
            self.group.remove()


class ShortOfProcessor(ServiceFault):
    """A tenth of one processor."""

    name = "short-of-processor"
    numbers = (60,)
    hold = 30

    @property
    def needs(self):
        return CPU.needs

    def begin(self, stack, random):
        # Deadlines of requests in flight may pass.
        self.extra_pushes = unacknowledged_pushes(stack, self.choose(random))
        self.group = Cgroup(CPU, f"heliograph-{stack.port_base}-{self.victim}")
        self.group.limit_processor(stack.pid(self.victim), share=0.1)
        return {"service": self.victim}

    def end(self, stack):
        if hasattr(self, "group"):
            self.group.remove()


class Restarted(ServiceFault):
    """A fault that the service needs to be started for. It is stopped with TERM before and after."""

    def begin(self, stack, random):
        stack.stop(self.choose(random))
        self.prepare(stack)
        stack.start(self.victim)
        return {"service": self.victim}

    def end(self, stack):
        if self.victim is None:
            return
        stack.stop(self.victim)
        self.clear(stack)
        stack.start(self.victim)

    def prepare(self, stack) -> None:
        raise NotImplementedError

    def clear(self, stack) -> None:
        raise NotImplementedError

    def environment(self, stack) -> pathlib.Path:
        """The file with the service's further variables."""
        folder = stack.state / "environment"
        folder.mkdir(exist_ok=True)
        return folder / self.victim


class ClockJump(Restarted):
    """The wall clock of one process jumps by an hour or by 400 days; the monotonic clock does not."""

    name = "clock-jump"
    numbers = (57,)
    hold = 20
    jumps = {"+1h": 3600, "-1h": -3600, "+400d": 400 * 86_400, "-400d": -400 * 86_400}

    @property
    def needs(self):
        return None if has_command("cc") else "needs a C compiler"

    def begin(self, stack, random):
        choices = super().begin(stack, random)
        stack.service("ready", self.victim)
        jump = random.choice(list(self.jumps))
        self.set(stack, self.jumps[jump])
        return choices | {"jump": jump}

    def set(self, stack, seconds: int) -> None:
        # Written in place, because the process has mapped the file.
        with self.offset(stack).open("r+b") as file:
            file.write(seconds.to_bytes(8, "little", signed=True))

    def offset(self, stack) -> pathlib.Path:
        return stack.state / "run" / f"clock-{self.victim}"

    def prepare(self, stack):
        library = stack.state.resolve() / "run" / "chaos_clock.so"
        source = pathlib.Path(__file__).with_name("chaos_clock.c")
        subprocess.run(["cc", "-O2", "-Wall", "-shared", "-fPIC", "-o", library, source], check=True, timeout=60)
        self.offset(stack).write_bytes(bytes(8))
        self.environment(stack).write_text(f"LD_PRELOAD={library}\nCHAOS_CLOCK={self.offset(stack).resolve()}\n")

    def clear(self, stack):
        self.environment(stack).unlink(missing_ok=True)
        self.offset(stack).unlink(missing_ok=True)


class OutputBlocked(Restarted):
    """Standard output is a full pipe that nobody reads."""

    name = "output-blocked"
    numbers = (59,)
    signals = ("VICTIM metric heliograph_log_lines_dropped_total rises",)

    def prepare(self, stack):
        log = stack.log(self.victim)
        log.rename(log.with_suffix(".kept"))
        os.mkfifo(log, 0o600)
        # Kept open for reading, so that the service can open it, and never read.
        self.reader = os.open(log, os.O_RDWR | os.O_NONBLOCK)
        # Full to the last byte, because a service that has little to do writes few lines.
        with contextlib.suppress(BlockingIOError):
            while True:
                os.write(self.reader, b"x" * 64)
        self.environment(stack).write_text("LOG_LEVEL=debug\n")

    def clear(self, stack):
        log = stack.log(self.victim)
        self.environment(stack).unlink(missing_ok=True)
        if not log.with_suffix(".kept").exists():
            return
        log.unlink(missing_ok=True)
        log.with_suffix(".kept").rename(log)
        os.close(self.reader)


class LogDiskFull(Restarted):
    """Every write to standard output fails, because its file system is full."""

    name = "log-disk-full"
    numbers = (59,)
    signals = ("VICTIM metric heliograph_log_lines_dropped_total rises",)

    def prepare(self, stack):
        log = stack.log(self.victim)
        log.rename(log.with_suffix(".kept"))
        log.symlink_to("/dev/full")
        self.environment(stack).write_text("LOG_LEVEL=debug\n")

    def clear(self, stack):
        log = stack.log(self.victim)
        self.environment(stack).unlink(missing_ok=True)
        if log.with_suffix(".kept").exists():
            log.unlink(missing_ok=True)
            log.with_suffix(".kept").rename(log)


FAULTS: list[Fault] = [
    *[kind(service) for kind in (Killed, Stopped, Frozen) for service in SERVICES],
    FrozenLong(), DescriptorsExhausted(), OutOfMemory(), ShortOfProcessor(), ClockJump(), OutputBlocked(), LogDiskFull(),
]
