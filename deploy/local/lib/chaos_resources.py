"""Control groups of version 1 that limit one process."""

import contextlib
import os
import pathlib
import shutil
import time

ROOT = pathlib.Path("/sys/fs/cgroup")


class Controller:
    def __init__(self, name: str, limit: str):
        self.folder, self._limit = ROOT / name, limit

    @property
    def needs(self) -> str | None:
        """The reason why it cannot be used; None if it can."""
        if not (self.folder / self._limit).exists() and not (self.folder / "cgroup.procs").exists():
            return f"needs control groups of version 1 ({self.folder})"
        return None if os.access(self.folder, os.W_OK) else f"needs write access to {self.folder}"


MEMORY = Controller("memory", "memory.limit_in_bytes")
CPU = Controller("cpu", "cpu.cfs_quota_us")


class Cgroup:
    """A group below a controller's root."""

    def __init__(self, controller: Controller, name: str):
        self.parent, self.folder = controller.folder, controller.folder / name
        self.folder.mkdir(exist_ok=True)

    def write(self, file: str, value) -> None:
        (self.folder / file).write_text(str(value))

    def read(self, file: str) -> int:
        return int((self.folder / file).read_text())

    def add(self, pid: int) -> None:
        self.write("cgroup.procs", pid)

    def limit_processor(self, pid: int, share: float) -> None:
        """Limits the process to a share of one processor."""
        self.write("cpu.cfs_period_us", 50_000)
        self.write("cpu.cfs_quota_us", int(50_000 * share))
        self.add(pid)

    def exhaust_memory(self, pid: int, within: float) -> bool:
        """Moves a process into the group, which has room for a few pages. Returns whether the kernel ended the process
        in this time. Its memory stays with the former group; pages that it needs from now on count.
        """
        self.write("memory.limit_in_bytes", 65_536)
        self.add(pid)
        deadline = time.monotonic() + within
        while time.monotonic() < deadline:
            if not is_alive(pid):
                return True
            time.sleep(0.1)
        return False

    def remove(self) -> None:
        """Moves remaining processes to the parent and deletes the group. Does nothing without one."""
        deadline = time.monotonic() + 10
        while self.folder.exists():
            for pid in (self.folder / "cgroup.procs").read_text().split():
                with contextlib.suppress(OSError):
                    (self.parent / "cgroup.procs").write_text(pid)
            try:
                self.folder.rmdir()
            except OSError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.05)


def is_alive(pid: int) -> bool:
    """Whether a process runs; false for one that has ended and was not waited for."""
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def has_command(name: str) -> bool:
    return shutil.which(name, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin") is not None
