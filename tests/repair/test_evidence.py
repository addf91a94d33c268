"""Judgements and extractions asked again by what decides them: a passage, each option, each field, each comparison."""

from __future__ import annotations

import random
import re
from collections.abc import Mapping
from datetime import date, timedelta
from functools import partial
from itertools import product
from typing import Any

import pytest
from evidence_harness import CLAUSE, POLICY, SIZES, FunctionModel, choice, reply, verdict
from hypothesis import given
from hypothesis import strategies as st
from tables import all_rows

from stepguard import Guard, Ladder, Procedure, Step
from stepguard.backends import Request
from stepguard.checks import Cites, Grounded
from stepguard.language.evaluation import evaluate, substitute
from stepguard.language.values import Value
from stepguard.procedure import Input
from stepguard.repair.rungs import Draft, Eliminate, Fields, Parts, Passage, Reorder, Resample, Split, person
from stepguard.repair.splitting import SplitWay, split
from stepguard.testing import Plant, ScriptedBackend, SimulatedModel


def test_a_judgement_that_quotes_nothing_is_asked_by_its_passage() -> None:
    """The passage is asked first and checked, then the decision from it alone; the claim quotes it."""

    def answer(step: Step, request: Request) -> object:
        return reply(CLAUSE) if step.id == "passage" else reply("true", "I think so")

    model = FunctionModel(answer)
    result = Guard(model, repair=Ladder([Passage()])).run(verdict("boolean"), {"policy": POLICY})
    assert (result.status, result.values["ok"], result.assisted) == ("checked", True, {"split": 1})
    assert [(each.rung, each.outcome) for each in result.attempts] == [
        ("ask", "rejected"),
        ("passage", "partly"),
        ("passage", "accepted"),
    ]
    assert "Opened goods" in model.prompts[1]
    assert "Opened goods" not in model.prompts[2]
    assert CLAUSE in model.prompts[2]
    assert [deviation.kind for deviation in result.steps[0].deviations] == ["unfaithful_work"]


@pytest.mark.parametrize("passage", ["Books are taken back within 60 days", "Books", "Opened goods ... taken back", ""])
def test_a_passage_that_does_not_stand_there_decides_nothing(passage: str) -> None:
    """What was made up, is too short or leaves something out is refused before anything is asked of it."""
    model = FunctionModel(lambda step, request: reply(passage if step.id == "passage" else "true"))
    result = Guard(model, repair=Ladder([Passage()])).run(verdict("boolean"), {"policy": POLICY})
    assert (result.status, result.usage.calls) == ("abstained", 2)


def test_a_wrong_quotation_says_nothing_of_the_value() -> None:
    """A judgement with two values is asked again where its citation alone was refused."""
    quoted = reply("true", f'"{CLAUSE}"')
    with ScriptedBackend({"ok": reply("true", '"Books are never taken back"')}, {"ok": quoted}) as model:
        assert Guard(model, repair=1).run(verdict("boolean"), {"policy": POLICY}).status == "checked"


def test_a_wrong_value_with_a_wrong_quotation_is_a_wrong_value() -> None:
    """Where both are refused the value counts: another one would be a guess."""
    wrong = verdict("boolean", lambda step, values, claim: values["ok"] is False)
    with ScriptedBackend({"ok": reply("true", "no quotation")}) as model:
        result = Guard(model).run(wrong, {"policy": POLICY})
    assert (result.status, result.usage.calls) == ("abstained", 1)


def test_each_option_is_asked_by_itself() -> None:
    """Options are asked in calls of their own, none in view of another; the only one that applies is the value."""
    model = FunctionModel(
        lambda step, request: reply("small" if step.id == "size" else str('"medium"' in str(step.instruction)).lower())
    )
    result = Guard(model, repair=Ladder([Eliminate()])).run(choice(*SIZES, right="medium"), {"policy": POLICY})
    assert (result.values["size"], result.assisted, result.usage.calls) == ("medium", {"split": 1}, 4)
    for prompt, option in zip(model.prompts[1:], SIZES, strict=True):
        assert [each for each in SIZES if each in prompt] == [option]


