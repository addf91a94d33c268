"""Where a benchmark writes to when nobody says where: a folder that only ever loses an earlier simulated run."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, Final

from stepguard.errors import ConfigError

FOLDER: Final = Path("stepguard-bench")
_OUTCOMES: Final = "outcomes.jsonl"
_RESULTS: Final = "results.json"
_SIMULATED_FILES: Final = (_OUTCOMES, _RESULTS, "report.html", "accuracy.svg", "accuracy-[0-9]*.svg")
"""What a simulated run leaves; one of a model has its replies, too."""


def check_default_folder() -> Path:
    """The folder to write to, in the current directory; nothing is changed yet.

    Raises ConfigError: something is there that is no earlier simulated run.
    """
    if not FOLDER.exists() or (FOLDER.is_dir() and (not any(FOLDER.iterdir()) or _is_simulated(FOLDER))):
        return FOLDER
    holds = "is a file" if not FOLDER.is_dir() else "holds something else than an earlier simulated run"
    goes_on = f", or --out {FOLDER} --resume to go on with it" if (FOLDER / _OUTCOMES).is_file() else ""
    raise ConfigError(f"{FOLDER} {holds}, and is left alone: say where to write with --out{goes_on}", option="out")


def check_folder(folder: Path) -> None:
    """Whether a folder can be written to, or made; nothing is changed yet.

    Raises ConfigError: something else stands in its place, or it is not to be written to.
    """
    there = next(each for each in (folder, *folder.absolute().parents) if each.exists())
    if not there.is_dir():
        raise ConfigError(f"--out takes a folder, but {there} is a file", option="out")
    if not os.access(there, os.W_OK | os.X_OK):
        raise ConfigError(f"--out: nothing can be written to {there}", option="out")
    for name in (*_SIMULATED_FILES[:4], "replies.sqlite"):
        if (folder / name).is_dir():
            raise ConfigError(f"--out: {folder / name} is a folder, where a file is to be written", option="out")


def clear_folder(folder: Path) -> None:
    """Delete what an earlier simulated run left in a folder, and nothing else."""
    for path in [path for name in _SIMULATED_FILES for path in folder.glob(name) if path.is_file()]:
        path.unlink()


def _is_simulated(folder: Path) -> bool:
    """Whether everything that a benchmark can have left here is of a simulated one."""
    if (folder / "replies.sqlite").exists():
        return False
    head, results = _first(folder / _OUTCOMES), _json_file(folder / _RESULTS)
    if results is not None and results.get("meta", {}).get("simulated") is not True:
        return False
    # Only simulated runs slip as a profile says. A run that was killed has no results yet.
    return head is not None and "profile" in head.get("configuration", {})


def _first(path: Path) -> dict[str, Any] | None:
    try:
        with path.open(encoding="utf-8") as file:
            return _object(file.readline())
    except (OSError, UnicodeDecodeError):
        return None


def _json_file(path: Path) -> dict[str, Any] | None:
    try:
        return _object(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    # Something is there that says nothing of a simulated run: it is left alone.
    except (OSError, UnicodeDecodeError):
        return {}


def _object(text: str) -> dict[str, Any]:
    try:
        data = json.loads(text)
    except ValueError:
        return {}
    return data if isinstance(data, dict) else {}
