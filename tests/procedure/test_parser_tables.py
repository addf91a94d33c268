"""The tables that are shipped for the parser: they are those that the grammar gives, or they are not used."""

from __future__ import annotations

from typing import Any

import lark
import pytest

from stepguard import Procedure
from stepguard.errors import ProcedureError
from stepguard.procedure.notation import parsing, tables
from stepguard.procedure.notation.layout import Layout
from stepguard.procedure.notation.tables import build_parser, load_parser
from stepguard.procedure.notation.trees import Trees


def options() -> dict[str, Any]:
    return {"transformer": Trees(), "postlex": Layout()}


def automaton(parser: lark.Lark) -> Any:
    return parser.parser.parser._parse_table


def test_the_tables_are_those_of_the_grammar(monkeypatch: pytest.MonkeyPatch) -> None:
    """Terminals, rules and every step of the automaton; else run `python -m stepguard.procedure.notation.tables`."""
    monkeypatch.setattr(tables, "VERSIONS", {lark.__version__})
    made, loaded = build_parser(**options()), load_parser(**options())
    assert loaded is not None, "the grammar has changed"
    assert sorted(map(repr, loaded.terminals)) == sorted(map(repr, made.terminals))
    assert [each.priority for each in loaded.terminals] == [each.priority for each in made.terminals]
    assert list(loaded.lexer_conf.ignore) == list(made.lexer_conf.ignore)
    one, other = automaton(made), automaton(loaded)
    pairs = [(one.start_states[name], other.start_states[name]) for name in ("start", "lone_expression")]
    seen = dict(pairs)
    while pairs:
        left, right = pairs.pop()
        steps, others = one.states[left], other.states[right]
        assert steps.keys() == others.keys()
        for token, (action, target) in steps.items():
            same, found = others[token]
            assert repr(action) == repr(same)
            if isinstance(target, int):
                if target not in seen:
                    seen[target] = found
                    pairs.append((target, found))
                assert seen[target] == found
            else:
                assert (target, target.alias, repr(target.options)) == (found, found.alias, repr(found.options))
    assert len(seen) == len(one.states)


@pytest.mark.parametrize("change", ["version", "grammar", "missing"])
def test_tables_that_do_not_fit_are_not_used(change: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Under a version of Lark that nobody has compared, or with another grammar, the grammar itself is read."""
    attribute, value = {
        "version": ("VERSIONS", frozenset({"0.0"})),
        "grammar": ("_hash", lambda _: "another"),
        "missing": ("TABLES", "no.json"),
    }[change]
    monkeypatch.setattr(tables, attribute, value)
    assert load_parser(**options()) is None
    monkeypatch.setattr(parsing, "_parser", lambda: build_parser(**options()))
    assert len(Procedure.parse("inputs: x\ny = x * 2")) == 1


def test_both_parsers_refuse_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    """What stands wrong in a text is explained in the same words, whichever way the parser came to be."""
    monkeypatch.setattr(tables, "VERSIONS", {lark.__version__})
    said = []
    made = {"made": build_parser(**options()), "loaded": load_parser(**options())}
    for parser in made.values():
        monkeypatch.setattr(parsing, "_parser", lambda parser=parser: parser)
        words = []
        for text in ("t1 = x +", "if x:\n", "inputs x\nt = 1", "t = 1 2", "repeat\n  t = 1", 't = "a', "= 3"):
            with pytest.raises(ProcedureError) as caught:
                Procedure.parse(text)
            words.append(str(caught.value))
        said.append(words)
    assert said[0] == said[1]
