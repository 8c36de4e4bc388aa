"""The JSON Schema for editors accepts every rule set, and rejects what the reader rejects."""

import copy
import json
import pathlib

import jsonschema_rs
import pytest
import yaml

RULES = pathlib.Path(__file__).resolve().parents[2] / "Services" / "Rules"
SCHEMA = json.loads((RULES / "DryRun" / "rule-file.schema.json").read_text())
VALIDATOR = jsonschema_rs.Draft202012Validator(SCHEMA)
FILES = sorted((RULES / "RuleSets").glob("*.yaml"))


def test_the_schema_is_valid():
    assert jsonschema_rs.meta.is_valid(SCHEMA)
    assert len(FILES) == 5


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_every_rule_set_is_accepted(file):
    assert [error.message for error in VALIDATOR.iter_errors(yaml.safe_load(file.read_text()))] == []


@pytest.mark.parametrize("change", [
    lambda file: file.update(rule={}),
    lambda file: file.pop("events"),
    lambda file: next(iter(file["rules"].values())).update(wen={}),
    lambda file: next(iter(file["rules"].values()))["say"].update(titel="x"),
    lambda file: next(iter(file["rules"].values()))["how"].update(lane="fast"),
    lambda file: next(iter(file["rules"].values()))["policy"].update({"hold-for": "a while"}),
    lambda file: next(iter(file["rules"].values())).update(to={"group": "g", "users": "u"}),
    lambda file: file.update(groups=[{"event": "e", "group": "g"}]),
    lambda file: file["rules"].update({"direct": next(iter(file["rules"].values()))}),
])
def test_a_mistake_is_rejected(change):
    file = copy.deepcopy(yaml.safe_load((RULES / "RuleSets" / "family-portal.yaml").read_text()))
    change(file)
    assert list(VALIDATOR.iter_errors(file))
