"""The full run of Tests/System/test_provider_faults.py: 100,000 pushes, and time for the longest retries."""

import argparse
import pathlib

from bench_figures import Figures
from fault_run import fault_run
from local_stack import Stack

PORT_BASE = 18880


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--state", required=True)
    arguments.add_argument("--pushes", type=int, default=100_000)
    arguments.add_argument("--minutes", type=float, default=35, help="minutes until a push expires")
    arguments.add_argument("--share", type=float, default=0.01, help="share of the requests for each request fault")
    arguments.add_argument("--connection-share", type=float, default=0.001, help="share for each connection fault")
    arguments.add_argument("--lane-share", type=float, default=0.0001, help="share for each fault that pauses a route")
    options = arguments.parse_args()

    stack = Stack(pathlib.Path(options.state), PORT_BASE, build="release")
    stack.up("--no-demo")
    try:
        run = fault_run(
            stack, options.pushes, options.minutes * 60, options.share, options.connection_share, options.lane_share)
    finally:
        stack.down("--erase")
    figures = Figures("faults")
    figures.add("pushes with exactly one outcome", run["pushes"] - run["with_several_outcomes"], "pushes",
                at_least=options.pushes, seconds=run["seconds"])
    figures.add("registrations lost without evidence", len(run["wrongly_deactivated"]), "devices", at_most=0)
    figures.add("dead letters", sum(run["dead"].values()), "messages", at_most=0)
    figures.add("routes left paused", 0 if run["lanes_open"] else 1, "routes", at_most=0)
    figures.add("kinds of faults met", sum(run["kinds_played"].values()), "kinds", at_least=run["faults"] * 0.9)
    for disposition, count in sorted(run["dispositions"].items()):
        figures.add(f"ended as {disposition}", count, "pushes")
    figures.finish(pathlib.Path(options.state))


if __name__ == "__main__":
    main()
