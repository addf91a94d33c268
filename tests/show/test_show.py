"""Procedures and runs are drawn as they are, whatever stands in them, and stay readable at any length."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from control_flow_harness import make_program
from html_harness import Page
from tables import all_rows

from stepguard import Guard, Input, Procedure, Step
from stepguard.cli import main
from stepguard.errors import ConfigError
from stepguard.language.expressions import Name, Number
from stepguard.language.records import RecordType
from stepguard.language.terms.lookup_tables import Table
from stepguard.language.terms.operands import Aggregate, ListTerm
from stepguard.language.value_types import TEXT
from stepguard.procedure.operations import Tool
from stepguard.procedure.statements import ForEach, If, ProcedureCall, Repeat, Statement
from stepguard.results import Result
from stepguard.show import draw_html, draw_text
from stepguard.testing import Plant, SimulatedModel, Slips

HOSTILE = "<script>alert(1)</script>\"'><img src=x onerror=alert(2)>&lt;\x1b[31m\u202e"


def claim() -> Procedure:
    """A procedure with every construct."""
    fee = Procedure([Step("double", "weight * 2")], inputs=["weight"], name="shipping")
    listed = ListTerm((Number(3), Name("x"), Number(50)))
    body: list[Statement] = [
        ForEach("n", listed, [If([("n > 10", [Step("paid", "n * 2")])], [Step("paid", "n * 3")])]),
        Step("total", Aggregate("sum", Name("paid")), instruction="Add what is paid."),
        If([("total > 1000", [Step("ok", instruction="Approve {total}?", type="boolean", performer="person")])]),
        ProcedureCall("cost", fee, {"weight": "x"}),
        Step("receipt", operation="pay", arguments={"amount": "total"}, performer="tool", type="text"),
        Repeat(4, [Step("left", "left - 10", performer="code")], until="left <= 0"),
    ]
    return Procedure(
        body,
        inputs=["x", "left", Input("limit", default=5)],
        answer="total",
        name="expense claim",
        tables=[Table("daily", {"country": "text"}, "number", [("DE", "28"), ("otherwise", "24")])],
        records=[RecordType("Item", (("what", TEXT),))],
        tools={"pay": Tool(lambda amount: "paid", approval=True)},
    )


def run(procedure: Procedure, inputs: dict[str, object], *, plants: tuple[Plant, ...] = (), **options: Any) -> Result:
    model = SimulatedModel(slips=Slips.none(), plants=plants)
    return Guard(model, person=lambda step, values: True, **options).run(procedure, inputs)


def test_a_procedure_is_drawn_with_all_its_parts() -> None:
    """Who performs each step, what stands in tables, the conditions, the loops and the calls."""
    text = draw_text(claim())
    for line in (
        "expense claim",
        "  input  limit: number = 5",
        "  record Item: what: text",
        "  table  daily: country: text -> number, 2 rows",
        "           otherwise: 24",
        "↻ for each n in [3, x, 50]",
        "│ ◇ if n > 10",
        "│ │ ● paid = n * 2",
        "│ ├ else",
        '● total = sum of paid  "Add what is paid."',
        '│ ● ok: boolean = ask person "Approve {total}?"',
        "│ │   reads total",
        "▣ cost = call shipping(weight=x)",
        "● receipt: text = tool pay(amount=total)",
        "↻ repeat at most 4 times until left <= 0",
        "│ ● left = by code left - 10",
        "■ answer: total",
    ):
        assert line in text.split("\n"), text
    assert Page(draw_html(claim())).text.count("ask person") == 1


def test_a_run_is_drawn_on_its_procedure() -> None:
    """The way that was taken, how often, each value with what stands behind it, and repairs."""
    procedure = claim()
    result = run(procedure, {"x": 4, "left": 25}, plants=(Plant("total", "wrong_value"),))
    text = draw_text(procedure, result)
    for line in (
        "VERIFIED: 10 steps completed; total = 121",
        "  input  x: number = 4",
        "  input  left: number",
        "↻ for each n in [3, x, 50]  (3 rounds)",
        "│ ◇ if n > 10  (taken 1 of 3 times)",
        "│ │ │   ✓ n[2].paid = 100  (verified)",
        "│ ├ else  (taken 2 of 3 times)",
        "│ │ │     ✓ n[0].paid = 9  (verified)",
        "│   ✓ 121  (verified, on try 2 after wrong_value)",
        "◇ if total > 1000  (not taken)",
        "├ else  (taken)",
        "│ · nothing to do",
        "│ │   ✓ cost.double = 8  (verified)",
        "│   ✓ paid  (as the tool gave it)",
        "↻ repeat at most 4 times until left <= 0  (3 rounds)",
        "■ answer: total = 121",
    ):
        assert line in text.split("\n"), text
    assert "approval: true" in text
    words = Page(draw_html(procedure, result)).text
    for said in ("VERIFIED", "taken 1 of 3 times", "not taken", "3 rounds", "on try 2 after wrong_value", "n[2].paid"):
        assert said in words


def test_a_run_that_stopped_shows_where_and_why() -> None:
    """At its step, in its round, with the replies that were not accepted; what is behind it was not reached."""
    procedure = Procedure(
        [ForEach("n", ListTerm((Number(3), Number(4))), [Step("d", "n * 2")]), Step("end", Aggregate("sum", Name("d")))]
    )
    result = run(procedure, {}, plants=(Plant("d_1", "wrong_value", times=9),), repair=2)
    assert result.status == "abstained"
    text = draw_text(procedure, result)
    assert "✗ STOPPED at n[1].d in 3 tries" in text
    assert text.count("│ │       wrong_value: ") == 3
    page = Page(draw_html(procedure, result))
    assert [attributes for tag, attributes in page.tags if attributes.get("id") == "stop"]
    assert any(attributes.get("href") == "#stop" for _, attributes in page.tags)
    bound = Procedure([Repeat(2, [Step("x", "x + 1")], until="x > 9")], inputs=["x"])
    assert "✗ STOPPED at repeat[1]: `repeat at most 2 times`" in draw_text(bound, run(bound, {"x": 1}))


def test_the_json_of_a_result_is_drawn_as_the_result_itself() -> None:
    """What `stepguard run --json` prints holds all that is needed."""
    procedure = claim()
    result = run(procedure, {"x": 4, "left": 25})
    data = json.loads(result.to_json())
    assert draw_text(procedure, data) == draw_text(procedure, result)
    assert draw_html(procedure, data) == draw_html(procedure, result)


@all_rows(
    "changed, message",
    [
        ({"status": "fine"}, "status: Input should be 'verified'"),
        ({"status": None}, "status: Input should be"),
        ({"procedure": "another"}, "the result is one of 'another', and this procedure is 'expense claim'"),
        ({"steps": {}}, "steps: Input should be a valid list"),
        ({"steps": [7]}, "steps.0: Input should be"),
        ({"ways": {"0": "x"}}, "ways.0: Input should be a valid integer"),
        ({"problem": 3}, "problem: Input should be"),
        ({"completed": True}, "completed: Input should be a valid integer"),
        ({"completed": 10**5000}, "completed: Input should be"),
        ({"total": -1}, "total: Input should be"),
        ({"seconds": 10**400}, "seconds: "),
        ({"seconds": float("inf")}, "seconds: Input should be"),
        ({"usage": {"calls": 10**4299}}, "usage.calls: Input should be"),
        ({"answer": 1.5}, "answer."),
    ],
)
def test_what_is_no_result_of_this_procedure_is_refused(changed: dict[str, object], message: str) -> None:
    """By name: nothing is drawn on a procedure that it did not happen in."""
    procedure = claim()
    data = {**run(procedure, {"x": 4, "left": 25}).to_dict(), **changed}
    with pytest.raises(ConfigError, match=message.replace("[", r"\[")):
        draw_text(procedure, data)


@pytest.mark.parametrize("site", ["9" * 5000, "." * 5000, "700", "0." * 5000])
def test_a_place_to_stop_at_that_is_none_is_not_drawn(site: str) -> None:
    """The run is drawn as far as it fits."""
    procedure = Procedure([Step(f"s{at}", "x + 1") for at in range(290)], inputs=["x"])
    data = run(procedure, {"x": 1}).to_dict()
    data["problem"] = {"step": "s0", "index": 0, "path": "s0", "site": site, "reason": "r", "kind": None}
    assert "STOPPED" not in draw_text(procedure, data)
    assert Page(draw_html(procedure, data))


def test_a_run_that_waits_for_a_person_is_drawn() -> None:
    """It says where it stopped, also when it is read from JSON."""
    procedure = Procedure([Step("t", instruction="Is it right?", type="boolean", performer="person")])
    result = Guard(SimulatedModel()).run(procedure, {})
    assert result.status == "waiting"
    assert "WAITING: now at t: " in draw_text(procedure, json.loads(result.to_json()))


@all_rows(
    "site",
    ["9", "0.5.0", "0.0.9", "x", "0.0", "0..0", "1.0", "-1", "0.0.-1", "3.9", "." * 5000, "0." * 5000, "9" * 5000, "²"],
)
def test_a_step_of_another_version_is_refused(site: str) -> None:
    """A place that the procedure does not have, or that is another step there."""
    procedure = claim()
    data = run(procedure, {"x": 4, "left": 25}).to_dict()
    data["steps"][0]["site"] = site
    with pytest.raises(ConfigError, match="another version"):
        draw_html(procedure, data)


def test_a_straight_procedure_is_refused_with_another_order_of_steps() -> None:
    """Its steps go by their index and their id."""
    one = Procedure([Step("a", "x + 1"), Step("b", "a + 1")], inputs=["x"])
    other = Procedure([Step("b", "x + 1"), Step("a", "b + 1")], inputs=["x"])
    with pytest.raises(ConfigError, match="another version"):
        draw_text(other, run(one, {"x": 1}))


def test_nothing_in_names_and_values_becomes_markup_or_steers_a_terminal() -> None:
    """Tags, quotes, escapes and marks of direction are shown as the characters that they are."""
    procedure = Procedure(
        [
            Step("t", instruction=HOSTILE.replace("\x1b", ""), type="text", reads=["x"]),
            If([("y > 1", [Step("u", "y + 1")])]),
            Step("pay", operation="go", arguments={"a": "x"}, performer="tool", type="text"),
        ],
        inputs=[Input("x", "text"), "y"],
        answer="t",
        name=HOSTILE,
        tables=[Table("daily", {"k": "text"}, "text", [(HOSTILE, HOSTILE)])],
        tools={"go": lambda a: HOSTILE},
    )
    result = Guard(SimulatedModel(slips=Slips.none(), answers={"t": HOSTILE})).run(procedure, {"x": HOSTILE, "y": 2})
    data = result.to_dict()
    data["notes"] = [HOSTILE]
    data["steps"][0]["deviations"] = [{"kind": "malformed", "step": HOSTILE, "reason": HOSTILE}]
    text = draw_html(procedure, data)
    page = Page(text)
    plain = Page(draw_html(claim()))
    assert {tag for tag, _ in page.tags} <= {tag for tag, _ in plain.tags} | {"b", "details", "summary", "table", "ul"}
    for tag, attributes in page.tags:
        assert not any(name.startswith("on") or name == "src" for name in attributes), tag
        assert all((value or "").startswith("#") for name, value in attributes.items() if name == "href")
    drawn = draw_text(procedure, data)
    for shown in (text, drawn):
        assert "\x1b" not in shown
        assert "\u202e" not in shown
    assert draw_text(procedure, data, ascii_only=True).isascii()


def test_a_page_loads_nothing_and_runs_nothing() -> None:
    """No script, no address; the policy of the page forbids both."""
    procedure = claim()
    text = draw_html(procedure, run(procedure, {"x": 4, "left": 25}))
    assert "<script" not in text
    assert "http://" not in text
    assert "https://" not in text
    assert "url(" not in text
    assert "default-src 'none'" in text.replace("&#x27;", "'")


@pytest.mark.parametrize("seed", range(6))
def test_any_run_of_any_procedure_is_drawn(seed: int) -> None:
    """Also from JSON, and where something in that is damaged it is drawn or refused by name."""
    program = make_program(seed)
    result = Guard(SimulatedModel(seed), seed=seed, repair=3).run(program.procedure, program.inputs)
    data = json.loads(result.to_json())
    text = draw_text(program.procedure, data)
    assert text == draw_text(program.procedure, result)
    assert text.count("STOPPED") == (result.problem is not None)
    page = Page(draw_html(program.procedure, data))
    assert len([1 for _, attributes in page.tags if attributes.get("id") == "stop"]) == (result.problem is not None)
    chance, places = random.Random(seed), list(places_in(data))
    for _ in range(12):
        damaged: Any = json.loads(json.dumps(data))
        *way, last = chance.choice(places)
        inside = damaged
        for key in way:
            inside = inside[key]
        inside[last] = chance.choice([None, [], {}, "x", -1, 10**30, True, [None], {"a": 1}, "<b>", 1.5, "0.0.0.0"])
        try:
            draw_text(program.procedure, damaged)
            Page(draw_html(program.procedure, damaged))
        except ConfigError:
            continue


def places_in(data: object, way: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every place in a JSON document."""
    entries: Any = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for key, value in entries:
        yield (*way, key)
        yield from places_in(value, (*way, key))


