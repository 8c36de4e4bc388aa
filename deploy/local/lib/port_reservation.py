"""Reserves ports for a stack of the tests, so that parallel runs on one machine use different ones.

    python3 port_reservation.py    prints the base, and keeps the reservation until nobody reads its output

A reservation is a bound abstract Unix socket. It has the scope of the ports, the network namespace, and ends with its
process.
"""

import select
import socket
import sys

# Each base reserves this many consecutive ports.
PORTS = 30
BASES = range(21000, 29000, PORTS)

# Keeps the reservations of this process.
_reservations: list[socket.socket] = []


def free_port_base(bases: range = BASES) -> int:
    """Returns the first of 30 consecutive free ports, and reserves them until the process ends."""
    for base in bases:
        reservation = socket.socket(socket.AF_UNIX)
        try:
            reservation.bind(f"\0heliograph-test-ports-{base}")
        except OSError:  # another run's
            reservation.close()
            continue
        # Only of other programs, and stacks that were left behind.
        if any(is_open(base + offset) for offset in range(PORTS)):
            reservation.close()
            continue
        _reservations.append(reservation)
        return base
    raise RuntimeError(f"no {PORTS} free ports between {bases.start} and {bases.stop}")


def is_open(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def main() -> None:
    print(free_port_base(), flush=True)
    ends = select.poll()
    ends.register(sys.stdout, 0)
    ends.poll()


if __name__ == "__main__":
    main()
