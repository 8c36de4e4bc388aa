"""Instructions of the senders' small operations, a measure independent of other programs on the machine.

Bounds are a tenth above the last count; lower them after an improvement. Counted with Debian 12's libraries and Swift
6.3; other versions differ.
"""
# Builds: MicroBench

import argparse
import os
import pathlib
import re
import subprocess

from bench_figures import Figures
from local_stack import ROOT

# Instructions per operation, or per target for pushes with a hundred.
BOUNDS = {
    "decode-push": 14_100,
    "decode-push-of-100": 2_300,
    "encode-outcomes-of-100": 860,
    "render-apns": 12_900,
    "render-fcm": 12_400,
    "classify-accepted-apns": 750,
    "classify-unregistered-apns": 13_000,
    "classify-accepted-fcm": 2_600,
    "classify-unregistered-fcm": 46_800,
    "stage": 42_000,
    "stage-with-census": 42_600,
    "stage-of-100": 14_300,
    "stage-fcm": 43_200,
    "seal-token": 61_500,
    "open-token": 17_600,
}
# The difference of two runs excludes the process's startup.
FEW, MANY = 200, 1200
# The number of pushes that fills the stage's caches, and four times that number.
FIRST, FOURTH = 60_000, 240_000
# The census' part of a stage's instructions, in percent.
CENSUS_SHARE = 2


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--state", required=True)
    arguments.add_argument("--only", choices=sorted(BOUNDS), help="only this operation")
    options = arguments.parse_args()
    state = pathlib.Path(options.state).parent / "micro"
    state.mkdir(parents=True, exist_ok=True)
    # Valgrind 3.19 cannot read Swift's debug information.
    program = state / "MicroBench"
    subprocess.run(["objcopy", "--strip-debug", ROOT / ".build/release/MicroBench", program], check=True)

    figures = Figures("micro")
    found = {}
    for case, bound in BOUNDS.items():
        if options.only in (None, case):
            each = (counted(program, case, MANY) - counted(program, case, FEW)) / (MANY - FEW)
            if case.endswith("-of-100"):
                each /= 100
            found[case] = each
            figures.add(case, round(each), "instructions", at_most=bound)
    if options.only is None:
        share = 100 * (found["stage-with-census"] / found["stage"] - 1)
        figures.add("the census' part of the stage", round(share, 1), "%", at_most=CENSUS_SHARE)
        growth = peak_memory(program, FOURTH) - peak_memory(program, FIRST)
        figures.add(f"memory after {FOURTH} pushes over after {FIRST}", growth, "MB", at_most=5)
    figures.finish(state)


def counted(program: pathlib.Path, case: str, times: int) -> int:
    done = subprocess.run(
        ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", program, case, str(times)],
        capture_output=True, text=True, check=True)
    found = re.search(r"Collected : (\d+)", done.stderr)
    if not found:
        raise SystemExit(f"valgrind counted nothing:\n{done.stderr[-2000:]}")
    return int(found[1])


def peak_memory(program: pathlib.Path, pushes: int) -> float:
    """In MB, for one run of the stage."""
    process = subprocess.Popen([program, "stage", str(pushes)])
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"the stage ended with {process.returncode}")
    return usage.ru_maxrss / 1024


if __name__ == "__main__":
    main()
