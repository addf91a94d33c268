"""Prompts: what a model is shown, and that nothing a checker knows is in it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from harness import P2, P6, Hand, reply
from tables import all_rows

from stepguard import Claim, Guard, Input, Procedure, Step, Verdict
from stepguard.backends import Message, Request
from stepguard.engine.actions import Ask, CheckClaims, Checked, Commit, Replied
from stepguard.engine.prompts import Prompter, Wording, describe_steps
from stepguard.errors import ConfigError
from stepguard.evaluation.families import Arithmetic
from stepguard.language.evaluation import evaluate, substitute
from stepguard.language.expression_parsing import parse_expression
from stepguard.language.values import Value
from stepguard.repair.rungs import FIRST, Question, Rung
from stepguard.replies.formats import EquationFormat
from stepguard.testing import ScriptedBackend, SimulatedModel, Slips

FORMAT = EquationFormat()
WORDINGS: Sequence[Wording] = ("brief", "full")


class Recording:
    """Keeps every request on its way to another backend."""

    def __init__(self, inner: SimulatedModel) -> None:
        self.requests: list[Request] = []
        self.texts: list[str] = []
        self._inner = inner

    def complete(self, request: Request) -> object:
        completion = self._inner.complete(request)
        self.requests.append(request)
        self.texts.append(completion.text or "")
        return completion


# Content


@pytest.mark.parametrize(
    "kind", ["date", "time", "duration", "period", "percent(1)", "integer", "money(EUR)", "quantity(kg)"]
)
@pytest.mark.parametrize("rung", [FIRST, Question()])
def test_the_form_of_a_value_is_told_without_a_value(kind: str, rung: Rung) -> None:
    """What a value is to look like is said in words: an example of it would be given as the answer."""
    if kind.startswith("quantity"):
        pytest.importorskip("pint")
    step = Step("found", instruction="Read it in the letter.", reads=["letter"], type=kind)
    prompter = Prompter(Procedure([step], inputs=[Input("letter", "text")]), EquationFormat(decimal=","))
    values = {"letter": "No value stands here."}
    messages = prompter.messages([step], values) if rung.plain else prompter.question(step, values)
    told = re.sub("rounded to [12] decimal", "", f"{messages[0].content}{messages[-1].content}")
    assert not re.search("[0-9]", told)


def test_a_prompt_holds_only_what_its_segment_needs() -> None:
    """A request shows its own steps and the values they read: no later step, no other value."""
    hand = Hand(Guard(lambda messages: "", segment=2).start(P6, {"x": 1}))
    hand.answer({"t1": "1 + 1 = 2", "t2": "2 * 2 = 4"})
    live = hand.asks[0].request.messages[-1].content
    assert live == "Steps:\nt3 = 4 - 3\nt4 = t3 + 2"


def test_the_prefix_is_the_same_for_the_whole_run() -> None:
    """All messages but the last are byte-identical in every request of a run that asks plainly, retries included."""
    backend = Recording(SimulatedModel(3, slips=replace(Slips.all(0.05), refused=0.0, empty=0.0)))
    task = Arithmetic().make(3, 30)
    Guard(backend, segment=5, repair=4, seed=1).run(task.procedure, task.inputs)
    assert len(backend.requests) > 6
    assert len({request.messages[:-1] for request in backend.requests}) == 1


@pytest.mark.parametrize("attempt", range(3))
def test_the_size_of_a_request_does_not_grow(attempt: int) -> None:
    """Long bad replies make no request longer."""
    backend = ScriptedBackend(*[f"{number}{'x' * 3_000}" for number in range(5)])
    Guard(backend, segment=1, repair=4).run(P2)
    sizes = [sum(len(message.content) for message in request.messages) for request in backend.requests]
    assert len(sizes) == 5
    assert len(set(sizes)) == 1


SHOWN: list[tuple[Value, str]] = [
    (0, "v = 0"),
    (-3, "v = -3"),
    (Fraction(1, 3), "v = 1/3"),
    (Fraction(1, 4), "v = 0.25"),
    (Decimal("1.50"), "v = 1.50"),
    (False, "v = false"),
    ("", 'v = ""'),
    ("two\nlines", 'v = "two\\nlines"'),
    ("caf\u00e9 {x} \\frac", 'v = "caf\u00e9 {x} \\\\frac"'),
    (9007199254740993, "v = 9007199254740993"),
]


@all_rows("value, line", SHOWN)
def test_values_are_shown_exactly(value: Value, line: str) -> None:
    """A value stands in a prompt with every digit; text is quoted, so that it can never be read as another line."""
    text = describe_steps([Step("s", instruction="Look at v.", reads=["v"])], {"v": value})
    assert text == f"Values:\n{line}\nSteps:\ns: Look at v.   ({line})"


def test_roundings_are_said() -> None:
    """A step that declares places says them, and a mode that is not the usual one."""
    steps = [Step("a", "1 / 3", type="decimal(2)"), Step("b", "1 / 3", type="decimal(0, half_even)")]
    assert describe_steps(steps, {}) == (
        "Values:\n(none)\nSteps:\na = 1 / 3, rounded to 2 decimal places\n"
        "b = 1 / 3, rounded to 0 decimal places (half even)"
    )


@all_rows(
    "formula, values, text",
    [
        ("a - b", {"a": -96, "b": -106}, "-96 - (-106)"),
        ("a / b - c", {"a": 58, "b": Fraction(8, 7), "c": 28}, "58 / (8/7) - 28"),
        ("a * b", {"a": Fraction(1, 3), "b": Fraction(1, 7)}, "1/3 * (1/7)"),
        ("a^2", {"a": Fraction(1, 3)}, "(1/3)^2"),
        ("-a", {"a": -3}, "-(-3)"),
        ("a - -b", {"a": 1, "b": 2}, "1 - (-2)"),
        ("min(a, b) < a", {"a": -1, "b": Fraction(1, 2)}, "min(-1, 0.5) < -1"),
    ],
)
def test_numbers_are_filled_in_as_a_careful_person_would(formula: str, values: Mapping[str, Value], text: str) -> None:
    """A formula with its numbers filled in keeps its meaning, with brackets where they are needed."""
    tree = parse_expression(formula)
    assert substitute(tree, values) == text
    assert evaluate(parse_expression(text), {}) == evaluate(tree, values)


def test_the_demonstration_shows_the_kinds_of_the_procedure() -> None:
    """One step of each kind is shown with a right answer, and none of a kind that the model is not asked."""
    words = Procedure([Step("w", instruction="Name it.")])
    prefix = Prompter(words, FORMAT).prefix
    assert [message.role for message in prefix] == ["system", "user", "assistant"]
    assert "country" in prefix[1].content
    assert "s1" not in prefix[1].content
    by_code = Procedure([Step("a", "1 / 3", type="decimal(2)", performer="code"), Step("b", "1 + 1")])
    assert "decimal" not in Prompter(by_code, FORMAT).prefix[1].content
    by_model = Procedure([Step("a", "1 / 3", type="decimal(2)"), Step("b", "1 < 2")])
    shown = Prompter(by_model, FORMAT).prefix[1].content
    assert "rounded to 2 decimal places" in shown
    assert "s2 > b" in shown


def test_the_demonstration_is_right() -> None:
    """Read as a reply to its own steps, the demonstration passes every check."""
    kinds = [
        Step("a", "1 + 1"),
        Step("b", "1 / 3", type="decimal(2)"),
        Step("c", "1 < 2"),
        Step("d", "1 + 2", show_work=False),
        Step("w", instruction="Name it."),
    ]
    _, question, answer = Prompter(Procedure(kinds), FORMAT).prefix
    formulas = re.findall(r"^(s\d) = ([^,(\n]+?)(?:, rounded to (\d).*?)?(?:   \(.*)?$", question.content, re.MULTILINE)
    steps = [
        Step(name, text, type=f"decimal({places})" if places else None, show_work=name != "s6")
        for name, text, places in formulas
    ]
    assert len(steps) == 6
    procedure = Procedure(
        [*steps, Step("s7", instruction="Name the country in c.", reads=["c"])], inputs=["a", "b", Input("c", "text")]
    )
    run = Guard(ScriptedBackend(answer.content), repair=0)
    result = run.run(procedure, {"a": -14, "b": 36, "c": "Lyon, France"})
    assert result.unverified == ("s7",), result.problem
    assert result.values["s7"] == "France"


def test_a_reply_format_need_not_be_hashable() -> None:
    """A user's reply format may be any object."""

    class Plain(EquationFormat):
        __hash__ = None  # type: ignore[assignment]

    with ScriptedBackend({"a": "2 * 3 = 6", "b": "6 + 4 = 10"}) as backend:
        assert Guard(backend, reply_format=Plain()).run(P2).status == "verified"