@pytest.mark.parametrize("answer", ["medium", lambda values: "medium"])
def test_the_simulated_model_can_be_asked_option_by_option(answer: object) -> None:
    """What it answers for a step decides whether each of its options applies."""
    model = SimulatedModel(plants=[Plant("size", "wrong_value")], answers={"size": answer})
    with model:
        result = Guard(model, repair=Ladder([Eliminate()])).run(choice(*SIZES, right="medium"), {"policy": POLICY})
    assert (result.values["size"], result.assisted, result.usage.calls) == ("medium", {"split": 1}, 4)


def test_options_are_asked_of_the_passage_that_decides_them() -> None:
    """Where a check names a document the sentence is copied first, read beside each option, and quoted in the claim."""

    def answer(step: Step, request: Request) -> object:
        if step.id in ("ok", "passage"):
            return reply("no" if step.id == "ok" else CLAUSE)
        return reply(str('"yes"' in str(step.instruction)).lower())

    procedure = verdict("one_of(yes, no, maybe)", lambda step, values, claim: values["ok"] == "yes")
    model = FunctionModel(answer)
    result = Guard(model, repair=Ladder([Eliminate()])).run(procedure, {"policy": POLICY})
    assert (result.status, result.values["ok"], result.usage.calls) == ("checked", "yes", 5)
    assert not any("Opened goods" in prompt for prompt in model.prompts[2:])


@pytest.mark.parametrize("truth", ["true", "false"])
def test_options_that_are_not_decided_give_no_value(truth: str) -> None:
    """Where none applies, or several do, the step is given up."""
    model = FunctionModel(lambda step, request: reply("small" if step.id == "size" else truth))
    result = Guard(model, repair=Ladder([Eliminate()])).run(choice(*SIZES, right="medium"), {"policy": POLICY})
    assert result.status == "abstained"
    assert result.problem is not None
    assert "options apply" in result.problem.reason
    assert result.problem.deviation is not None
    assert result.problem.deviation.kind == "malformed"  # no value was claimed


def test_options_are_asked_in_the_other_order_where_enough_are_left() -> None:
    """Of six options five are left; of three two, which would be a guess."""

    def first(step: Step, request: Request) -> object:
        return reply(step.type.options[0])

    six = [f"o{number}" for number in range(6)]
    ladder = Ladder([Reorder()])
    found = Guard(FunctionModel(first), repair=ladder).run(choice(*six, right="o5"), {"policy": ""})
    assert (found.values["size"], found.assisted) == ("o5", {"rephrased": 1})
    assert (
        Guard(FunctionModel(first), repair=ladder).run(choice(*SIZES, right="large"), {"policy": ""}).usage.calls == 1
    )


RECEIPT = "ACME GmbH\nNet 80.00 EUR\nVAT 20.00 EUR\nTotal 100.00 EUR\nDate 2026-03-04\n"
RECORD = """
record Bill:
  total: money(EUR)
  net: money(EUR)
  on: date

inputs:
  receipt: text

bill: Bill = "Copy the bill." (reads receipt)   check: grounded(receipt, beside={total: "Total", net: "Net"})
"""


def test_a_record_is_asked_field_by_field() -> None:
    """Each field is a step with its own words beside; what is right is not asked again."""
    right = {"total": "100.00 EUR", "net": "80.00 EUR", "on": "2026-03-04"}
    tries: list[str] = []

    def answer(step: Step, request: Request) -> object:
        if step.id == "bill":
            return reply({**right, "total": "80.00 EUR"})
        key = str(step.instruction).split()[1]
        tries.append(key)
        return reply("100.00 EUR" if key == "net" and tries.count("net") == 1 else right[key])

    result = Guard(FunctionModel(answer), repair=Ladder([Fields()])).run(Procedure.parse(RECORD), {"receipt": RECEIPT})
    assert (result.status, result.assisted) == ("checked", {"split": 1})
    assert str(result.values["bill"]["total"]) == "100.00"  # type: ignore[call-overload,index]
    assert tries == ["total", "net", "on", "net", "on"]


