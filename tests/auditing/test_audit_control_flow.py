"""Transcripts of procedures that branch, repeat and call: each claim is judged in its own round, or set aside."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from control_flow_harness import Program, make_program
from hypothesis import given
from hypothesis import strategies as st
from tables import all_rows

from stepguard import Procedure, audit
from stepguard.auditing import Audit
from stepguard.cli import main

CAPPED = """
inputs: items: list of number, cap
for each item in items:
    paid = min(item, cap)
    rest = item - paid
total = sum of paid
if total > 100:
    fee = 5
    bonus = total * 2
else:
    fee = 10
    malus = total * 3
end = total - fee
answer: end
"""
PROCEDURE = Procedure.parse(CAPPED)
INPUTS = {"items": [30, 80, 50], "cap": 60}
END = "\ntotal = 140\nfee = 5\nbonus = 280\nend = 135\nFinal answer: 135"
GROWTH = Procedure.parse("""
inputs: start
procedure interest:
  inputs: amount
  raw = amount / 10
  answer: raw
balance = start
repeat at most 5 times until balance > 130:
  gain = call interest(amount=balance)
  balance = balance + gain
answer: balance
""")


def judged(found: Audit) -> dict[str, str]:
    """The verdict of each step, or the kind where it has one."""
    return {each.step: each.kind or each.verdict for each in found.steps}


ITEMS = [(1, 30, 0), (2, 60, 20), (3, 50, 0)]
RIGHT = {
    "in order": "paid = min(30, 60) = 30\nrest = 0\npaid = 60\nrest = 80 - 60 = 20\npaid = 50\nrest = 0",
    "by columns": "paid = 30\npaid = 60\npaid = 50\nrest = 0\nrest = 20\nrest = 0",
    "paths": "".join(f"items[{n - 1}].paid = {p}\nitems[{n - 1}].rest = {r}\n" for n, p, r in ITEMS),
    "indices from 1": "paid[1] = 30\nrest[1] = 0\npaid[2] = 60\nrest[2] = 20\npaid[3] = 50\nrest[3] = 0",
    "indices from 0": "paid_0 = 30\nrest_0 = 0\npaid_1 = 60\nrest_1 = 20\npaid_2 = 50\nrest_2 = 0",
    "subscripts": "paid\u2081 = 30\nrest\u2081 = 0\npaid\u2082 = 60\nrest\u2082 = 20\npaid\u2083 = 50\nrest\u2083 = 0",
    "remarks": "".join(f"paid (item {n}) = {p}\nrest for item {n} = {r}\n" for n, p, r in reversed(ITEMS)),
    "headings": "".join(f"### Item {n}\npaid is {p} and rest is {r}.\n" for n, p, r in ITEMS) + "### Total",
    "headings out of order": "Item 3: paid = 50, rest = 0\nItem 1: paid = 30, rest = 0\nItem 2: paid = 60, rest = 20",
    "list": "".join(f"- **Item {n} (A):** paid = **{p}**; rest = **{r}**\n" for n, p, r in ITEMS),
    "sentences": "".join(f"For item {n}, paid = {p} and rest = {r}. " for n, p, r in reversed(ITEMS)),
    "table of items": "| item | paid | rest |\n|---|---|---|\n| 30 | 30 | 0 |\n| 80 | 60 | 20 |\n| 50 | 50 | 0 |\n",
    "table of rounds": "| # | paid | rest |\n|---|---|---|\n| 3 | 50 | 0 |\n| 1 | 30 | 0 |\n| 2 | 60 | 20 |\n",
    "objects": json.dumps([{"paid": 30, "rest": 0}, {"paid": 60, "rest": 20}, {"paid": 50, "rest": 0}]),
}  # fmt: skip


@all_rows("text", RIGHT.values())
def test_rounds_are_read_however_they_are_named(text: str) -> None:
    """A right transcript is right in every way of writing, and a slip in it is named in its round."""
    assert audit(PROCEDURE, INPUTS, text + END).ok
    slip = re.sub(r"\b60\b(?!\))", "62", text)
    verdicts = judged(audit(PROCEDURE, INPUTS, slip + END))
    assert verdicts["items[1].paid"] in ("wrong_value", "unfaithful_work")
    assert {verdicts["items[0].paid"], verdicts["items[2].paid"], verdicts["items[0].rest"]} == {"right"}


SET_ASIDE = {
    "a round too few": "paid = 30\nrest = 0\npaid = 50\nrest = 0",
    "0 or 1": "paid[1] = 30\nrest[1] = 0\npaid[2] = 60\nrest[2] = 20",
    "another order": "paid = 60\npaid = 30\npaid = 50\nrest = 20\nrest = 0\nrest = 0",
    "a list": "paid = [30, 60, 50]\nrest = 0, 20, 0",
    "a JSON list": json.dumps({"paid": [30, 60, 50], "rest": [0, 20, 0]}),
    "numbers": "Step 1: 30\nStep 2: 0\nStep 3: 60\nStep 4: 20\nStep 5: 50\nStep 6: 0",
    "values for names": "Item 30: paid = 30\nItem 80: paid = 60\nItem 50: paid = 50",
    "values apart by commas": "item,paid,rest\n30,30,0\n80,60,20\n50,50,0\n",
    "no claim": "Item 1: 30 -> paid = 30\nItem 2: 80 -> paid = 60\nItem 3: 50 -> paid = 50",
}


@all_rows("text", SET_ASIDE.values())
def test_a_claim_of_several_rounds_is_of_none(text: str) -> None:
    """What may belong to several rounds is not judged, and says why; it is neither right nor wrong."""
    found = audit(PROCEDURE, INPUTS, text + END)
    first = next(each for each in found.steps if each.step == "items[0].paid")
    assert not found.ok
    assert first.verdict == "not_judged"
    assert first.reason


RECAPS = {
    "words": "Summary: paid = 30, paid = 60, paid = 50",
    "table": "| item | paid | total |\n|---|---|---|\n| 1 | 30 | 30 |\n| 2 | 60 | 90 |\n| 3 | 50 | 140 |\n",
    "another round": "Now item 2 again: paid = 60",
}


@pytest.mark.parametrize("text", RECAPS.values(), ids=RECAPS)
def test_what_is_said_again_is_no_other_claim(text: str) -> None:
    """A summary behind the rounds is neither a correction of the last one nor a further one."""
    assert not audit(PROCEDURE, INPUTS, f"{RIGHT['headings'].removesuffix('### Total')}\n{text}\n{END}").wrong


def test_a_calculation_that_does_not_come_out_is_not_right() -> None:
    """The value alone is not enough where a calculation stands in front of it."""
    found = audit(PROCEDURE, INPUTS, RIGHT["in order"] + END.replace("total = ", "total = 30 + 60 = "))
    assert judged(found)["total"] in ("unfaithful_work", "wrong_operand")


def test_a_condition_decided_wrongly_is_named() -> None:
    """The step says which condition was decided the other way; what else that branch has is extra."""
    rounds = RIGHT["in order"]
    found = audit(PROCEDURE, INPUTS, f"{rounds}\ntotal = 140\nfee = 10\nmalus = 420\nend = 130\nFinal answer: 130")
    verdicts = judged(found)
    assert [verdicts[name] for name in ("fee", "end", "bonus")] == ["wrong_value", "inherited", "missing_step"]
    assert "`total > 100` is decided the other way" in found.of("wrong_value")[0].reason
    assert [each.step for each in found.of("extra_step")] == ["malus"]


@all_rows(
    "said, holds",
    [
        ("Since 140 > 100, fee is 5.", True),
        ("140 <= 100 is false.", True),
        ("Is 140 < 100? No.", True),
        ("Since 140 < 100, fee is 5.", False),
        ("- 140 > 100 is false", False),
        ("140 <= 100 is true.", False),
    ],
)
def test_a_condition_that_does_not_hold_is_named(said: str, holds: bool) -> None:
    """A comparison that is said to decide, and is false, is wrong even where every value is right."""
    assert audit(PROCEDURE, INPUTS, f"{RIGHT['in order']}\n{said}{END}").ok == holds


def test_a_branch_that_a_wrong_value_leads_to_is_inherited() -> None:
    """After a slip the transcript is judged along its own way, too."""
    rounds = "Item 1: paid = 30, rest = 0\nItem 2: paid = 6, rest = 74\nItem 3: paid = 50, rest = 0\n"
    found = audit(PROCEDURE, INPUTS, f"{rounds}\ntotal = 86\nfee = 10\nmalus = 258\nend = 76\nFinal answer: 76")
    verdicts = judged(found)
    assert verdicts["items[1].paid"] == "wrong_value"
    assert [verdicts[name] for name in ("items[1].rest", "total", "fee", "end")] == ["inherited"] * 4
    assert verdicts["bonus"] == "missing_step"
    assert [each.step for each in found.of("extra_step")] == ["malus"]


def test_a_round_left_out_or_too_many_is_named() -> None:
    """Rounds with labels are missing or extra one by one."""
    short = RIGHT["headings"].replace("### Item 2\npaid is 60 and rest is 20.\n", "")
    verdicts = judged(audit(PROCEDURE, INPUTS, short + END))
    assert [name for name, kind in verdicts.items() if kind == "missing_step"] == ["items[1].paid", "items[1].rest"]
    more = audit(PROCEDURE, INPUTS, RIGHT["headings"].replace("### Total", "### Item 4\npaid is 3.\n### Total") + END)
    assert [(each.kind, each.step) for each in more.findings] == [("extra_step", "paid")]


def test_rounds_that_follow_from_a_slip_are_extra() -> None:
    """A loop that a wrong value keeps going has rounds that the right one has not."""
    claims = [("10", "110"), ("11", "112"), ("11.2", "123.2"), ("12.32", "135.52")]
    text = "".join(f"raw = {raw}\nbalance = {balance}\n" for raw, balance in claims)
    found = audit(GROWTH, {"start": 100}, f"balance = 100\n{text}\nFinal answer: 135.52")
    verdicts = judged(found)
    assert [verdicts[f"repeat[{n}].balance"] for n in range(3)] == ["right", "wrong_value", "inherited"]
    assert [each.step for each in found.of("extra_step")] == ["repeat[3].gain.raw", "repeat[3].balance"]


def test_the_answer_of_a_call_may_be_named_by_the_call() -> None:
    """`gain` is what `interest` came to: it is judged where it is given, and not missed where it is not."""
    rounds = "".join(
        f"Round {n}: raw = {g}, gain = {g}, balance = {b}\n"
        for n, g, b in [(1, 10, 110), (2, 11, 121), (3, 12.1, 133.1)]
    )
    assert audit(GROWTH, {"start": 100}, f"balance = 100\n{rounds}Final answer: 133.1").ok
    slip = rounds.replace("gain = 11,", "gain = 12,")
    assert (
        judged(audit(GROWTH, {"start": 100}, f"balance = 100\n{slip}Final answer: 133.1"))["repeat[1].gain"]
        == "wrong_value"
    )


def test_what_hangs_on_words_is_judged_by_the_transcripts_own() -> None:
    """A judgement decides the way as the transcript gives it; without it nothing behind it is judged."""
    procedure = Procedure.parse(
        'inputs: letter: text, price\nopened: boolean = "Was it opened?" (reads letter)\n'
        "if opened:\n    paid = price / 2\nelse:\n    paid = price\nanswer: paid"
    )
    inputs = {"letter": "I opened it.", "price": 40}
    assert judged(audit(procedure, inputs, "opened = true\npaid = 20\nAnswer: 20")) == {
        "opened": "not_judged",
        "paid": "right",
    }
    assert judged(audit(procedure, inputs, "opened = false\npaid = 20\nAnswer: 20"))["paid"] == "wrong_value"
    assert judged(audit(procedure, inputs, "paid = 20\nAnswer: 20")) == {"opened": "missing_step", "paid": "not_judged"}


def test_the_command_names_steps_by_their_places(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`stepguard audit` takes such a procedure."""
    (tmp_path / "p.txt").write_text(CAPPED, encoding="utf-8")
    (tmp_path / "t.txt").write_text(RIGHT["in order"].replace("20", "21") + END, encoding="utf-8")
    inputs = ["--input", "items=[30, 80, 50]", "--input", "cap=60"]
    assert main(["audit", str(tmp_path / "p.txt"), str(tmp_path / "t.txt"), *inputs]) == 3
    assert "line 4: wrong_value at items[1].rest" in capsys.readouterr().out


