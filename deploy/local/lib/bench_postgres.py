"""Queries and pgbench runs on the stack's Postgres, as its administrator."""

import os
import re
import subprocess

from local_stack import Stack


def buffers() -> str:
    """A quarter of the memory, as the Postgres manual recommends (19.4)."""
    return f"{os.sysconf('SC_PHYS_PAGES') * os.sysconf('SC_PAGE_SIZE') // 4 >> 20}MB"


def query(stack: Stack, sql: str) -> str:
    done = subprocess.run(["psql", "-XAtq", stack.env["DATABASE_URL"], "-v", "ON_ERROR_STOP=1"], input=sql,
                          capture_output=True, text=True, timeout=3600)
    if done.returncode != 0:
        raise SystemExit(f"psql: {done.stderr[-1000:]}")
    return done.stdout.strip()


def pgbench(stack: Stack, script: str, clients: int, seconds: int) -> float:
    """Transactions per second."""
    path = stack.state / "pgbench.sql"
    path.write_text(script)
    done = subprocess.run(
        ["pgbench", "-n", "-M", "prepared", "-c", str(clients), "-j", "2", "-T", str(seconds), "-f", path,
         stack.env["DATABASE_URL"]], capture_output=True, text=True, timeout=seconds + 120)
    found = re.search(r"^tps = ([0-9.]+)", done.stdout, re.M)
    if done.returncode != 0 or not found:
        raise SystemExit(f"pgbench: {done.stderr[-1000:]}")
    return float(found[1])