def test_whole_numbers_are_asked_with_less() -> None:
    """Little is said of the form of the reply, and the values stand in the formulas themselves."""
    asked: dict[Wording, Request] = {}
    procedure = Procedure.parse("inputs: x\nt = 2 * (x + 1)\nu = t - x")
    for wording in WORDINGS:
        model = Recording(SimulatedModel(slips=Slips.none()))
        assert Guard(model, prompts=wording).run(procedure, {"x": -5}).verified
        (asked[wording],) = model.requests
    brief, full = ([message.content for message in asked[wording].messages] for wording in WORDINGS)
    assert len("".join(brief)) < len("".join(full)) / 2
    assert "in the example" in brief[0]
    assert full[0].endswith(FORMAT.instructions)
    assert brief[2] == full[2] == '{"s1": "-14 + 36 = 22", "s2": "22 * 3 = 66", "s3": "-14 - 22 = -36"}'
    assert brief[3] == "Steps:\nt = 2 * (-5 + 1)\nu = t - (-5)"
    assert full[3] == "Values:\nx = -5\nSteps:\nt = 2 * (x + 1)   (x = -5)\nu = t - x   (x = -5)"


class Arrows(EquationFormat):
    """A reply format of somebody's own."""

    instructions = "Write arrows."


@all_rows(
    "text",
    [
        "t = x / 2",
        "t = x * 1.5",
        "t = x * 10%",
        "t: decimal(2) = x * 2",
        "t: money(EUR) = x * 2",
        "t = max(x, 2)",
        "t = x ^ 2",
        "t = x > 2",
        't = x + 1  "Add one."',
        't: number = "Add one to x."',
        "t = x + 1\nu = t / 3",
        "if x > 2:\n    t = x + 1\nelse:\n    t = x + 2",
    ],
)
def test_all_else_is_asked_in_full(text: str) -> None:
    """A procedure that has another kind of step, or that branches, is asked as it would be in full, byte for byte."""
    procedure = Procedure.parse(f"inputs: x\n{text}")
    assert _first_asked(procedure, "brief") == _first_asked(procedure, "full")


