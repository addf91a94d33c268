"""The written language of procedures: its grammar, its reader and its printer.

`grammar.lark` is the whole of it; docs/how-to/procedures.md shows it. What the grammar does not have is refused with
its line; nothing is taken for words that does not stand in quotes.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

from stepguard.errors import ProcedureError

with warnings.catch_warnings():
    # Where the package `regex` is there Lark imports it, too, and that asks for the encoding of the locale.
    warnings.simplefilter("ignore", EncodingWarning)
    import lark  # noqa: F401 - loaded once, here, for the modules below

from stepguard.procedure.inputs import Input
from stepguard.procedure.notation.building import build, finish
from stepguard.procedure.notation.parsing import parse_items, parse_term
from stepguard.procedure.notation.printing import print_procedure
from stepguard.procedure.procedure import Procedure

__all__ = ["is_written", "load_procedure", "parse_term", "print_procedure", "read_inputs", "read_procedure"]


def read_procedure(text: str, *, unnamed: str = "procedure", folder: Path | None = None, **host: Any) -> Procedure:
    """The procedure that a text is.

    Args:
        unnamed: the name of a procedure that declares none.
        folder: where the files lie that its tables are read from; None: it may name no file.
        host: what the host registers: functions and tools.

    Raises:
        ProcedureError: something in the text is wrong; `line` names where.
    """
    if not isinstance(text, str):
        raise ProcedureError(
            f"Procedure.parse takes the text of a procedure, not a {type(text).__name__}; Procedure.load takes the "
            "path of a file"
        )
    return finish(build(parse_items(text), folder=folder), unnamed=unnamed, **host)


def load_procedure(path: str | Path, **host: Any) -> Procedure:
    """The procedure in a UTF-8 file: YAML or JSON by its suffix, the language otherwise.

    Args:
        path: the file. One that declares no name is called as it, without the suffix.
        host: what the host registers: functions and tools.

    Raises:
        ProcedureError: the file holds no procedure.
        OSError: the file cannot be read.
    """
    path = Path(path)
    suffix = path.suffix.lower()
    unnamed = " ".join(path.stem.split()) or "procedure"
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise ProcedureError(f"it is not UTF-8 text (byte {error.start}): save it as UTF-8") from error
    if suffix in (".yaml", ".yml", ".json"):
        from stepguard.procedure.yaml_format import parse_yaml

        return parse_yaml(text, json=suffix == ".json", unnamed=unnamed, folder=path.parent, **host)
    return read_procedure(text, unnamed=unnamed, folder=path.parent, **host)


def read_inputs(text: str, line: int) -> tuple[Input, ...]:
    """What stands behind ``inputs:``, in one line. Raises ProcedureError: an input cannot be declared like this."""
    try:
        return tuple(build(parse_items(f"inputs: {text}\nt = 1")).inputs.values())
    except ProcedureError as error:
        raise ProcedureError(error.message, line=line) from error


def is_written(line: str) -> bool:
    """Whether a line, by itself, is a step or a declaration of the language."""
    try:
        parse_items(line)
    except ProcedureError:
        return False
    return True