def test_the_fields_of_a_record_in_a_loop_are_checked_under_the_names_of_the_round() -> None:
    """A field is looked for in the document of its round."""
    looped = RECORD.replace("receipt: text", "receipts: list of text").partition("bill:")[0]
    looped += "for each receipt in receipts:\n  bill:" + RECORD.partition("bill:")[2]
    right = {"total": "100.00 EUR", "net": "80.00 EUR", "on": "2026-03-04"}

    def answer(step: Step, request: Request) -> object:
        whole = step.type.record is not None
        return reply({**right, "on": "2026-03-05"} if whole else right[str(step.instruction).split()[1]])

    result = Guard(FunctionModel(answer), repair=Ladder([Fields()])).run(
        Procedure.parse(looped), {"receipts": [RECEIPT] * 2}
    )
    assert (result.status, result.assisted) == ("checked", {"split": 2})


def test_a_value_is_asked_by_the_line_that_holds_it() -> None:
    """An amount that was not beside its words is read from the line that was copied first."""
    step = Step(
        "total",
        instruction="What is the total?",
        type="money(EUR)",
        reads=["receipt"],
        checks=[Grounded("receipt", beside="Total")],
    )

    def answer(step: Step, request: Request) -> object:
        if step.id == "passage":
            return reply("Total 100.00 EUR")
        return reply("80.00 EUR" if "receipt" in step.reads else "100.00 EUR")

    procedure = Procedure([step], inputs=[Input("receipt", "text")])
    result = Guard(FunctionModel(answer), repair=Ladder([Passage()])).run(procedure, {"receipt": RECEIPT})
    assert (result.status, str(result.values["total"])) == ("checked", "100.00")


LOOPED = Procedure.parse("""
inputs:
  rules: list of text

for each rule in rules:
  ok: boolean = "Is the book taken back?" (reads rule)   check: cites(rule)
""")


def test_a_judgement_in_a_loop_is_asked_by_its_passage() -> None:
    """The document is named as it is in the round."""
    model = FunctionModel(lambda step, request: reply(CLAUSE if step.id.startswith("passage") else "true"))
    result = Guard(model, segment=1, repair=Ladder([Passage()])).run(LOOPED, {"rules": [POLICY, CLAUSE]})
    assert (result.status, dict(result.assisted)) == ("checked", {"split": 2})


def carried_out(step: Step, request: Request) -> str:
    """The equation of a small step, rightly."""
    assert step.expression is not None
    state = dict(request.values)
    for each in request.steps:
        assert each.expression is not None
        state[each.id] = evaluate(each.expression, state)
    return f"{substitute(step.expression, state)} = {state[step.id]}"


LONG = "".join(
    f"Item {number:03}: {number}.50 EUR, taken for the office in the first half of the year\n" for number in range(90)
)
LISTING = """
inputs:
  bill: text

amounts: list of money(EUR) = "List the amounts." (reads bill)   check: grounded(bill); complete(bill)
"""


@pytest.mark.parametrize("lost", [False, True])
def test_a_list_from_a_long_document_is_asked_part_by_part(lost: bool) -> None:
    """Each part is asked in a call that holds no other; what is listed together is judged as a whole."""

    def answer(step: Step, request: Request) -> object:
        text = str(request.values[step.reads[0]])
        amounts = re.findall(r"(\d+\.50) EUR", text)
        return reply([f"{each} EUR" for each in (amounts[:5] if step.id == "amounts" else amounts[lost:])])

    model = FunctionModel(answer)
    result = Guard(model, repair=Ladder([Parts()])).run(Procedure.parse(LISTING), {"bill": LONG})
    assert result.status == ("abstained" if lost else "checked")
    assert "".join(str(request.values[request.steps[0].reads[0]]) for request in model.requests[1:]) == LONG
    assert 3 <= result.usage.calls <= 12
    assert lost or (result.assisted, len(result.values["amounts"])) == ({"split": 1}, 90)  # type: ignore[arg-type]


JOINED = [
    "x > y and y > -60",
    "not (x > y) or flag",
    "flag and x + y <= 3",
    "x == y or not flag",
    "x > y and not x > 3",
]


