"""The rights of a running process, as Linux reports them."""

import dataclasses
import pathlib


@dataclasses.dataclass
class Rights:
    users: set[int]
    groups: set[int]
    """The union of all sets of capabilities."""
    capabilities: int
    has_no_new_privileges: bool
    is_root_read_only: bool
    """The process's id in its own namespace."""
    own_pid: int


def status_of(pid: int) -> dict[str, str]:
    lines = pathlib.Path(f"/proc/{pid}/status").read_text().splitlines()
    return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}


def mount_options(pid: int, path: str) -> set[str]:
    mounts = [line.split() for line in pathlib.Path(f"/proc/{pid}/mountinfo").read_text().splitlines()]
    (found,) = (mount for mount in mounts if mount[4] == path)
    return set(found[5].split(","))


def rights_of(pid: int) -> Rights:
    status = status_of(pid)
    capabilities = 0
    for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
        capabilities |= int(status[name], 16)
    return Rights(
        users={int(one) for one in status["Uid"].split()}, groups={int(one) for one in status["Gid"].split()},
        capabilities=capabilities, has_no_new_privileges=status["NoNewPrivs"] == "1",
        is_root_read_only="ro" in mount_options(pid, "/"), own_pid=int(status["NSpid"].split()[-1]))
