"""How a bench says what it measured: a JSON object a line for programs, a table for people."""

import json
import sys


class Figures:
    def __init__(self, bench: str):
        self.bench = bench
        self.rows: list[dict] = []

    def add(self, figure: str, value: float, unit: str, at_least: float | None = None, at_most: float | None = None):
        row = {"bench": self.bench, "figure": figure, "value": round(value, 3), "unit": unit}
        if at_least is not None:
            row["at_least"] = at_least
        if at_most is not None:
            row["at_most"] = at_most
        row["holds"] = (at_least is None or value >= at_least) and (at_most is None or value <= at_most)
        self.rows.append(row)
        print(json.dumps(row), flush=True)

    def table(self) -> None:
        for row in self.rows:
            bound = f"≥ {row['at_least']}" if "at_least" in row else f"≤ {row['at_most']}" if "at_most" in row else ""
            mark = "holds" if row["holds"] else "DOES NOT HOLD"
            print(
                f"  {row['figure']:<44} {row['value']:>12} {row['unit']:<10} {bound:<10} {mark if bound else ''}",
                file=sys.stderr,
            )
