"""The shape of an AsyncAPI 3.0 document, as JSON Schema: the parts that the document of the bus uses.

Written from the specification (https://www.asyncapi.com/docs/reference/specification/v3.0.0, AMQP bindings 0.3.0). The
official schema has 380 kB, is in no package of PyPI, and includes the bindings of all protocols. As there, a member that is
not listed is refused, except extensions (`x-…`).
"""

REFERENCE = {"type": "object", "required": ["$ref"], "properties": {"$ref": {"type": "string", "format": "uri-reference"}},
             "additionalProperties": False}
TEXT = {"type": "string"}
TAGS = {"type": "array", "uniqueItems": True, "items": {"type": "object", "required": ["name"]}}


def closed(properties: dict, required: tuple[str, ...] = ()) -> dict:
    """An object with these members, and extensions."""
    return {"type": "object", "required": list(required), "properties": properties,
            "patternProperties": {r"^x-[\w\d.\-_]+$": True}, "additionalProperties": False}


def named(schema: dict, names: str = r"^[\w\d.\-_]+$") -> dict:
    """An object whose members all have this schema."""
    return {"type": "object", "propertyNames": {"pattern": names}, "additionalProperties": schema}


def bound(amqp: dict) -> dict:
    """Bindings to AMQP 0-9-1 only."""
    return closed({"amqp": closed({"bindingVersion": {"const": "0.3.0"}} | amqp, ("bindingVersion",))})


def part(properties: dict) -> dict:
    return {"type": "object", "required": ["name"],
            "properties": {"name": {"type": "string", "maxLength": 255}, "vhost": TEXT, "durable": {"type": "boolean"},
                           "autoDelete": {"type": "boolean"}} | properties,
            "additionalProperties": False}


ADDRESS = {
    "is": {"enum": ["queue", "routingKey"]}, "queue": part({"exclusive": {"type": "boolean"}}),
    "exchange": part({"type": {"enum": ["topic", "direct", "fanout", "default", "headers"]}})}
CHANNEL_BINDINGS = bound(ADDRESS)
CHANNEL_BINDINGS["properties"]["amqp"]["oneOf"] = [
    {"required": ["is", member], "properties": {"is": {"const": kind}}, "not": {"required": [other]}}
    for kind, member, other in (("queue", "queue", "exchange"), ("routingKey", "exchange", "queue"))]

SCHEMA_OBJECT = {
    "if": {"type": "object", "required": ["schemaFormat"]},
    "then": closed({"schemaFormat": TEXT, "schema": {"type": ["object", "boolean"]}}, ("schemaFormat", "schema")),
    "else": {"type": ["object", "boolean"]}}

MESSAGE = closed({
    "name": TEXT, "title": TEXT, "summary": TEXT, "description": TEXT, "contentType": TEXT, "headers": SCHEMA_OBJECT,
    "payload": SCHEMA_OBJECT, "examples": {"type": "array", "minItems": 1}, "deprecated": {"type": "boolean"}, "tags": TAGS,
    "correlationId": closed({"description": TEXT, "location": {"type": "string",
                            "pattern": r"^\$message\.(header|payload)#(/[^/]+)+$"}}, ("location",)),
    "bindings": bound({"contentEncoding": TEXT, "messageType": TEXT})})

CHANNEL = closed({
    "address": {"type": ["string", "null"]}, "title": TEXT, "summary": TEXT, "description": TEXT,
    "messages": named({"anyOf": [REFERENCE, MESSAGE]}), "servers": {"type": "array", "uniqueItems": True, "items": REFERENCE},
    "parameters": named(closed({"description": TEXT, "enum": {"type": "array", "items": TEXT}, "default": TEXT,
                                "examples": {"type": "array", "items": TEXT}, "location": TEXT})),
    "tags": TAGS, "bindings": CHANNEL_BINDINGS})

OPERATION = closed({
    "action": {"enum": ["send", "receive"]}, "channel": REFERENCE, "title": TEXT, "summary": TEXT, "description": TEXT,
    "messages": {"type": "array", "items": REFERENCE}, "security": {"type": "array"}, "tags": TAGS,
    "bindings": bound({
        "expiration": {"type": "integer", "minimum": 0}, "userId": TEXT, "cc": {"type": "array", "items": TEXT},
        "priority": {"type": "integer"}, "deliveryMode": {"enum": [1, 2]}, "mandatory": {"type": "boolean"},
        "bcc": {"type": "array", "items": TEXT}, "timestamp": {"type": "boolean"}, "ack": {"type": "boolean"}})},
    ("action", "channel"))

SERVER = closed({
    "host": TEXT, "pathname": TEXT, "protocol": TEXT, "protocolVersion": TEXT, "title": TEXT, "summary": TEXT,
    "description": TEXT, "variables": named({"type": "object"}), "tags": TAGS,
    "security": {"type": "array", "items": {"anyOf": [REFERENCE, {"type": "object", "required": ["type"]}]}}},
    ("host", "protocol"))

INFO = closed({
    "title": TEXT, "version": TEXT, "description": TEXT, "termsOfService": {"type": "string", "format": "uri"},
    "contact": {"type": "object"}, "tags": TAGS,
    "license": closed({"name": TEXT, "url": {"type": "string", "format": "uri"}}, ("name",))}, ("title", "version"))

DOCUMENT = {"$schema": "https://json-schema.org/draft/2020-12/schema"} | closed({
    "asyncapi": {"const": "3.0.0"}, "id": {"type": "string", "format": "uri"}, "info": INFO, "defaultContentType": TEXT,
    "servers": named(SERVER), "channels": named(CHANNEL, "^[^$]+$"), "operations": named(OPERATION),
    "components": closed({
        "messages": named(MESSAGE), "schemas": named(SCHEMA_OBJECT),
        "securitySchemes": named({"type": "object", "required": ["type"]})})},
    ("asyncapi", "info"))


def resolve(document: dict, pointer: str):
    """The part of a document at a reference within it; throws KeyError if there is none."""
    assert pointer.startswith("#/"), pointer
    found = document
    for word in pointer[2:].split("/"):
        found = found[word.replace("~1", "/").replace("~0", "~")]
    return found


def broken_references(document: dict) -> list[str]:
    """The references without a target, and the messages of operations that their channels do not have."""
    broken = []

    def visit(value, path: str) -> None:
        if isinstance(value, list):
            for index, element in enumerate(value):
                visit(element, f"{path}/{index}")
        elif isinstance(value, dict):
            reference = value.get("$ref")
            # References to files are those of payloads.
            if isinstance(reference, str) and reference.startswith("#"):
                try:
                    resolve(document, reference)
                except KeyError:
                    broken.append(f"{path}: {reference}")
            for name, member in value.items():
                visit(member, f"{path}/{name}")

    visit(document, "#")
    for name, operation in document["operations"].items():
        channel = operation["channel"]["$ref"]
        for message in operation.get("messages", []):
            if not message["$ref"].startswith(f"{channel}/messages/"):
                broken.append(f"#/operations/{name}: {message['$ref']} is not a message of {channel}")
    return broken