def test_other_numbers_and_formats_are_asked_in_full() -> None:
    """What is read may be no whole number, which shows when it is known; a format of your own says what it wants."""
    procedure = Procedure.parse("inputs: x\nt = x + 1\nu = 2 + 3")
    for inputs, options in (({"x": "0.5"}, {}), ({"x": 1}, {"reply_format": Arrows()})):
        brief, full = (_first_asked(procedure, wording, inputs, **options) for wording in WORDINGS)
        assert brief == full


def test_a_wording_that_there_is_not_is_refused() -> None:
    """The error says which there are."""
    with pytest.raises(ConfigError, match="prompts is 'brief' or 'full', not 'terse'"):
        Guard(SimulatedModel(), prompts="terse")  # type: ignore[arg-type]


# No leak


def _numbers(text: str) -> set[Fraction]:
    return {Fraction(found) for found in re.findall(r"\d+(?:\.\d+)?(?:e\d+)?", text)}


def test_no_request_after_a_wrong_value_holds_the_right_one() -> None:
    """The number that was expected stands in no request in any notation, unless a value or the step says it."""
    procedure = Procedure([Step("a", "2 * 3"), Step("b", "a + 4")])
    with ScriptedBackend({"a": "2 * 3 = 6", "b": "6 + 4 = 12"}, {"b": "6 + 4 = 13"}, {"b": "6 + 4 = 10"}) as backend:
        result = Guard(backend, repair=2).run(procedure)
    assert result.status == "verified"
    for request in backend.requests[1:]:
        live = request.messages[-1].content
        assert _numbers(live.replace("b = 6", "")) == {Fraction(4)}
    assert backend.requests[1].messages == backend.requests[2].messages


def test_no_request_holds_a_rejected_reply_or_a_reason() -> None:
    """Over many runs with slips of every kind, no reply and no reason of a verdict reaches a later request."""
    rejected = 0
    for seed in range(30):
        backend = Recording(SimulatedModel(seed, slips=Slips.all(0.06)))
        task = Arithmetic().make(seed, 8)
        result = Guard(backend, segment=4, seed=seed).run(task.procedure, task.inputs)
        for number, attempt in enumerate(result.attempts):
            for request in backend.requests[number + 1 :]:
                live = request.messages[-1].content
                if attempt.outcome != "accepted" and "\nWorking:\n" not in live:  # a draft is no reply
                    rejected += 1
                    assert attempt.text is None or not attempt.text or attempt.text not in live
                    for entry in re.findall(r'": "([^"]{4,})"', attempt.text or ""):
                        assert entry not in live
                for deviation in attempt.deviations:
                    assert not deviation.reason or deviation.reason not in live
    assert rejected > 50


