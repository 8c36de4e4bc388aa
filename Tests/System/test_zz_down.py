"""The last file: a stack of its own comes up beside the first, refuses what it must, and goes without a trace."""

import pathlib
import socket
import subprocess

from conftest import free_port_base
from local_stack import LOCAL, Stack


def processes_of(state: pathlib.Path) -> list[str]:
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                environment = (entry / "environ").read_bytes().decode(errors="replace")
            except OSError:
                continue
            if str(state) in command or str(state) in environment:
                found.append(f"{entry.name} {command[:120]}")
    return found


def test_down_leaves_no_process_behind(stack, tmp_path):
    second = Stack(tmp_path / "second", free_port_base())
    try:
        second.up("--no-demo", timeout=300)
        assert processes_of(second.state)
    finally:
        second.down()
    assert processes_of(second.state) == []
    second.down("--erase")
    assert not second.state.exists()


def test_a_taken_port_is_one_clear_line(tmp_path):
    base = free_port_base()
    with socket.create_server(("127.0.0.1", base)):
        stack = Stack(tmp_path / "taken", base)
        done = subprocess.run(
            [LOCAL / "up", "--detach"], env=stack.environment, capture_output=True, text=True, timeout=120)
    stack.down("--erase")
    assert done.returncode != 0
    assert f"port {base}, wanted for the private RabbitMQ node, is taken" in done.stderr
