"""A live surface with thousands of followers and an update a second: order, budget, coalescing and orphans.

Everything runs on one machine, with the simulator in place of APNs. A share of the phones reports the token of its Live
Activity halfway. With `--channel`, the phones follow a broadcast channel:

    deploy/local/bench live --channel --followers 2000 --seconds 600
"""
# Builds: pushctl token-registry provider-simulator rules feedback apns-sender fcm-sender events-api webhook-sender

import argparse
import pathlib
import shutil
import sys
import tempfile

from bench_figures import Figures
from live_run import APP, LiveRun, rules
from local_stack import ROOT, Stack, eventually, sql

PORT_BASE = 19080


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--state", required=True)
    arguments.add_argument("--followers", type=int, default=2000)
    arguments.add_argument("--seconds", type=int, default=600, help="updates, one a second")
    arguments.add_argument("--every", type=int, default=15, help="seconds between two updates of a phone")
    arguments.add_argument("--late", type=int, default=100, help="phones that report their token halfway")
    arguments.add_argument("--channel", action="store_true", help="phones follow a broadcast channel")
    arguments.add_argument("--build", default="release", choices=["debug", "release"])
    options = arguments.parse_args()
    figures = Figures("live")
    with tempfile.TemporaryDirectory() as folder:
        directory = pathlib.Path(folder) / "rules"
        shutil.copytree(ROOT / "Services" / "Rules" / "RuleSets", directory)
        (directory / f"{APP}.yaml").write_text(rules(f"{options.every}s", options.channel))
        stack = Stack(pathlib.Path(options.state), PORT_BASE, build=options.build)
        stack.environment["LOCAL_RULES_DIRECTORY"] = str(directory)
        stack.up("--no-demo", timeout=1800)
        try:
            if options.channel:
                eventually(lambda: ready_channels(stack) > 0, 60, "a ready channel")
            run = LiveRun(stack, pathlib.Path(folder), options.followers, options.seconds, options.late, note)
            run.run()
            size = f"{options.followers} followers, {options.seconds} s"
            figures.add(f"{size}: phones that showed an older state after a newer one", len(run.disordered()), "", at_most=0)
            figures.add(f"{size}: phones over the budget", len(run.over_budget(options.every)), "", at_most=0)
            figures.add(f"{size}: orphans", len(run.orphans()), "", at_most=0)
            figures.add(f"{size}: updates sent", run.updates(), "")
            steps = options.seconds // options.every
            figures.add(f"{size}: updates of the phone with the fewest, of {steps}", run.fewest_updates(), "", at_least=steps // 2)
            figures.add(f"{size}: updates saved by coalescing", run.saved(), "", at_least=0)
            if options.channel:
                run.delete_channels()
                figures.add(f"{size}: pushes saved by the channel", run.saved_by_channels(), "", at_least=1)
                figures.add(f"{size}: channels left", run.channels_left(), "", at_most=0)
        finally:
            stack.down("--erase")
    figures.finish(pathlib.Path(options.state).parent)


def ready_channels(stack) -> int:
    return int(sql(stack, "SELECT count(*) FROM rules.channel WHERE channel IS NOT NULL AND item IS NULL"))


def note(text: str) -> None:
    print(f"    {text}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
