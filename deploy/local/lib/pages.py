"""The commands of a page, run like a person would."""

import pathlib
import re
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[3]


def steps(page: str) -> list[tuple[str, list[str]]]:
    """The shell blocks of a page, each with the lines that it is said to print."""
    blocks = re.findall(r"```sh\n(.*?)```(?:\n+```text\n(.*?)```)?", page, re.DOTALL)
    return [(commands, expected.splitlines()) for commands, expected in blocks]


class Reader:
    """A person who follows a page: one shell in the checkout, whose variables last from step to step."""

    def __init__(self, environment: dict[str, str], home: pathlib.Path, state: pathlib.Path | None = None,
                 timeout: float = 180):
        """`state` replaces the folder .local of the commands."""
        self.state, self.timeout, self.variables = state, timeout, home / "variables"
        self.variables.write_text("")
        # Everything is built: `swift build` would wait for other builds of this checkout.
        self.environment = {**environment, "HOME": str(home), "LOCAL_SKIP_BUILD": "yes"}

    def run(self, commands: str) -> str:
        """Runs one block, and returns all of its output. A failed command fails the block."""
        if self.state:
            commands = commands.replace(".local/", f"{self.state}/")
        script = f"set -a; . '{self.variables}'; set -e\n{commands}\nexport -p >'{self.variables}'"
        done = subprocess.run(
            ["bash", "-c", script], cwd=ROOT, env=self.environment, stdin=subprocess.DEVNULL, text=True,
            timeout=self.timeout, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        assert done.returncode == 0, f"{commands}\n{done.stdout[-3000:]}"
        return done.stdout