ORDERS = Procedure.parse("""
record Order:
  name: text
  price: number
  count: integer
inputs: orders: list of Order
for each order in orders:
  gross = order.price * order.count
  tax = gross / 10
total = sum of gross
answer: total
""")
PEOPLE = {"orders": [{"name": name, "price": price, "count": 2} for name, price in [("Bob", 10), ("Ann Lee", 15)]]}
NAMED = {
    "headings": "### Ann Lee\ngross = 30\ntax = 3\n### Bob\ngross = 20\ntax = 2\n### Total",
    "lines": "For Ann Lee: gross = 15 * 2 = 30, tax = 3\nFor Bob: gross = 10 * 2 = 20, tax = 2",
    "remarks": "gross (Ann Lee) = 30\ntax for Ann Lee = 3\ngross[Bob] = 20\ntax for order Bob = 2",
    "table": "| order | gross | tax |\n|---|---|---|\n| Ann Lee | 30 | 3 |\n| Bob | 20 | 2 |\n",
    "numbers and names": "### Item 1: Bob\n- gross = 20\n- tax = 2\n### Item 2: Ann Lee\n- gross = 30\n- tax = 3",
    "members": json.dumps([{"name": "Ann Lee", "gross": 30, "tax": 3}, {"name": "Bob", "gross": 20, "tax": 2}]),
    "objects": json.dumps(
        [
            {"step": step, "round": n, "value": value}
            for step, n, value in [("gross", 2, 30), ("tax", 2, 3), ("gross", 1, 20), ("tax", 1, 2)]
        ]
    ),
}


