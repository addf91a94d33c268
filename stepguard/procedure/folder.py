"""Load the procedures of a folder, one per file, under the name of the file."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from stepguard.errors import ConfigError, ProcedureError
from stepguard.procedure.procedure import Procedure

_SUFFIXES: Final = frozenset({".txt", ".yaml", ".yml", ".json"})


def load_procedures(procedures: Mapping[str, Procedure] | str | Path | None) -> dict[str, Procedure]:
    """Procedures by the names that callers use: a mapping, or those of a folder.

    One without a name of its own is called by that: logs and metrics tell them apart.

    Raises ConfigError, ProcedureError: as `load_folder`.
    """
    if isinstance(procedures, str | Path):
        return load_folder(Path(procedures))
    return {name: _called(procedure, name) for name, procedure in (procedures or {}).items()}


def load_folder(folder: Path) -> dict[str, Procedure]:
    """The procedures in a folder, by the names of their files without the suffix; so are they called, unless they say.

    Only files that end in .txt, .yaml, .yml or .json are read, none that begin with a dot, and no folders in it.

    Raises:
        ConfigError: there is no such folder, or none of its files holds a procedure, or two have one name.
        ProcedureError: a file holds no procedure; the message names it.
    """
    if not folder.is_dir():
        raise ConfigError(
            f"there is no folder {folder}: give one whose files hold a procedure each", option="procedures"
        )
    procedures: dict[str, Procedure] = {}
    try:
        files = sorted(folder.iterdir())
    except OSError as error:
        raise ConfigError(f"{folder} cannot be read: {error.strerror or error}", option="procedures") from None
    for path in files:
        if path.suffix.lower() not in _SUFFIXES or path.name.startswith(".") or not path.is_file():
            continue
        name = path.stem
        if name in procedures:
            raise ConfigError(f"two files in {folder} are named {name!r}: rename one", option="procedures")
        # In the model name of a request, an @ separates the procedure from the model that runs it.
        if "@" in name:
            raise ConfigError(
                f"{path}: an @ cannot stand in the name of a procedure: rename the file", option="procedures"
            )
        try:
            procedures[name] = _called(Procedure.load(path), name)
        except ProcedureError as error:
            raise ProcedureError(f"{path}: {error}", step=error.step) from error
        except OSError as error:
            raise ConfigError(f"{path} cannot be read: {error.strerror or error}", option="procedures") from None
    if not procedures:
        raise ConfigError(
            f"no file in {folder} holds a procedure (NAME.txt, NAME.yaml, NAME.json)", option="procedures"
        )
    return procedures


def _called(procedure: Procedure, name: str) -> Procedure:
    if procedure.name != "procedure" or not name.strip() or not name.isprintable():
        return procedure
    # A copy: the caller's own procedure keeps its name.
    renamed = copy.copy(procedure)
    object.__setattr__(renamed, "name", name.strip())
    return renamed
