"""Output of a bench: one JSON object per line, a table on standard error, and a table for a README."""

import json
import pathlib
import sys


class Figures:
    def __init__(self, bench: str):
        self.bench = bench
        self.rows: list[dict] = []

    def add(
        self, figure: str, value: float, unit: str, at_least: float | None = None, at_most: float | None = None,
        **parts: float,
    ):
        """`parts` are the components of a ratio, or other parameters."""
        row = {"bench": self.bench, "figure": figure, "value": round(value, 3), "unit": unit}
        row |= {name: round(part, 3) for name, part in parts.items()}
        if at_least is not None:
            row["at_least"] = at_least
        if at_most is not None:
            row["at_most"] = at_most
        row["holds"] = (at_least is None or value >= at_least) and (at_most is None or value <= at_most)
        self.rows.append(row)
        print(json.dumps(row), flush=True)

    @property
    def hold(self) -> bool:
        return all(row["holds"] for row in self.rows)

    def table(self) -> None:
        for row in self.rows:
            mark = "holds" if row["holds"] else "DOES NOT HOLD"
            print(
                f"  {row['figure']:<60} {row['value']:>12} {row['unit']:<10} {bound(row):<10} {mark if bound(row) else ''}",
                file=sys.stderr,
            )

    def finish(self, folder: pathlib.Path) -> None:
        """Prints the table, writes a README table to `folder`, and exits with 1 if a figure does not hold."""
        self.table()
        # The bench may have removed the folder with its stack.
        folder.mkdir(parents=True, exist_ok=True)
        page = folder / "measured.md"
        page.write_text("\n".join(self.markdown()) + "\n")
        print(f"    table for a README: {page}", file=sys.stderr)
        sys.exit(0 if self.hold else 1)

    def markdown(self) -> list[str]:
        lines = ["| value | measured | target |", "|---|---|---|"]
        for row in self.rows:
            measured = f"{row['value']:g} {row['unit']}".removesuffix(" ratio")
            if "ours" in row and "limit" in row:
                measured += f" ({row['ours']:,.4g} over {row['limit']:,.4g})"
            lines.append(f"| {row['figure']} | {measured} | {bound(row) or '–'} |")
        return lines


def bound(row: dict) -> str:
    if "at_least" in row:
        return f"≥ {row['at_least']}"
    return f"≤ {row['at_most']}" if "at_most" in row else ""