@all_rows("text", NAMED.values())
def test_rounds_are_told_by_what_they_are_about(text: str) -> None:
    """The name of an item says which round is meant, in any order; a slip is named in its round."""
    assert audit(ORDERS, PEOPLE, f"{text}\ntotal = 50\nFinal answer: 50").ok
    slip = re.sub(r"\b30\b", "31", text)
    verdicts = judged(audit(ORDERS, PEOPLE, f"{slip}\ntotal = 50\nFinal answer: 50"))
    assert verdicts["orders[1].gross"] in ("wrong_value", "unfaithful_work")
    assert verdicts["orders[0].gross"] == "right"


EXTRA = {
    "a round again": "paid = 30\nrest = 0\npaid = 60\nrest = 20\npaid = 50\nrest = 0\npaid = 30\nrest = 0",
    "the last round again": "paid = 30\nrest = 0\npaid = 60\nrest = 20\npaid = 50\nrest = 0\npaid = 50\nrest = 0",
    "marks out of order": "(1) paid = 30, rest = 0\n(3) paid = 60, rest = 20\n(2) paid = 50, rest = 0",
    "a heading that it has not": "Lap 1\npaid = 30\nrest = 0\nLap 3\npaid = 60\nrest = 20\nLap 2\npaid = 50\nrest = 0",
    "a row that is taken back": "| # | paid | rest | ok? |\n|---|---|---|---|\n| 1 | 30 | 0 | yes |\n"
    "| 2 | 60 | 20 | no, wrong |\n| 3 | 50 | 0 | yes |\n",
    "two columns": "| # | paid | mine | rest |\n|---|---|---|---|\n| 1 | 30 | 30 | 0 |\n| 2 | 60 | 62 | 20 |\n"
    "| 3 | 50 | 50 | 0 |\n",
}  # fmt: skip