@given(formula=st.sampled_from(JOINED), x=st.integers(-200, 200), y=st.integers(-200, 200), flag=st.booleans())
def test_comparisons_that_are_joined_are_decided_by_their_differences(formula: str, x: int, y: int, flag: bool) -> None:
    """Each difference is asked and proved; the truth value follows, whatever was said of it at first."""
    procedure = Procedure.parse(f"inputs: x, y, flag: boolean\nok: boolean = {formula}")
    right = bool(eval(formula))

    def answer(step: Step, request: Request) -> object:
        if step.id == "ok":
            return str(not right).lower()
        return carried_out(step, request)

    model = FunctionModel(answer)
    result = Guard(model, segment=1, repair=Ladder([Split()])).run(procedure, {"x": x, "y": y, "flag": flag})
    assert (result.status, result.values["ok"]) == ("verified", right)
    assert not any("ok" in prompt for prompt in model.prompts[1:])


@all_rows("way", ["digits", "round_numbers"])
@all_rows("formula", JOINED)
def test_equal_sides_and_those_one_apart_decide_as_they_stand(formula: str, way: SplitWay) -> None:
    """Whichever side is taken off the other: a difference of 0 or 1 is on the right side of the line."""
    procedure = Procedure.parse(f"inputs: x, y, flag: boolean\nok: boolean = {formula}")
    for x, apart, flag in product((-60, 0, 2, 3), (-1, 0, 1), (True, False)):
        y = x + apart
        values = procedure.accept_inputs({"x": x, "y": y, "flag": flag})
        found = split(procedure.steps[0], values, way=way)
        assert found is not None
        known: dict[str, Value] = {}
        for step in found.steps:
            assert step.expression is not None
            known[step.id] = evaluate(step.expression, known)
        assert found.restore(known) is bool(eval(formula))


@given(
    bought=st.dates(date(2025, 1, 1), date(2026, 12, 31)),
    days=st.integers(-60, 60),
    limit=st.integers(0, 40),
    gift=st.booleans(),
)
def test_joined_comparisons_of_dates_are_sums_of_days(bought: date, days: int, limit: int, gift: bool) -> None:
    """A span beside a number and a truth value is decided by the days that it lasts."""
    returned = bought + timedelta(days=days)
    procedure = Procedure.parse("""
inputs: bought: date, returned: date, price, limit, gift: boolean
ok: boolean = (returned - bought <= 14 days and not gift) or price < limit
""")
    right = (days <= 14 and not gift) or limit > 20
    inputs = {"bought": bought, "returned": returned, "price": 20, "limit": limit, "gift": gift}

    def answer(step: Step, request: Request) -> object:
        return reply(not right) if step.id == "ok" else carried_out(step, request)

    result = Guard(FunctionModel(answer), segment=1, repair=Ladder([Split()])).run(procedure, inputs)
    assert (result.status, result.values["ok"], result.assisted) == ("verified", right, {"split": 1})


def _step(kind: str, *checks: Any, reads: tuple[str, ...] = ("policy",), **options: Any) -> Step:
    fields = {"R": 2, "S": 1, "T": 12, "U": 13}
    lines = {name: "".join(f"  f{number}: text\n" for number in range(count)) for name, count in fields.items()}
    declared = "".join(f"record {name}:\n{each}\n" for name, each in lines.items())
    inputs = "".join(f"  {name}: text\n" for name in reads)
    text = f'{declared}inputs:\n{inputs}\nx: {kind} = "Q?" (reads {", ".join(reads)})'
    parsed = Procedure.parse(text).steps[0]
    return Step(options.pop("id", "x"), instruction="Q?", type=parsed.type, reads=reads, checks=checks, **options)


def _of(count: int) -> str:
    return f"one_of({', '.join(f'o{number}' for number in range(count))})"


