"""Faults of the database server."""

import os
import signal
import socket
import struct
import subprocess

from chaos_fault import Fault

UNREACHABLE = "any not-ready database: unreachable"
HOLDING = "any metric heliograph_outage is 1"


class DatabaseFault(Fault):
    """A fault of the primary that the stack started with."""

    def needs_of(self, stack):
        return "the standby is the primary now" if stack.promoted else super().needs_of(stack)


class RestartedFast(DatabaseFault):
    """A fast shutdown and a start: open transactions are aborted."""

    name = "database-restarted"
    numbers = (29,)
    gate = True
    hold = 5
    signals = (UNREACHABLE,)
    number = signal.SIGINT

    def begin(self, stack, random):
        pid = stack.pid("database")
        os.kill(pid, self.number)
        stack.await_end(pid, "the database")
        return {}

    def end(self, stack):
        stack.start("database")


class RestartedImmediately(RestartedFast):
    """An immediate shutdown, like a crash: the server recovers from its log."""

    name = "database-crashed"
    numbers = (30,)
    number = signal.SIGQUIT


class Frozen(DatabaseFault):
    """SIGSTOP of the server and its backends."""

    name = "database-frozen"
    numbers = (36,)
    gate = True
    hold = 20
    signals = (UNREACHABLE, HOLDING)

    def begin(self, stack, random):
        return {"pids": len(stack.signal("database", signal.SIGSTOP))}

    def end(self, stack):
        stack.signal("database", signal.SIGCONT)


class Session:
    """An administrator's session with an open transaction."""

    def __init__(self, stack, statements: str, name: str):
        self.name = name
        self.process = subprocess.Popen(
            ["psql", "-XAtq", "-v", "ON_ERROR_STOP=1", stack.env["DATABASE_URL"]], stdin=subprocess.PIPE, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=dict(os.environ, PGAPPNAME=name))
        self.process.stdin.write(f"BEGIN ISOLATION LEVEL REPEATABLE READ;\n{statements};\nSELECT 'begun';\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        while answer and answer.strip() != "begun":
            answer = self.process.stdout.readline()
        if not answer:
            raise RuntimeError(f"the session {name} ended")

    def end(self) -> None:
        self.process.stdin.close()
        self.process.wait(20)


class SessionFault(DatabaseFault):
    def __init__(self):
        self.session: Session | None = None

    def end(self, stack):
        if self.session is not None:
            self.session.end()
        self.session = None


class TablesLocked(SessionFault):
    """ACCESS EXCLUSIVE locks on tables that every event needs."""

    name = "database-tables-locked"
    numbers = (34,)
    gate = True
    hold = 20
    tables = ("rules.decision", "registry.registration")

    def begin(self, stack, random):
        table = random.choice(self.tables)
        # Each statement of a service waits a second for its locks, so this one finds a gap.
        self.session = Session(stack, f"LOCK TABLE {table} IN ACCESS EXCLUSIVE MODE", "chaos-lock")
        return {"table": table}


class OldSnapshot(SessionFault):
    """A transaction that keeps its snapshot: vacuum removes no row versions meanwhile."""

    name = "database-old-snapshot"
    numbers = (38,)
    hold = 60

    def begin(self, stack, random):
        self.session = Session(stack, "SELECT count(*) FROM rules.decision", "chaos-snapshot")
        return {}


class ConnectionsExhausted(DatabaseFault):
    """Connections without a login fill `max_connections`, and the services' own are ended."""

    name = "database-connections-exhausted"
    numbers = (35,)
    hold = 15
    signals = (UNREACHABLE,)

    def __init__(self):
        self.sockets: list[socket.socket] = []

    def begin(self, stack, random):
        limit = int(stack.sql("SHOW max_connections"))
        port = stack.port_base + 3
        fields = b"user\0rules\0database\0heliograph\0\0"
        startup = struct.pack(">ii", len(fields) + 8, 196_608) + fields
        terminate(stack)
        for _ in range(limit + 20):
            one = socket.create_connection(("127.0.0.1", port), timeout=5)
            self.sockets.append(one)
            # The server waits a minute for the answer to its request for a password.
            one.sendall(startup)
        return {"connections": len(self.sockets)}

    def end(self, stack):
        for one in self.sockets:
            one.close()
        self.sockets = []


def terminate(stack) -> None:
    stack.sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
              "WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'")


