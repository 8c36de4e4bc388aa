"""A Jepsen-style run: a seeded workload while faults begin and end, then checks of what the services guarantee.

Uses a stack of its own. The history of operations and faults is in history.jsonl of the state folder, the result in
verdict.json. Each figure is one invariant: its value is the number of violations.

    deploy/local/bench chaos                              the faults of the gate, about ten minutes
    deploy/local/bench chaos --faults all --minutes 60
    deploy/local/bench chaos --faults none --minutes 120  a soak: the workload without faults
    deploy/local/bench chaos --faults rules-killed,broker-killed --seed 7 --build debug
    deploy/local/bench chaos --trial rules-killed         one fault with little traffic, without the checks
    deploy/local/bench chaos --mutant NAME                a planted bug, which the run must find
    deploy/local/bench chaos --mutants                    lists the planted bugs
    deploy/local/bench chaos --recheck run.json.gz        checks an earlier run again
"""
# Builds: pushctl token-registry provider-simulator rules feedback apns-sender fcm-sender events-api webhook-sender

import argparse
import dataclasses
import gzip
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys

import yaml
from bench_figures import Figures
from chaos_checks import check_all
from chaos_faults import select
from chaos_history_reader import read_run
from chaos_mutants import MUTANTS
from chaos_run import ChaosRun, note
from chaos_stack import ChaosStack
from local_stack import LOCAL, ROOT

PORT_BASE = 19400
MEANINGS = {
    "I1": "confirmed and lost", "I2": "extra pushes without a cause", "I3": "written or charged twice",
    "I4": "not recovered", "I5": "interactive pushes delayed by bulk", "I6": "memory or descriptors that grow",
    "I7": "signals that did not appear", "I8": "secrets in logs", "I9": "sent after their expiry",
    "IC": "a loss that the census does not name", "IP": "sent to the wrong person",
}


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--state", required=True, help=argparse.SUPPRESS)
    arguments.add_argument("--seed", type=int, default=1)
    arguments.add_argument("--minutes", type=float, help="time for faults; without it, each fault once")
    arguments.add_argument("--faults", default="gate", help="gate, all, none or names with commas between them")
    arguments.add_argument("--rate", type=float, default=20, help="events a second")
    arguments.add_argument("--build", choices=["debug", "release"], default="release")
    arguments.add_argument("--port-base", type=int, default=PORT_BASE)
    arguments.add_argument("--keep", action="store_true", help="keep the stack's data and logs")
    arguments.add_argument("--mutant", choices=list(MUTANTS), help="the planted bug that the build contains")
    arguments.add_argument("--mutants", action="store_true", help="list the planted bugs")
    arguments.add_argument("--recheck", type=pathlib.Path, metavar="FILE", help="check the run.json.gz of an earlier run")
    arguments.add_argument("--trial", nargs="+", metavar="FAULT", help="try faults out")
    options = arguments.parse_args()
    if options.mutants:
        for name, mutant in MUTANTS.items():
            print(f"{name}: {mutant.invariant}, {mutant.about}")
        return
    if options.recheck:
        figures = report(check_all(read_run(options.recheck)))
        figures.table()
        sys.exit(0 if figures.hold else 1)
    # A terminated run stops its stack too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    state = pathlib.Path(options.state)
    state.mkdir(parents=True, exist_ok=True)
    if options.trial:
        sys.exit(subprocess.run([
            sys.executable, LOCAL / "lib" / "chaos_faults_trial.py", "--state", state, "--build", options.build,
            "--port-base", str(options.port_base), "--seed", str(options.seed), *options.trial]).returncode)
    if options.mutant and options.faults == "gate":
        options.faults = MUTANTS[options.mutant].faults
    run = perform(options, state)
    verdicts = check_all(run)
    write(state, options, run, verdicts)
    figures = report(verdicts)
    if options.mutant:
        conclude_mutant(options.mutant, verdicts)
    figures.finish(state.parent)


def report(verdicts) -> Figures:
    """Prints each verdict with its figures and its first violations."""
    figures = Figures("chaos")
    for verdict in verdicts:
        figure = f"{verdict.invariant}: {MEANINGS[verdict.invariant]}"
        figures.add(figure, len(verdict.violations), "violations", at_most=0)
        note(f"{verdict.invariant}: {json.dumps(verdict.figures)}")
        for violation in verdict.violations[:8]:
            note(f"  {violation}")
    return figures


def perform(options, state: pathlib.Path):
    faults = [] if options.faults == "none" else select(options.faults, options.seed)
    stack = ChaosStack(
        state / "stack", options.port_base, options.build, nodes=int(os.environ.get("LOCAL_NODES", "1")),
        standby=os.environ.get("LOCAL_STANDBY") == "yes")
    stack.environment["LOCAL_RULES_DIRECTORY"] = str(write_rules(state / "rules"))
    # Ports and data of an interrupted run.
    stack.down("--erase")
    # Logs outlive the data, and a seed has the same tokens each time.
    shutil.rmtree(stack.state / "log", ignore_errors=True)
    try:
        stack.up("--no-demo")
        stack.await_recovered(60)
        chaos = ChaosRun(stack, faults, options.seed, options.minutes, options.rate, state)
        try:
            chaos.perform()
        finally:
            keep_logs(stack, state)
        return chaos.run
    finally:
        stack.down(*([] if options.keep else ["--erase"]))


def write_rules(folder: pathlib.Path) -> pathlib.Path:
    """A rule file for each app of the apps file."""
    folder.mkdir(parents=True, exist_ok=True)
    template = (LOCAL / "benches" / "chaos" / "rules.yaml").read_text()
    for app in yaml.safe_load((LOCAL / "demo" / "apps.yaml").read_text())["apps"]:
        (folder / f"{app}.yaml").write_text(template.replace("@APP@", app))
    return folder


def keep_logs(stack, state: pathlib.Path) -> None:
    """The services' logs, for the causes of violations."""
    shutil.rmtree(state / "log", ignore_errors=True)
    if (stack.state / "log").is_dir():
        shutil.copytree(stack.state / "log", state / "log", ignore=shutil.ignore_patterns("build.log"))


def write(state: pathlib.Path, options, run, verdicts) -> None:
    with gzip.open(state / "run.json.gz", "wt") as file:
        json.dump(dataclasses.asdict(run), file)
    (state / "verdict.json").write_text(json.dumps({
        "seed": options.seed, "faults": options.faults, "mutant": options.mutant,
        "invariants": {one.invariant: {"holds": one.holds, "violations": one.violations, "figures": one.figures}
                       for one in verdicts}}, indent=1))


def conclude_mutant(name: str, verdicts) -> None:
    """Exits with 0 if the invariant of the planted bug found it."""
    wanted = MUTANTS[name].invariant
    found = [one.invariant for one in verdicts if not one.holds]
    print(json.dumps({"bench": "chaos", "mutant": name, "wanted": wanted, "found": found}), flush=True)
    sys.exit(0 if wanted in found else 1)


if __name__ == "__main__":
    main()