PARAGRAPH = "A line of some words that tell nothing.\n" * 30 + "\n"
APPLIES: list[tuple[Step, dict[str, Value], set[str]]] = [
    (_step("boolean"), {"policy": POLICY}, set()),
    (_step("boolean", Cites("policy")), {"policy": POLICY}, {"passage"}),
    (_step("boolean", Cites("policy")), {}, set()),
    (_step(_of(2)), {"policy": POLICY}, set()),
    (_step(_of(3), Cites("policy")), {"policy": POLICY}, {"reorder", "passage", "eliminate"}),
    (_step(_of(12)), {"policy": POLICY}, {"reorder", "eliminate"}),
    (_step(_of(13)), {"policy": POLICY}, {"reorder"}),
    (_step(_of(3), performer="person"), {"policy": POLICY}, set()),
    (_step("R", Grounded("policy")), {"policy": POLICY}, {"fields"}),
    (_step("R", Grounded("policy"), lambda step, values, claim: True), {"policy": POLICY}, {"fields"}),
    (_step("S", Grounded("policy")), {"policy": POLICY}, set()),
    (_step("T", Grounded("policy")), {"policy": POLICY}, {"fields"}),
    (_step("U", Grounded("policy")), {"policy": POLICY}, set()),
    (_step("list of text", Grounded("policy")), {"policy": POLICY}, set()),
    (_step("list of text"), {"policy": PARAGRAPH * 3}, {"parts"}),
    (_step("list of text"), {"policy": "a" * 9000}, set()),
    (_step("list of text", reads=("policy", "letter")), {"policy": PARAGRAPH * 3, "letter": PARAGRAPH * 3}, set()),
    (_step("list of text", reads=("policy", "letter")), {"policy": PARAGRAPH * 3, "letter": POLICY}, {"parts"}),
    (_step("list of text"), {"policy": ("A line of some words that tell nothing.\n" * 40 + "\n") * 2}, {"parts"}),
    (_step("text"), {"policy": PARAGRAPH * 3}, set()),
]
APPLIES += [
    (_step("list of text"), {"policy": PARAGRAPH * pages}, {"parts"} if pages > 2 else set()) for pages in range(18)
]


@all_rows("step, values, names", APPLIES)
def test_a_rung_is_used_where_it_applies(step: Step, values: dict[str, Value], names: set[str]) -> None:
    """Of two options none is left out, a record of one field is that field, a short document has no parts."""
    rungs = (Reorder(), Passage(), Fields(), Parts(), Eliminate())
    assert {rung.name for rung in rungs if rung.applies(step, values)} == names


def test_what_is_asked_in_place_of_a_step_has_names_of_its_own() -> None:
    """No step is called as what it reads, or as the step that it stands for."""
    reads = ("passage", "p1", "p3")
    step = _step(_of(3), Cites("passage"), reads=reads, id="p2")
    made = Eliminate().stand_in(step, {"passage": POLICY, "p1": "", "p3": ""})
    assert made is not None
    assert [each.id for each in made.steps] == ["passage_", "p4", "p5", "p6"]
    assert [each.reads for each in made.steps] == [reads, *[("passage_", "p1", "p3")] * 3]
    assert made.outcomes == 8
    cited = Passage().stand_in(step, {"passage": POLICY, "p1": "", "p3": ""})
    assert cited is not None
    assert [each.id for each in cited.steps] == ["passage_", "p2"]
    assert cited.steps[1].instruction == "Q? Answer from passage_ alone."
    turned = Reorder().stand_in(step, {})
    assert turned is not None
    assert turned.steps[0].instruction == 'Q? (quote in "work" the words of passage that decide it)'
    assert turned.steps[0].type.options == ("o2", "o1", "o0")
    plain = Reorder().stand_in(_step(_of(3)), {})
    assert plain is not None
    assert plain.steps[0].instruction == "Q?"
    fields = Fields().stand_in(_step("R"), {"policy": POLICY})
    assert fields is not None
    assert [each.instruction for each in fields.steps] == ["Only f0 of this: Q?", "Only f1 of this: Q?"]
    parts = Parts().stand_in(_step("list of text", reads=reads), {"passage": PARAGRAPH * 3, "p1": "", "p3": ""})
    assert parts is not None
    assert [each.reads for each in parts.steps] == [(name, "p1", "p3") for name, _ in parts.given]
    assert not {name for name, _ in parts.given} & {*reads, *(each.id for each in parts.steps)}


