"""Parallel runs of the tests reserve different ports."""

import os
import pathlib
import socket
import subprocess
import sys

import port_reservation
import pytest
from local_stack import eventually
from port_reservation import PORTS, free_port_base

SCRIPT = pathlib.Path(port_reservation.__file__)
# Outside of the ports of real runs.
FIRST = 29500 + os.getpid() % 20 * 4 * PORTS
BASES = range(FIRST, FIRST + 4 * PORTS, PORTS)


@pytest.fixture(autouse=True)
def own_reservations(monkeypatch):
    """The test's reservations end with it."""
    held: list[socket.socket] = []
    monkeypatch.setattr(port_reservation, "_reservations", held)
    yield
    for reservation in held:
        reservation.close()


def test_each_reservation_has_ports_of_its_own():
    assert [free_port_base(BASES) for _ in BASES] == list(BASES)
    with pytest.raises(RuntimeError, match="no 30 free ports"):
        free_port_base(BASES)


def test_ports_in_use_are_skipped():
    with socket.create_server(("127.0.0.1", BASES[0] + PORTS - 1)):
        assert free_port_base(BASES) == BASES[1]
    assert free_port_base(BASES) == BASES[0]


def test_a_shell_keeps_its_reservation_while_it_reads(tmp_path):
    """As deploy/local/test: two shells at once, then their end."""
    shell = f'exec {{ports}}< <("{sys.executable}" "{SCRIPT}") && read -r base <&"$ports" && echo "$base" && read -r _'
    runs = [subprocess.Popen(["bash", "-c", shell], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            for _ in range(3)]
    try:
        bases = [int(run.stdout.readline()) for run in runs]
        assert len(set(bases)) == 3
    finally:
        for run in runs:
            run.communicate("\n", timeout=20)

    def is_released(base: int) -> bool:
        with socket.socket(socket.AF_UNIX) as again:
            try:
                again.bind(f"\0heliograph-test-ports-{base}")
            except OSError:
                return False
            return True

    for base in bases:
        eventually(lambda: is_released(base), 20, f"the release of {base}")
