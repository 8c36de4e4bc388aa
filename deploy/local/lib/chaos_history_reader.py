"""Reads the files of a chaos run: history.jsonl, and run.json.gz with the observations."""

import dataclasses
import gzip
import json
import pathlib
import types
import typing

from chaos_history import FaultSpan, Operation, Run


def read_history(path: pathlib.Path) -> Run:
    """The operations and faults of a history, also of an interrupted run.

    An operation that was invoked and has no result is `unknown`, and ends at infinity.
    """
    run, pending = Run(), {}
    lines = path.read_text().split("\n")
    for index, line in enumerate(lines):
        # A line break ends each line, so the last line is empty, or the run ended while it was written.
        if index == len(lines) - 1:
            break
        fields = json.loads(line)
        match fields.pop("record"):
            case "invoked":
                operation = restored(Operation, fields)
                pending[operation.number] = operation
            case "operation":
                operation = restored(Operation, fields)
                pending.pop(operation.number, None)
                run.operations.append(operation)
            case "faultspan":
                run.faults.append(restored(FaultSpan, fields))
    for operation in pending.values():
        operation.result, operation.ended = "unknown", float("inf")
        run.operations.append(operation)
    return run


def read_run(path: pathlib.Path) -> Run:
    """All that the checks look at, so that a change of a check can be tried with an earlier run."""
    with gzip.open(path, "rt") as file:
        return restored(Run, json.load(file))


def restored(kind: type, value: typing.Any) -> typing.Any:
    """A value of a declared type from its JSON form. Raises KeyError at an unknown member."""
    if dataclasses.is_dataclass(kind):
        kinds = typing.get_type_hints(kind)
        members = {name: restored(kinds[name], member) for name, member in value.items()}
        missing = {field.name: None for field in dataclasses.fields(kind)
                   if field.name not in members and is_required(field)}
        return kind(**missing, **members)
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin is types.UnionType and value is not None:
        return restored(next(one for one in arguments if one is not types.NoneType), value)
    if origin is list:
        return [restored(arguments[0], member) for member in value]
    if origin is tuple:
        inner = [arguments[0]] * len(value) if arguments[1:] == (...,) else arguments
        return tuple(restored(one, member) for one, member in zip(inner, value))
    if origin is dict and arguments[1:] and typing.get_origin(arguments[1]) is tuple:
        return {name: tuple(member) for name, member in value.items()}
    return value


def is_required(field: dataclasses.Field) -> bool:
    """Whether a field has no default. The history leaves it out if it is None."""
    return field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
