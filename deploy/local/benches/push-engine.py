"""Compares our HTTP/2 client with h2load: one core each, the same provider, alternating. Reports medians of per-round
ratios.
"""
# Builds: PushEngineBench

import argparse
import json
import os
import pathlib
import statistics
import sys

from bench_figures import Figures
from bench_provider import Provider, h2load, run_measured
from local_stack import ROOT

CORE_OF_THE_PROVIDER, CORE_OF_THE_CLIENT = 0, 1


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--state", required=True)
    arguments.add_argument("--requests", type=int, default=500_000)
    arguments.add_argument("--rounds", type=int, default=7)
    arguments.add_argument("--connections", type=int, default=2)
    arguments.add_argument("--streams", type=int, default=100, help="concurrent streams per connection")
    options = arguments.parse_args()
    if len(os.sched_getaffinity(0)) < 2:
        raise SystemExit("error: this bench needs two cores, for the provider and the client")

    state = pathlib.Path(options.state).parent / "push-engine"
    with Provider(state, core=CORE_OF_THE_PROVIDER).running() as provider:
        rounds = [a_round(provider, options) for _ in range(options.rounds)]
    report(rounds, state)


def a_round(provider: Provider, options) -> dict:
    limit = h2load(provider, options.requests, CORE_OF_THE_CLIENT)
    spent = run_measured(
        [ROOT / ".build/release/PushEngineBench", provider.url, provider.certificate, provider.payload,
         options.requests, options.connections, options.streams],
        CORE_OF_THE_CLIENT,
    )
    ours = json.loads(spent.output)
    # Includes the startup, as for h2load: the CPU time of the whole process.
    ours["cpu"] = spent.cpu * 1e6 / options.requests
    print(f"    ours {ours['rate']:9.0f}/s {ours['cpu']:5.2f} µs   h2load {limit.rate:9.0f}/s {limit.cpu:5.2f} µs",
          file=sys.stderr)
    return {"limit": limit, "ours": ours}


def report(rounds: list[dict], state: pathlib.Path) -> None:
    def median(of) -> float:
        return statistics.median(of(each["ours"], each["limit"]) for each in rounds)

    figures = Figures("push-engine")
    figures.add(
        "requests/s over h2load's", median(lambda ours, limit: ours["rate"] / limit.rate), "ratio", at_least=0.6,
        ours=median(lambda ours, _: ours["rate"]), limit=median(lambda _, limit: limit.rate))
    figures.add(
        "CPU per request over h2load's", median(lambda ours, limit: ours["cpu"] / limit.cpu), "ratio", at_most=1.6,
        ours=median(lambda ours, _: ours["cpu"]), limit=median(lambda _, limit: limit.cpu))
    figures.add(
        "cold start: the first 50,000 over the steady rate",
        median(lambda ours, _: ours["coldRate"] / ours["steadyRate"]), "ratio", at_least=0.9,
        ours=median(lambda ours, _: ours["coldRate"]), limit=median(lambda ours, _: ours["steadyRate"]))
    figures.add("peak resident memory", median(lambda ours, _: ours["peakMemoryMB"]), "MB")
    figures.finish(state)


if __name__ == "__main__":
    main()
