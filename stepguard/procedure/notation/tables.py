"""Precomputed tables of the parser: making them from the grammar is the slowest part of a start.

    python -m stepguard.procedure.notation.tables

writes ``tables.json`` anew; a test says where that is due. The tables are used where they belong to this grammar and
the version of Lark is one that reads them in the same way; otherwise the parser is made from the grammar.
"""

from __future__ import annotations

import hashlib
import io
import json
import pickle
from importlib.resources import files
from pathlib import Path
from typing import Any, Final, cast

import lark
from lark import Lark

GRAMMAR: Final = "grammar.lark"
TABLES: Final = "tables.json"
VERSIONS: Final = frozenset({"1.2.2", "1.3.0", "1.3.1"})
"""Versions of Lark under which the tables were compared with those that it makes itself."""

_SHAPE: Final[dict[str, Any]] = {
    "parser": "lalr",
    "start": ["start", "lone_expression"],
    "propagate_positions": False,
    "maybe_placeholders": True,
}


def build_parser(**options: Any) -> Lark:
    """The parser, made from the grammar."""
    return Lark.open_from_package(__package__, GRAMMAR, **_SHAPE, **options)


def load_parser(**options: Any) -> Lark | None:
    """The parser, made from the tables; None where they are of another grammar, or another version of Lark."""
    if lark.__version__ not in VERSIONS:
        return None
    room = files(__package__)
    try:
        tables = json.loads(room.joinpath(TABLES).read_text(encoding="utf-8"))
        grammar = room.joinpath(GRAMMAR).read_bytes()
    except OSError:
        return None
    if tables.pop("grammar") != _hash(grammar):
        return None
    read: Any = Lark  # it has no public way to read tables and to take a transformer as well
    automaton = tables["data"]["parser"]["parser"]
    automaton["tokens"] = _numbered(automaton["tokens"])
    automaton["states"] = {int(state): _numbered(steps) for state, steps in automaton["states"].items()}
    return cast(Lark, read._load_from_dict(tables["data"], _numbered(tables["memo"]), **options))


def tables_of(parser: Lark) -> dict[str, Any]:
    """The state that `Lark.save` writes, as JSON data, without what belongs to this machine."""
    saved = io.BytesIO()
    parser.save(saved)
    # Only bytes made in the line above are unpickled; what is shipped is JSON.
    whole = pickle.loads(saved.getvalue())
    whole["data"]["options"] = {
        name: value for name, value in whole["data"]["options"].items() if name in (*_SHAPE, "lexer", "g_regex_flags")
    }
    whole["data"].pop("grammar", None)
    return {"grammar": _hash(files(__package__).joinpath(GRAMMAR).read_bytes()), **whole}


def _numbered(entries: dict[str, Any]) -> dict[int, Any]:
    """A mapping whose keys are numbers, which JSON writes as text."""
    return {int(key): value for key, value in entries.items()}


def _hash(grammar: bytes) -> str:
    # Git may check text files out with other line ends.
    return hashlib.sha256(grammar.replace(b"\r\n", b"\n")).hexdigest()


def main() -> None:
    """Write the tables."""
    text = json.dumps(tables_of(build_parser()), separators=(",", ":"))
    Path(str(files(__package__).joinpath(TABLES))).write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
