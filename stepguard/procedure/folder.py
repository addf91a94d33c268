"""The procedures of a folder, one in each file, named as the file."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from stepguard.errors import ConfigError, ProcedureError
from stepguard.procedure.procedure import Procedure

__all__ = ["load_folder"]

_SUFFIXES: Final = frozenset({".txt", ".yaml", ".yml", ".json"})


def load_folder(folder: Path) -> dict[str, Procedure]:
    """The procedures in a folder, by the names of their files without the suffix.

    Only files that end in .txt, .yaml, .yml or .json are read, none that begin with a dot, and no folders in it.

    Raises:
        ConfigError: there is no such folder, or none of its files holds a procedure, or two have one name.
        ProcedureError: a file holds no procedure; the message names it.
    """
    if not folder.is_dir():
        raise ConfigError(
            f"there is no folder {folder}: give one whose files hold a procedure each", option="procedures"
        )
    found: dict[str, Procedure] = {}
    for path in sorted(folder.iterdir()):
        if path.suffix.lower() not in _SUFFIXES or path.name.startswith(".") or not path.is_file():
            continue
        name = path.stem
        if name in found:
            raise ConfigError(f"two files in {folder} are named {name!r}: rename one", option="procedures")
        if "@" in name:
            raise ConfigError(
                f"{path}: an @ cannot stand in the name of a procedure: rename the file", option="procedures"
            )
        try:
            found[name] = Procedure.load(path)
        except ProcedureError as error:
            raise ProcedureError(f"{path}: {error}", step=error.step) from error
        except OSError as error:
            raise ConfigError(f"{path} cannot be read: {error.strerror or error}", option="procedures") from None
    if not found:
        raise ConfigError(
            f"no file in {folder} holds a procedure (NAME.txt, NAME.yaml, NAME.json)", option="procedures"
        )
    return found