class BackendsTerminated(DatabaseFault):
    """Every connection ended by an administrator, five times."""

    name = "database-backends-terminated"
    numbers = (29,)
    gate = True
    hold = 3

    def begin(self, stack, random):
        for _ in range(5):
            terminate(stack)
        return {"times": 5}

    def end(self, stack):
        pass


class ReadOnly(DatabaseFault):
    """The server accepts no writes, like a former primary."""

    name = "database-read-only"
    numbers = (32,)
    hold = 15
    signals = (HOLDING,)

    def begin(self, stack, random):
        self.set(stack, "ALTER SYSTEM SET default_transaction_read_only = on")
        return {}

    def end(self, stack):
        self.set(stack, "ALTER SYSTEM RESET default_transaction_read_only")

    @staticmethod
    def set(stack, statement: str) -> None:
        stack.sql(statement, "postgres")
        stack.sql("SELECT pg_reload_conf()", "postgres")


class DiskFull(DatabaseFault):
    """The file system of data and log has no room. Servers may end; they start again once there is room."""

    name = "database-disk-full"
    numbers = (37,)
    hold = 15
    recovery = 120
    signals = (HOLDING,)

    def needs_of(self, stack):
        mounted = os.path.ismount(stack.database_disk)
        return super().needs_of(stack) or (None if mounted else "needs root, for a file system of its own")

    def begin(self, stack, random):
        # Recycled log segments are room too. After the checkpoint and the switch few are left.
        stack.sql("CHECKPOINT")
        used = self.used(stack)
        stack.resize_database_disk(used + 65_536)
        return {"used": used}

    def end(self, stack):
        stack.resize_database_disk(None)
        stack.start("database")
        # Without its synchronous standby the primary confirms no commit.
        if stack.standby:
            stack.start("database-standby")

    @staticmethod
    def used(stack) -> int:
        disk = os.statvfs(stack.database_disk)
        return (disk.f_blocks - disk.f_bfree) * disk.f_frsize


class PasswordRotated(DatabaseFault):
    """The database's password of one service changes first, and the file with it at the end."""

    name = "database-password-rotated"
    numbers = (27,)
    hold = 10
    signals = ("VICTIM not-ready database: unreachable",)

    def __init__(self):
        self.user: str | None = None

    def begin(self, stack, random):
        self.user = random.choice(["rules", "token-registry", "feedback"])
        self.password = f"{random.getrandbits(192):048x}"
        stack.sql(f"ALTER ROLE \"{self.user}\" PASSWORD '{self.password}'")
        terminate(stack)
        return {"service": self.user}

    def end(self, stack):
        if self.user is None:
            return
        url, former = stack.secret(f"database-url-{self.user}"), stack.secret(f"database-{self.user}")
        stack.replace_secret(f"database-{self.user}", self.password)
        stack.replace_secret(f"database-url-{self.user}", url.replace(former, self.password))
        self.user = None


class Promoted(DatabaseFault):
    """The primary is killed and its synchronous standby promoted. Once for each stack: the former primary is lost."""

    name = "database-promoted"
    final = True
    numbers = (31,)
    hold = 10
    signals = (UNREACHABLE,)

    def needs_of(self, stack):
        if not stack.standby:
            return "needs a stack with a standby"
        return super().needs_of(stack)

    def begin(self, stack, random):
        stack.kill("database")
        stack.promoted = True
        return {}

    def end(self, stack):
        stack.service("promote", "database-standby")


FAULTS: list[Fault] = [
    RestartedFast(), RestartedImmediately(), Frozen(), TablesLocked(), OldSnapshot(), ConnectionsExhausted(),
    BackendsTerminated(), ReadOnly(), DiskFull(), PasswordRotated(), Promoted(),
]