def test_branches_with_more_than_steps_stand_below_each_other() -> None:
    """So that what is nested deeply has the width of the page."""
    flat = Procedure([If([("x > 1", [Step("t", "x + 1")])], [Step("t", "x + 2")])], inputs=["x"])
    nested = Procedure([If([("x > 1", [*flat.body])], [Step("t", "x + 2")])], inputs=["x"])
    kinds = [attributes.get("class") for _, attributes in Page(draw_html(nested)).tags]
    assert kinds.count("branches stacked") == 1
    assert kinds.count("branches") == 1


class TestLength:
    """Long procedures and long runs."""

    def test_a_long_row_of_steps_is_folded(self) -> None:
        """Its ends and what was asked again are shown, the rest is counted."""
        steps = [Step("s0", "x + 1"), *(Step(f"s{at}", f"s{at - 1} + 1", performer="code") for at in range(1, 2000))]
        steps[1000] = Step("s1000", "s999 + 1")
        procedure = Procedure(steps, inputs=["x"])
        result = run(procedure, {"x": 1}, plants=(Plant("s1000", "wrong_value"),))
        text = draw_text(procedure, result)
        assert len(text.split("\n")) < 80
        assert "on try 2 after wrong_value" in text
        assert "more steps: 988 verified" in text
        page = Page(draw_html(procedure, result))
        assert len(page.tags) < 25_000
        assert "100 more steps, s12 to s111: 100 verified" in page.text

    def test_many_rounds_are_folded(self) -> None:
        """A picture is as large as its procedure, whatever the length of the run."""
        body = [Step("left", "left - 1", performer="code")]
        procedure = Procedure([Repeat(5000, body, until="left <= 0")], inputs=["left"])
        result = run(procedure, {"left": 1000})
        text = draw_text(procedure, result)
        assert "(1,000 rounds)" in text
        assert "✓ 1,000 times: 1,000 verified" in text
        assert len(text.split("\n")) < 20
        assert len(draw_html(procedure, result)) < 20_000

    def test_a_lazy_procedure_is_not_made_to_be_drawn(self) -> None:
        """Of a million steps the ends are looked at, and what a limited history has kept."""
        made: list[int] = []

        def step_at(index: int) -> Step:
            made.append(index)
            return Step(f"s{index}", f"s{index - 1} + 1" if index else "x + 1", performer="code")

        procedure = Procedure.lazy(step_at, 1_000_000, look_back=1, inputs=["x"])
        assert "more steps" in draw_text(procedure)
        assert len(made) < 100

    def test_a_limited_history_says_what_is_not_drawn(self) -> None:
        """What the result does not hold is not called unreached."""
        procedure = Procedure([Step("a", "x + 1"), Step("b", "a + 1"), Step("c", "b + 1")], inputs=["x"])
        result = run(procedure, {"x": 1}, history=1)
        assert "the result keeps the last 1 of 3 steps" in draw_text(procedure, result)

    @pytest.mark.parametrize("width", [40, 60, 80, 120])
    @pytest.mark.parametrize("ascii_only", [True, False])
    def test_no_line_is_longer_than_the_terminal(self, width: int, ascii_only: bool) -> None:
        """Long words are broken, and wide characters count for two."""
        words = "Read 地址地址地址地址地址地址地址地址地址 " + "very" * 40
        body = [If([("x > 1", [If([("x > 2", [Step("t", instruction=words)])])])])]
        procedure = Procedure(body, inputs=["x"], answer="x")
        from rich.cells import cell_len

        for line in draw_text(procedure, width=width, ascii_only=ascii_only).split("\n"):
            assert cell_len(line) <= width


class TestCommand:
    """`stepguard show`."""

    @pytest.fixture
    def files(self, tmp_path: Path) -> tuple[str, str]:
        procedure = tmp_path / "order.txt"
        procedure.write_text("name: order\ninputs: x\nt1 = x + 1\nt2 = t1 * 2\n", encoding="utf-8")
        result = run(Procedure.load(procedure), {"x": 4})
        (tmp_path / "run.json").write_text(result.to_json(), encoding="utf-8")
        return str(procedure), str(tmp_path / "run.json")

    def test_text_and_page(self, files: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        """The text goes to stdout, the page to its file."""
        assert main(["show", files[0]]) == 0
        assert "● t2 = t1 * 2" in capsys.readouterr().out
        assert main(["show", files[0], "--run", files[1], "--ascii"]) == 0
        out = capsys.readouterr().out
        assert "VERIFIED: 2 steps completed; t2 = 10" in out
        assert out.isascii()
        page = tmp_path / "page.html"
        assert main(["show", files[0], "--run", files[1], "--html", str(page)]) == 0
        assert capsys.readouterr().out == ""
        assert "VERIFIED" in Page(page.read_text(encoding="utf-8")).text
