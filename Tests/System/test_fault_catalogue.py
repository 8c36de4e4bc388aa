"""deploy/operations/faults.md against the faults of the chaos bench, and its links against the tests."""

import re

import pytest

from chaos_faults import FAULTS, select
from chaos_signals import METRIC, SERVICES
from conftest import ROOT

PAGE = ROOT / "deploy" / "operations" / "faults.md"
ROW = re.compile(r"\| (\d+) \| [^|]+ \| ([^|]+) \| (.+) \|")
LINK = re.compile(r"\[(.+?)\]\((\.\./\.\./Tests/[^)]+)\)")


def rows() -> dict[int, tuple[str, str]]:
    found = (ROW.fullmatch(line) for line in PAGE.read_text().splitlines())
    return {int(row[1]): (row[2], row[3]) for row in found if row}


def test_the_catalogue_has_68_rows():
    assert list(rows()) == list(range(1, 69))


@pytest.mark.parametrize("number", range(1, 69))
def test_a_row_names_exactly_its_faults(number):
    named = re.findall(r"`([^`]+)`", rows()[number][0])
    assert named == [fault.name for fault in FAULTS if number in fault.numbers]


def test_a_row_without_faults_has_a_test():
    assert [number for number, (faults, tests) in rows().items() if "`" not in faults and not LINK.search(tests)] == []


def test_every_linked_test_exists():
    missing = []
    for number, (_, tests) in rows().items():
        for name, path in LINK.findall(tests):
            declaration = f"func `{name}`" if " " in name else f"def {name}("
            if declaration not in (PAGE.parent / path).read_text():
                missing.append((number, name))
    assert missing == []


def test_names_are_unique_and_selectable():
    names = [fault.name for fault in FAULTS]
    assert len(set(names)) == len(names)
    # One of each pair of one-way partitions; two seeds have all.
    assert len(select("all", 1)) == len(FAULTS) - 2
    assert {*select("all", 1), *select("all", 2)} == {*FAULTS}
    assert select(",".join(names)) == FAULTS
    assert 10 <= len(select("gate")) < len(FAULTS)
    with pytest.raises(ValueError, match="no-such-fault"):
        select("no-such-fault")


@pytest.mark.parametrize("fault", FAULTS, ids=repr)
def test_a_fault_is_complete(fault):
    assert fault.numbers and fault.hold > 0 and fault.recovery > 0 and fault.extra_pushes >= 0
    for signal in fault.signals:
        services, kind, *rest = signal.split(" ", 2)
        assert services in ("any", "VICTIM") or set(services.split("|")) <= set(SERVICES), signal
        match kind:
            case "down":
                assert not rest
            case "metric":
                assert METRIC.match(rest[0]), signal
            case "not-ready":
                assert ": " in rest[0], signal
                re.compile(rest[0].split(": ", 1)[1])
            case "log:":
                re.compile(rest[0])
            case _:
                pytest.fail(f"unknown kind of signal: {signal}")