@all_rows("text", EXTRA.values())
def test_right_values_are_not_right_where_the_rounds_are_not(text: str) -> None:
    """Values in order are not enough where a round is too many, or what stands beside them says another order."""
    assert not audit(PROCEDURE, INPUTS, text + END).ok


def test_the_calculation_of_another_round_is_not_right() -> None:
    """Two rounds that come to the same value are told apart by their calculations."""
    orders = {"orders": [{"name": "Bob", "price": 10, "count": 2}, {"name": "Ann", "price": 5, "count": 4}]}
    text = "gross = {} = 20\ntax = 2\ngross = {} = 20\ntax = 2\ntotal = 40\nFinal answer: 40"
    assert audit(ORDERS, orders, text.format("10 * 2", "5 * 4")).ok
    assert not audit(ORDERS, orders, text.format("5 * 4", "10 * 2")).ok


LOOPS = Procedure.parse("""
inputs: a
x = a
repeat at most 9 times until x > 10:
  x = x + 3
repeat at most 9 times until x < 3:
  x = x - 4
answer: x
""")


@pytest.mark.parametrize("text", ["1 4 77 10 13 9 5 1", "1 4 11 14 10 6 2"])
def test_a_slip_that_would_end_a_loop_leaves_open_what_belongs_to_the_next_one(text: str) -> None:
    """Claims with one name for two loops are judged up to the slip; where they go on is not guessed."""
    values = text.split()
    found = audit(LOOPS, {"a": 1}, "\n".join(f"x = {value}" for value in values) + f"\nAnswer: {values[-1]}")
    assert [each.kind or each.verdict for each in found.steps] == ["right"] * 2 + ["wrong_value"] + ["not_judged"] * 5
    assert {each.step for each in found.findings} == {"repeat[1].x", None} - ({None} if values[-1] == "1" else set())


def test_what_is_wrong_and_rests_on_claims_set_aside_is_inherited() -> None:
    """A round is left out, which one is not said: the sum over the rounds is wrong, and not of its own making."""
    found = audit(PROCEDURE, INPUTS, SET_ASIDE["a round too few"] + "\ntotal = 80\nfee = 10\nend = 70\nAnswer: 70")
    assert (judged(found)["items[0].paid"], judged(found)["total"]) == ("not_judged", "inherited")