def _prompts(guard: Guard, procedure: Procedure, replies: list[str], change: Callable[[Checked], Checked]) -> list[str]:
    """Every message of every request of a run with these replies, its judgements changed on their way."""
    run = guard.start(procedure, {"x": 3})
    seen: list[str] = []
    left = iter(replies)
    while not run.done:
        for action in run.actions():
            if isinstance(action, Ask):
                request = action.request
                seen += [f"{message.role}: {message.content}" for message in request.messages]
                seen.append(f"{[step.id for step in request.steps]} {request.temperature} {request.attempt}")
                run.send(Replied(action.id, reply(next(left))))
            elif isinstance(action, CheckClaims):
                event = run.perform(action)
                assert isinstance(event, Checked)
                run.send(change(event))
            else:
                assert isinstance(action, Commit)
                run.send(run.perform(action))
    return [*seen, run.result().status]


def _hidden(expected: int) -> Callable[[Step, Mapping[str, Value], Claim], Verdict]:
    """A check that knows a number that nobody else does, and says it in its reasons."""

    def check(step: Step, values: Mapping[str, Value], claim: Claim) -> Verdict:
        if claim.value == "7":
            return Verdict("pass", "hidden", reason=f"{expected} or 7")
        return Verdict("fail", "hidden", "wrong_value", f"expected {expected}, found {claim.value}")

    return check


def _same(event: Checked) -> Checked:
    return event


def _told(event: Checked) -> Checked:
    judgements = tuple(
        replace(
            judgement,
            verdicts=tuple(replace(verdict, reason="it is 424242, of course") for verdict in judgement.verdicts),
        )
        for judgement in event.judgements
    )
    return replace(event, judgements=judgements)


REPLIES = [
    '{"n": {"work": "", "value": "12"}, "m": "12 + 1 = 13"}',
    "nope",
    '{"n": {"work": "", "value": "7"}, "m": "7 + 1 = 9"}',
    '{"m": "7 + 1 = 900"}',
    '{"m": "7 + 1 = 8"}',
]


def test_prompts_do_not_depend_on_what_a_checker_knows() -> None:
    """With the same verdicts, other expected values and other reasons leave every prompt byte-identical."""
    seen: set[tuple[str, ...]] = set()
    for expected in (10, 99_999, -77_123):
        for change in (_same, _told):
            procedure = Procedure(
                [
                    Step("n", instruction="Count them.", type="integer", reads=["x"], checks=[_hidden(expected)]),
                    Step("m", "n + 1"),
                ],
                inputs=["x"],
            )
            prompts = _prompts(Guard(lambda messages: "", seed=5), procedure, list(REPLIES), change)
            assert prompts[-1] == "checked"
            assert not any(str(expected) in prompt or "424242" in prompt for prompt in prompts)
            seen.add(tuple(prompts))
    assert len(seen) == 1


def test_prompts_do_not_depend_on_what_was_wrong() -> None:
    """With the same kinds of deviation, other wrong values leave every prompt byte-identical."""
    seen: set[tuple[str, ...]] = set()
    for wrong in (12, 13, 14):
        procedure = Procedure([Step("n", "x * 3"), Step("m", "n + 1")], inputs=["x"])
        replies = [f'{{"n": "3 * 3 = {wrong}", "m": "1"}}', f'{{"n": "3 * 3 = {wrong + 5}"}}', '{"n": "3 * 3 = 9"}']
        replies.append('{"m": "9 + 1 = 10"}')
        seen.add(tuple(_prompts(Guard(lambda messages: "", seed=5), procedure, replies, _same)))
    assert len(seen) == 1


def test_messages_are_plain_chat_messages() -> None:
    """A request gives its messages as OpenAI-style dictionaries, the user's last."""
    run = Guard(lambda messages: "").start(P2)
    (ask,) = run.actions()
    assert isinstance(ask, Ask)
    chat = ask.request.chat()
    assert [message["role"] for message in chat] == ["system", "user", "assistant", "user"]
    assert ask.request.messages[-1] == Message("user", chat[-1]["content"])


def _first_asked(
    procedure: Procedure, wording: Wording, inputs: Mapping[str, object] = {"x": 4}, **options: Any
) -> object:
    """The messages of the first request of a run."""
    model = Recording(SimulatedModel(slips=Slips.none()))
    Guard(model, prompts=wording, **options).run(procedure, dict(inputs))
    return model.requests[0].messages
