"""The contracts for machines, with a second validator: JSON Schemas, the AsyncAPI document and the events of each app."""

import json
import pathlib
import subprocess
import uuid

import jsonschema_rs
import pytest

import asyncapi_shape
from local_stack import eventually

ROOT = pathlib.Path(__file__).resolve().parents[2]
CONTRACTS = ROOT / "deploy" / "contracts"
SCHEMAS = {file.stem: json.loads(file.read_text()) for file in sorted((CONTRACTS / "schemas").glob("*.json"))}
GOLDEN = sorted((ROOT / "Tests" / "PushProtocolTests" / "Golden").glob("*.json"))
RULE_SETS = sorted((ROOT / "Services" / "Rules" / "RuleSets").glob("*.yaml"))


def test_every_schema_is_valid():
    assert len(SCHEMAS) >= 12
    for name, schema in SCHEMAS.items():
        assert jsonschema_rs.meta.is_valid(schema), name


@pytest.mark.parametrize("file", GOLDEN, ids=lambda file: file.stem)
def test_a_golden_message_is_valid_and_a_wrong_one_is_not(file):
    words = file.stem.split(".")
    validator = jsonschema_rs.Draft202012Validator(SCHEMAS[f"{words[0]}.{words[-1]}"])
    message, required = json.loads(file.read_text()), ("type", "version", "trace")
    if words[0] == "direct-notification":
        # The golden file is the data of an event.
        message = {"specversion": "1.0", "id": "1", "source": "/s", "type": "heliograph.notification.requested",
                   "data": message}
        required = ("type", "id", "data")
    assert [error.message for error in validator.iter_errors(message)] == []
    for name in required:
        assert not validator.is_valid({key: value for key, value in message.items() if key != name})


def test_pushctl_writes_the_files_in_deploy(stack, tmp_path):
    subprocess.run([stack.product("pushctl"), "contracts", "asyncapi", "--folder", tmp_path], check=True, timeout=30)
    written = {file.relative_to(tmp_path): file.read_text() for file in tmp_path.rglob("*.json")}
    assert written == {file.relative_to(CONTRACTS): file.read_text() for file in CONTRACTS.rglob("*.json")}


def bus() -> dict:
    return json.loads((CONTRACTS / "asyncapi.json").read_text())


ASYNCAPI = jsonschema_rs.Draft202012Validator(asyncapi_shape.DOCUMENT)


def test_the_document_of_the_bus_is_asyncapi_3():
    document = bus()
    assert jsonschema_rs.meta.is_valid(asyncapi_shape.DOCUMENT)
    assert [f"{list(error.instance_path)}: {error.message}" for error in ASYNCAPI.iter_errors(document)] == []
    assert asyncapi_shape.broken_references(document) == []
    assert len(document["channels"]) > 30 and len(document["operations"]) > 50
    # Each payload is one of the schemas beside the document.
    for name, message in document["components"]["messages"].items():
        payload = message.get("payload", {})
        if "schema" in payload:
            assert (CONTRACTS / payload["schema"]["$ref"]).is_file(), name


def first(members: dict) -> dict:
    return next(iter(members.values()))


@pytest.mark.parametrize("change", [
    lambda d: d.update(asyncapi="2.6.0"), lambda d: d.pop("info"), lambda d: d["info"].pop("title"), lambda d: d.update(topics={}),
    lambda d: first(d["servers"]).pop("host"), lambda d: first(d["channels"]).update(subscribe={}),
    lambda d: first(d["channels"])["bindings"]["amqp"].update({"is": "topic"}),
    lambda d: first(d["channels"])["bindings"]["amqp"].pop("queue"), lambda d: first(d["operations"]).update(action="publish"),
    lambda d: first(d["operations"]).pop("channel"), lambda d: first(d["operations"]).update(channel="somewhere"),
    lambda d: first(d["components"]["messages"]).update(payload=7),
    lambda d: first(d["components"]["messages"])["correlationId"].update(location="id"),
    lambda d: d["components"].update(queues={})], ids=range(14))
def test_a_document_with_a_mistake_is_not_asyncapi_3(change):
    document = bus()
    change(document)
    assert not ASYNCAPI.is_valid(document)


def test_references_without_a_target_are_found():
    document = bus()
    operation = first(document["operations"])
    other = next(c for c in document["channels"] if not operation["channel"]["$ref"].endswith("/" + c))
    operation["messages"] = [{"$ref": f"#/channels/{other}/messages/" + next(iter(document["channels"][other]["messages"]))}]
    assert len(asyncapi_shape.broken_references(document)) == 1
    operation["channel"] = {"$ref": "#/channels/none"}
    assert len(asyncapi_shape.broken_references(document)) == 2


def catalog(stack, rules: pathlib.Path, form: str) -> str:
    return subprocess.run(
        [stack.product("pushctl"), "rules", "catalog", "--rules", rules, "--format", form], capture_output=True,
        text=True, check=True, timeout=30).stdout


@pytest.mark.parametrize("rules", RULE_SETS, ids=lambda rules: rules.stem)
def test_the_schema_of_an_app_accepts_its_examples_and_names_a_missing_field(stack, rules):
    schema = json.loads(catalog(stack, rules, "json-schema"))
    assert jsonschema_rs.meta.is_valid(schema)
    validator = jsonschema_rs.Draft202012Validator(schema)
    examples = [json.loads(line) for line in catalog(stack, rules, "examples").splitlines()]
    assert examples
    for example in examples:
        assert [error.message for error in validator.iter_errors(example)] == []
    errors = [error.message for example in examples for error in validator.iter_errors({**example, "data": {}})]
    assert any("is a required property" in error for error in errors), errors


def test_the_service_decides_the_examples_that_the_schema_accepts(stack):
    """The loop of a producer: an event that passes the schema is published and decided."""
    rules = ROOT / "Services" / "Rules" / "RuleSets" / "family-portal.yaml"
    validator = jsonschema_rs.Draft202012Validator(json.loads(catalog(stack, rules, "json-schema")))
    lines = catalog(stack, rules, "examples").splitlines()
    event = json.loads(next(line for line in lines if "chat.message.created" in line)) | {"id": f"contracts-{uuid.uuid4()}"}
    event.pop("time")
    assert validator.is_valid(event)
    stack.publish("family-portal.chat.message.created", json.dumps(event).encode(),
                  content_type="application/cloudevents+json")
    eventually(lambda: decided(stack, event["id"]), what="the decisions about the example")


def decided(stack, event: str) -> bool:
    code, text = stack.pushctl("explain", event, "--app", "family-portal")
    return code == 0 and "chat-message" in text
