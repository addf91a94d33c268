"""What several commands take: a procedure from a file, and its inputs as ``NAME=VALUE``."""

from __future__ import annotations

from collections.abc import Iterable

from stepguard.errors import InputError, ProcedureError
from stepguard.procedure import Procedure

__all__ = ["load_file", "read_inputs"]


def load_file(path: str) -> Procedure:
    """The procedure in a file; an error names the file.

    Raises:
        ProcedureError: the file cannot be read, or holds no procedure.
    """
    try:
        return Procedure.load(path)
    except ProcedureError as error:
        raise ProcedureError(f"{path}: {error}", step=error.step) from error
    except OSError as error:
        raise ProcedureError(
            f"cannot read {path}: {error.strerror or error}; FILE is the path of a procedure, written as text"
        ) from error


def read_inputs(given: Iterable[str], procedure: Procedure) -> dict[str, str]:
    """The ``name=value`` options as text by name, checked against the declared types.

    Raises:
        InputError: an input is missing, unknown, given twice or not of its type.
    """
    inputs: dict[str, str] = {}
    for pair in given:
        name, equals, value = pair.partition("=")
        name = name.strip()
        if not equals or not name:
            raise InputError(f"--input {pair!r}: write it as NAME=VALUE, such as --input x=12")
        if name in inputs:
            raise InputError(f"--input {name} is given twice: {inputs[name]!r} and {value!r}; keep one", name=name)
        inputs[name] = value
    missing = [each for each in procedure.inputs if each.name not in inputs]
    if missing and all(name in {each.name for each in procedure.inputs} for name in inputs):
        wanted = ", ".join(f"{each.name} ({each.type})" for each in missing)
        hint = " ".join(f"--input {each.name}=..." for each in missing)
        raise InputError(f"{procedure.name} needs more inputs: {wanted}; add {hint}", name=missing[0].name)
    procedure.accept_inputs(inputs)
    return inputs
