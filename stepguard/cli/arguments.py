"""What several commands take: a procedure from a file, its inputs as ``NAME=VALUE``, and a price."""

from __future__ import annotations

from collections.abc import Iterable

from stepguard.core.usage import Price
from stepguard.errors import ConfigError, InputError, ProcedureError
from stepguard.procedure.procedure import Procedure

__all__ = ["load_file", "read_inputs", "read_price"]


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


def read_price(price: str | None, max_cost: object = None) -> Price | None:
    """The ``--price IN,OUT`` or ``IN,OUT,CACHED`` of a million tokens; None where none is given.

    Args:
        price: what stands behind the option.
        max_cost: what stands behind ``--max-cost``, which needs a price.

    Raises:
        ConfigError: these are no two or three amounts, or a limit has no price.
    """
    if price is None:
        if max_cost is not None:
            raise ConfigError("--max-cost needs to know what tokens cost: add --price IN,OUT", option="price")
        return None
    amounts = price.split(",")
    if not 2 <= len(amounts) <= 3:
        raise ConfigError(f"--price {price!r}: write IN,OUT or IN,OUT,CACHED", option="price")
    return Price(input=amounts[0], output=amounts[1], cached=amounts[2] if len(amounts) == 3 else None)
