"""`deploy/local/test` lists suites and system tests that fail once and pass when repeated, and fails above two."""

import os
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]

# Replaces the toolchain: the first test run fails in the named suites, the second passes.
SWIFT = """#!/bin/bash
[ "$1" = test ] || exit 0
while [ $# -gt 0 ]; do [ "$1" = --xunit-output ] && report=${2%.xml}-swift-testing.xml; shift; done
[ -n "$report" ] || exit 2
if [ -e "$FAKE_RAN" ]; then exit 0; fi
touch "$FAKE_RAN"
for suite in $FAKE_SUITES; do
  printf '<testcase classname="%s" name="a">\\n<failure message="x"/>\\n</testcase>\\n' "$suite"
done >"$report"
exit 1
"""


@pytest.mark.parametrize(("suites", "status"), [(["A.One", "B.Two"], 0), (["A.One", "B.Two", "C.Three"], 1)])
def test_flaky_suites_are_counted(tmp_path, suites, status):
    tools = tmp_path / "bin"
    tools.mkdir()
    (tools / "swift").write_text(SWIFT)
    (tools / "swift").chmod(0o755)
    environment = {
        **os.environ,
        "PATH": f"{tools}:{os.environ['PATH']}",
        "LOCAL_TEST_STATE": str(tmp_path / "state"),
        "FAKE_RAN": str(tmp_path / "ran"),
        "FAKE_SUITES": " ".join(suites),
    }
    run = subprocess.run(
        [ROOT / "deploy" / "local" / "test", "Anything"], env=environment, capture_output=True, text=True, timeout=180
    )
    assert run.returncode == status, run.stderr
    end = run.stderr[run.stderr.index(f"{len(suites)} flaky") :]
    assert all(suite in end for suite in suites)


# Each test fails in the first run and passes in the second.
FLAKY = """import pathlib
import pytest

@pytest.mark.parametrize("number", range({count}))
def test_flaky_sample(number):
    ran = pathlib.Path({folder!r}) / f"ran-{{number}}"
    was_there = ran.exists()
    ran.touch()
    assert was_there
"""


@pytest.mark.parametrize(("count", "status"), [(2, 0), (3, 1)])
def test_flaky_system_tests_of_one_file_are_counted(tmp_path, count, status):
    state = tmp_path / "state"
    state.mkdir()
    (state / "venv").symlink_to(sys.prefix)
    sample = tmp_path / "test_flaky_sample.py"
    sample.write_text(FLAKY.format(count=count, folder=str(tmp_path)))
    tools = tmp_path / "bin"
    tools.mkdir()
    (tools / "swift").write_text("#!/bin/sh\n")
    (tools / "swift").chmod(0o755)
    environment = {
        **os.environ,
        "PATH": f"{tools}:{os.environ['PATH']}",
        "LOCAL_TEST_STATE": str(state),
    }
    run = subprocess.run(
        [ROOT / "deploy" / "local" / "test", "--system", sample, "-k", "flaky_sample"],
        env=environment, capture_output=True, text=True, timeout=180,
    )
    assert run.returncode == status, run.stdout + run.stderr
    end = run.stderr[run.stderr.index(f"{count} flaky") :]
    assert all(f"test_flaky_sample[{number}]" in end for number in range(count))