@pytest.mark.parametrize("end", ["\n", "\f"])
@pytest.mark.parametrize("lines", [30, 15])
def test_parts_end_with_a_paragraph_or_a_page(end: str, lines: int) -> None:
    """Where one ends before a part is full it is not cut in two, short ones go together; the parts are the text."""
    text = ("A line of some words that tell nothing.\n" * lines + f"{end}") * (150 // lines)
    made = Parts().stand_in(_step("list of text"), {"policy": text})
    assert made is not None
    assert [part for _, part in made.given] == [text[: len(text) // 5]] * 5


@all_rows(
    "line, lines, parts",
    [("A line of some words that tell nothing.\n", 2500, 8), ("words that go on in the next line\n", 300, 4)],
)
def test_a_document_has_at_most_so_many_parts(line: str, lines: int, parts: int) -> None:
    """A longer document has longer parts; a sentence that does not end is cut where it is as long as two."""
    text = line * lines
    made = Parts().stand_in(_step("list of text"), {"policy": text})
    assert made is not None
    assert "".join(str(part) for _, part in made.given) == text
    assert len(made.given) == parts


@pytest.mark.parametrize(("opens", "closes"), [("<del>", "</del>"), ("<!--", "-->"), ("<s>", "</s>")])
def test_no_part_begins_within_what_is_struck_out(opens: str, closes: str) -> None:
    """A part whose mark stands in the one before would show as valid what was taken back."""
    plain = "A line of some words that tell nothing.\n" * 30 + "\n"
    for before in range(4):
        text = plain * before + f"{opens}\n{plain * 3}{closes}\n" + plain * 4
        made = Parts().stand_in(_step("list of text"), {"policy": text})
        assert made is not None
        parts = [str(part) for _, part in made.given]
        assert "".join(parts) == text
        assert [part.count(opens) for part in parts] == [part.count(closes) for part in parts]


def test_a_part_ends_with_a_sentence_where_lines_are_wrapped() -> None:
    """What a sentence denies in one line is not listed from the next."""
    text = ("It is not so that we\never owe any mugs, or\nthat we owe cups.\n" * 200).rstrip()
    made = Parts().stand_in(_step("list of text"), {"policy": text})
    assert made is not None
    parts = [str(part) for _, part in made.given]
    assert all(part.startswith("It is not") and part.rstrip().endswith("cups.") for part in parts)


@pytest.mark.parametrize("formula", ["x > y", "x - y", "x > y and y > 3"])
def test_a_name_that_is_too_long_for_a_step_leaves_the_other_rungs(formula: str) -> None:
    """In a round of a loop names are longer: what cannot be asked under them is not, and the run ends as it says."""
    name = "o" * 64
    kind = "boolean" if ">" in formula else "number"
    procedure = Procedure.parse(f"""
inputs:
  rows: list of number
  y: number

for each x in rows:
  {name}: {kind} = {formula}
""")
    model = FunctionModel(lambda step, request: "7 = 7")
    assert Guard(model).run(procedure, {"rows": [1], "y": 2}).status == "abstained"


# A person behind the ladder


def test_a_run_waits_for_a_person_behind_the_ladder() -> None:
    """Where the guard knows nobody the run waits at the step, an answer goes on, and a wrong one is not asked again."""
    for answer, status in ((True, "checked"), (False, "abstained"), (None, "abstained")):
        step = Step("ok", instruction="Is it?", type="boolean", checks=[lambda step, values, claim: values["ok"]])
        guard = Guard(FunctionModel(lambda step, request: reply("false")), repair=Ladder([Resample(), person()]))
        run = guard.start(Procedure([step]))
        waiting = guard.drive(run)
        assert (waiting.status, waiting.problem and waiting.problem.reason) == ("waiting", "Is it?")
        run.answer("ok", answer)
        result = guard.drive(run)
        assert (result.status, result.usage.calls) == (status, 2)
        assert result.assisted == ({"person": 1} if answer else {})


def test_the_person_of_the_guard_is_asked_behind_the_ladder() -> None:
    """A person answers with what is cited, where a check wants that."""
    answers: list[tuple[object, str]] = [({"value": True, "work": f'"{CLAUSE}"'}, "checked"), (True, "abstained")]
    for answer, status in answers:
        model = FunctionModel(lambda step, request: reply("true", "because"))
        guard = Guard(model, repair=Ladder([person()]), person=partial(_answered, answer))
        result = guard.run(verdict("boolean"), {"policy": POLICY})
        assert (result.status, len(model.requests)) == (status, 1)


def _answered(answer: object, step: Step, values: Mapping[str, Value]) -> object:
    return answer


def test_a_draft_in_a_loop_is_judged_under_the_names_of_its_round() -> None:
    """Working first finds the document of the round as well."""
    model = FunctionModel(
        lambda step, request: reply("true", f'"{CLAUSE}"' if "Working:" in request.messages[-1].content else "")
    )
    result = Guard(model, segment=1, repair=Ladder([Draft()])).run(LOOPED, {"rules": [POLICY, CLAUSE]})
    assert (result.status, dict(result.assisted)) == ("checked", {"rephrased": 2})


WHOLE = [
    "The parcel came too late.", "Was it open? Ann says so.", "- mugs were broken: three of them", "## 4. Broken goods",
    "| broken mugs | no | 14 |", "(b) Goods that are broken\nare replaced (at once).", "\u201cAll is well.\u201d",
]  # fmt: skip


def by_passage(document: str, passage: str) -> str:
    model = FunctionModel(lambda step, request: reply(passage if step.id == "passage" else "true"))
    return Guard(model, repair=Ladder([Passage()])).run(verdict("boolean"), {"policy": document}).status


@all_rows("seed", range(8))
def test_a_passage_is_sentences_or_lines_and_none_is_cut(seed: int) -> None:
    """Whole sentences, lines and items decide a step; without its first or last words none does, wherever it stands."""
    chance = random.Random(seed)
    written = chance.sample(WHOLE, len(WHOLE))
    document = "\n\n".join(written)
    for passage in written:
        assert by_passage(document, passage) == "checked", passage
        words = re.findall(r"\S*[^\W\d_]{2}\S*", passage)
        first = chance.randrange(1, len(words) - 1) if len(words) > 4 else 1
        for cut in (words[first:], words[:-1]):
            part = passage[passage.index(cut[0]) : passage.rindex(cut[-1]) + len(cut[-1])]
            if len(cut) > 2 and not re.search(r"[.?]$", words[first - 1]):
                assert by_passage(document, part) == "abstained", part


@all_rows(
    "document",
    ["Nobody says that\nthe goods arrived damaged.", "The seller wrote: \"The goods arrived damaged.\" He was wrong.",
     "Not covered: the goods arrived damaged", "The goods arrived damaged, says nobody.",
     "| the goods arrived damaged | no |",
     "Mr. No does not say the goods arrived damaged.", "\u6ca1\u6709\u4eba\u8bf4 the goods arrived damaged\u3002",
     "~~The goods arrived damaged.~~ They arrived well."],
)  # fmt: skip
def test_what_turns_a_passage_is_not_cut_off(document: str) -> None:
    """A denial, a condition, a label or the rest of a row stands in the passage, or the passage decides nothing."""
    assert by_passage(document, "the goods arrived damaged") == "abstained"


@all_rows(
    "lines",
    [["status: broken by rain", "note: in the box"], ["mug,broken,two of them", "cup,whole,three of them"],
     ["order.state = broken by rain", "total = 5"], ["a) mugs were broken", "b) cups were whole"],
     ["- mugs were broken", "- cups were whole"], ["mugs were broken.", "cups were whole."]],
)  # fmt: skip
def test_a_line_of_its_own_may_begin_with_a_small_letter(lines: list[str]) -> None:
    """Labels, rows of values and items go on no line above, and nothing goes on a line that ended with a sign."""
    assert by_passage("\n".join(["Notes", "", *lines]), lines[0]) == "checked"


@all_rows(
    "document, status",
    [("It is false that the goods arrived damaged.", "abstained"), ("If the goods arrived damaged, call.", "abstained"),
     ("Ann did not say the goods\narrived damaged.", "abstained"), ("Customer: the goods arrived damaged.", "checked"),
     ("Not covered: the goods arrived damaged.", "abstained"), ("Ann says: the goods arrived damaged.", "abstained"),
     ("It was not late, but the goods arrived damaged.", "checked"),
     ("If the goods arrived damaged, call. On 5 May the goods arrived damaged.", "checked")],
)  # fmt: skip
def test_a_quotation_is_not_cut_from_what_denies_it(document: str, status: str) -> None:
    """Quoted is what is claimed somewhere, and not only behind words of its sentence that deny or condition it."""
    with ScriptedBackend({"ok": reply("true", '"the goods arrived damaged"')}) as model:
        assert Guard(model, repair=0).run(verdict("boolean"), {"policy": document}).status == status
