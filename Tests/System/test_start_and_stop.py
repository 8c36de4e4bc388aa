"""Starting and stopping further stacks. Runs last."""

import pathlib
import signal
import socket
import subprocess

from conftest import free_port_base
from local_stack import LOCAL, Stack, eventually


def nothing_is_left_of(state: pathlib.Path) -> None:
    """The broker's helper processes end shortly after the broker."""
    eventually(lambda: processes_of(state) == [], 30, f"the end of {processes_of(state)}")


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


def test_down_leaves_no_process(stack, tmp_path):
    second = Stack(tmp_path / "second", free_port_base())
    try:
        second.up("--no-demo", timeout=300)
        assert processes_of(second.state)
    finally:
        second.down()
    nothing_is_left_of(second.state)
    second.down("--erase")
    assert not second.state.exists()


def test_a_port_in_use_is_one_clear_error(tmp_path):
    base = free_port_base()
    with socket.create_server(("127.0.0.1", base)):
        stack = Stack(tmp_path / "taken", base)
        done = subprocess.run(
            [LOCAL / "up", "--detach"], env=stack.environment, capture_output=True, text=True, timeout=120)
    stack.down("--erase")
    assert done.returncode != 0
    assert f"port {base}, wanted for the private RabbitMQ node, is taken" in done.stderr


def foreground(stack: Stack, output: pathlib.Path) -> subprocess.Popen:
    """Runs deploy/local/up in its own session, like a terminal that sends Ctrl-C. Resets SIGINT, which a shell's
    background processes ignore.
    """
    return subprocess.Popen(
        [LOCAL / "up", "--no-demo"], env=stack.environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        stderr=output.open("w"), start_new_session=True, text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))


def test_ctrl_c_stops_everything(stack, tmp_path):
    own, output = Stack(tmp_path / "own", free_port_base()), tmp_path / "output"
    up = foreground(own, output)
    try:
        eventually(lambda: "Ctrl-C stops everything" in output.read_text(), 120, "the stack")
        assert processes_of(own.state)
        up.send_signal(signal.SIGINT)
        assert up.wait(90) == 0
        nothing_is_left_of(own.state)
    finally:
        own.down("--erase")


def test_ctrl_c_during_the_brokers_start_leaves_no_process(stack, tmp_path):
    own, output = Stack(tmp_path / "own", free_port_base()), tmp_path / "output"
    up = foreground(own, output)
    try:
        eventually(lambda: (own.state / "run" / "broker-launcher.pid").exists(), 60, "the broker's launcher")
        up.send_signal(signal.SIGINT)
        assert up.wait(90) != 0
        nothing_is_left_of(own.state)
    finally:
        own.down("--erase")


def test_two_commands_at_once_exclude_each_other(stack, tmp_path):
    own = Stack(tmp_path / "own", free_port_base())
    first = foreground(own, tmp_path / "output")
    try:
        eventually(lambda: (own.state / "lock").exists() and (own.state / "run").exists(), 60, "the first one's start")
        second = subprocess.run(
            [LOCAL / "up", "--detach"], env=own.environment, capture_output=True, text=True, timeout=60)
        assert second.returncode != 0 and "another deploy/local command is at work" in second.stderr
        eventually(lambda: "Ctrl-C stops everything" in (tmp_path / "output").read_text(), 120, "the first one's stack")
    finally:
        first.send_signal(signal.SIGINT)
        first.wait(90)
        own.down("--erase")


def test_a_failed_start_stops_what_it_started(stack, tmp_path):
    base = free_port_base()
    own = Stack(tmp_path / "own", base)
    # Not detectable before the start: the rule files are missing.
    own.environment["LOCAL_RULES_DIRECTORY"] = str(tmp_path / "nowhere")
    done = subprocess.run(
        [LOCAL / "up", "--detach", "--no-demo"], env=own.environment, capture_output=True, text=True, timeout=180)
    assert done.returncode != 0 and "rules did not become ready" in done.stderr
    nothing_is_left_of(own.state)
    own.down("--erase")