def test_headings_end_with_the_loop_that_they_are_about() -> None:
    """The last round of one loop is none of the next loop."""
    procedure = Procedure.parse(
        "inputs: items: list of number\nx = 1\nrepeat at most 5 times until x > 4:\n  x = x * 2 + 1\n"
        "y = x\nfor each item in items:\n  paid = item + y\ntotal = sum of paid\nanswer: total"
    )
    text = "x = 1\nRound 1: x = 3\nRound 2: x = 7\n\ny = 7\npaid = 8\npaid = 9\ntotal = 17\nAnswer: 17"
    assert audit(procedure, {"items": [1, 2]}, text).ok


@pytest.mark.parametrize(("heads", "ok"), [("For 28:|For 79:", True), ("For 79:|For 28:", False)])
def test_rounds_of_a_call_are_about_the_item_of_the_loop_around_it(heads: str, ok: bool) -> None:
    """The number in a heading is the item of the round, for the steps of what the round calls, too."""
    procedure = Procedure.parse(
        "inputs: items: list of number\nprocedure double:\n  inputs: p\n  twice = p * 2\n  answer: twice\n"
        "for each item in items:\n  paid = call double(p=3)\ntotal = sum of paid\nanswer: total"
    )
    first, second = heads.split("|")
    text = f"{first}\ntwice = 6\n{second}\ntwice = 6\ntotal = 12\nAnswer: 12"
    assert audit(procedure, {"items": [28, 79]}, text).ok == ok


def test_a_condition_over_names_of_its_own_branch_is_no_alternative() -> None:
    """What another branch would come to is not asked where its names are not set."""
    procedure = Procedure.parse(
        "inputs: a\nif a > 3:\n  b = a + 1\n  c = b * 2\nelse:\n  c = a - 1\nd = c + 1\nanswer: d"
    )
    assert judged(audit(procedure, {"a": 2}, "c = 9\nd = 10\nAnswer: 10")) == {"c": "wrong_value", "d": "inherited"}


def test_steps_of_a_call_stand_in_an_object_of_its_name() -> None:
    """JSON as deep as the procedure is read step by step."""
    rounds = [{"gain": {"raw": raw}, "balance": balance} for raw, balance in [(10, 110), (11, 121), (12.1, 133.1)]]
    assert audit(GROWTH, {"start": 100}, json.dumps({"balance": 100, "repeat": rounds}) + "\nAnswer: 133.1").ok


Truth = list[tuple[str, object]]


def _name(path: str) -> str:
    return path.rpartition(".")[2]


STYLES: dict[str, Callable[[Truth], str]] = {
    "lines": lambda truth: "\n".join(f"{_name(path)} = {value}" for path, value in truth),
    "paths": lambda truth: "\n".join(f"{path}: {value}" for path, value in truth),
    "steps": lambda truth: json.dumps([{"step": _name(path), "value": value} for path, value in truth]),
}


@pytest.mark.parametrize("seed", [*range(3), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(3, 12))])
def test_random_procedures_are_judged_as_an_interpreter_does(seed: int) -> None:
    """A true run is right in three styles; after one slip each step is what an independent interpreter makes of it."""
    check_program(make_program(seed), seed)


@pytest.mark.slow
@given(st.integers(min_value=1000, max_value=10**9))
def test_generated_procedures_are_judged_as_an_interpreter_does(seed: int) -> None:
    """The same of procedures that nobody has seen."""
    check_program(make_program(seed), seed)


def check_program(program: Program, seed: int) -> None:
    if program.answer is None:  # it ends at a bound
        return
    place = random.Random(seed).choice(list(program.truth))
    slip = int(str(program.truth[place])) + random.Random(seed).choice([-3, 1, 1000])
    run, answer = program.slipped({place: slip})
    alone = {**program.truth, place: slip}
    for style, write in STYLES.items():
        assert not audit(
            program.procedure, program.inputs, f"{write(list(alone.items()))}\nAnswer: {program.answer}"
        ).ok
        found = audit(
            program.procedure, program.inputs, f"{write(list(program.truth.items()))}\nFinal answer: {program.answer}"
        )
        assert not found.wrong, (seed, style)
        assert found.ok or all(each.verdict == "right" or each.reason for each in found.steps), (seed, style)
        if answer is None:
            continue
        found = audit(program.procedure, program.inputs, f"{write(list(run.items()))}\nFinal answer: {answer}")
        verdicts = judged(found)
        assert verdicts[place] in ("wrong_value", "not_judged"), (seed, style, place)
        assert not found.ok
        for path, right in program.truth.items():
            want = "missing_step" if path not in run else "right" if run[path] == right else "inherited"
            assert path == place or verdicts[path] in (want, "not_judged"), (seed, style, path)
