"""From a segment and the verified values to the messages that ask it.

Every prompt that asks steps as they stand has a prefix that is byte-identical for a whole run (instructions and one
fitting demonstration), so that providers' prompt caches hit, and then only what this segment needs: the documents and
values its steps read, and its steps with their operands restated. Plain questions have a prefix of their own, drafts
another. The model never sees a step that is neither asked nor needed to understand one that is, a rejected reply, or
anything a checker knows: a prompt is a function of the steps, the verified state, the way of asking and, behind a
draft, of that.
"""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Final

from stepguard.backends.base import Message
from stepguard.engine.shown_values import ShownValues, documents_in, quoted
from stepguard.errors import ProcedureError
from stepguard.language.evaluation import evaluate, substitute
from stepguard.language.expressions import TRUTHS, Chain, Expression, Name, Negate, Number
from stepguard.language.values import Value
from stepguard.procedure.procedure import Procedure
from stepguard.procedure.steps import Step
from stepguard.replies.formats import ReplyFormat

__all__ = ["EXAMPLE_VALUES", "Prompter", "describe_steps", "example_steps"]

_INTRODUCTION: Final = (
    "You carry out a part of a longer procedure, exactly as written: every step, in order, with the values given. "
    "Do not skip, add, reorder, simplify or correct steps."
)
_QUESTIONER: Final = "Answer the question. The key of the answer is given with it."
_DRAFTER: Final = (
    "Work out what is asked, in your own words and with every calculation written out. Do nothing that is not asked."
)
_MAX_DRAFT: Final = 4000
_NO_ORDER: Final[Mapping[str, int]] = {}
_SAMPLE: Final = 50
"""How many steps of a procedure decide which kinds its demonstration shows."""


class Prompter:
    """Writes the prompts of one run.

    Args:
        procedure: decides the demonstration: one step of each kind the procedure has.
        reply_format: how replies are structured.
    """

    def __init__(self, procedure: Procedure, reply_format: ReplyFormat) -> None:
        kinds = frozenset(_kind(step) for step in _sample(procedure) if step.performer == "model")
        self.prefix: Final[tuple[Message, ...]] = (
            _prefix(kinds, reply_format) if isinstance(reply_format, Hashable) else _build_prefix(kinds, reply_format)
        )
        self._reply_format = reply_format
        self._order = {one.name: place for place, one in enumerate(procedure.inputs)}

    def messages(
        self,
        steps: Sequence[Step],
        values: Mapping[str, Value],
        *,
        before: Sequence[Step] = (),
        draft: str | None = None,
    ) -> tuple[Message, ...]:
        """The messages that ask `steps`.

        Args:
            steps: the steps.
            values: at least what they read.
            before: steps before them whose text leads into theirs.
            draft: the model's own working, which the reply is to be made from.
        """
        text = self._described(steps, values, before)
        if draft is not None:
            # Lone surrogates could not be sent.
            text += f"\nWorking:\n{draft[:_MAX_DRAFT].strip().encode('utf-8', 'replace').decode()}"
        return (*self.prefix, Message("user", text))

    def drafting(
        self, steps: Sequence[Step], values: Mapping[str, Value], *, before: Sequence[Step] = ()
    ) -> tuple[Message, ...]:
        """The messages that ask for working in free text."""
        return (Message("system", _DRAFTER), Message("user", self._described(steps, values, before)))

    def question(self, step: Step, values: Mapping[str, Value], *, before: Sequence[Step] = ()) -> tuple[Message, ...]:
        """The messages that ask one step as a plain question."""
        system = _questioner(self._reply_format, step.expression is None)
        done = f"Done before:{_done(before)}\n" if before else ""
        shown = ShownValues([step], values, self._order)
        return (*system, Message("user", f"{shown.documents}{done}{_question(step, values, shown)}"))

    def fixed(self, messages: Sequence[Message]) -> float:
        """The share of the characters of some messages that does not grow with the number of steps.

        That is what every prompt of the run begins with, and the documents.
        """
        sizes = [len(message.content) for message in messages]
        return (sum(sizes[:-1]) + documents_in(messages[-1].content)) / sum(sizes)

    def _described(self, steps: Sequence[Step], values: Mapping[str, Value], before: Sequence[Step]) -> str:
        return describe_steps(steps, values, before=before, order=self._order)


def _sample(procedure: Procedure) -> Iterator[Step]:
    for index in range(min(len(procedure), _SAMPLE)):
        try:
            yield procedure.steps[index]
        except ProcedureError:  # a lazy procedure is wrong there; whoever reaches that step says so
            return


def describe_steps(
    steps: Sequence[Step],
    values: Mapping[str, Value],
    *,
    before: Sequence[Step] = (),
    order: Mapping[str, int] = _NO_ORDER,
) -> str:
    """The live part of a prompt: documents and values these steps read, then the steps with their operands restated.

    Args:
        steps: the steps.
        values: what they read.
        before: steps that are done, and whose text leads into that of the first one.
        order: the place of each input of the procedure, so that documents stand in the same order in every request.
    """
    shown = ShownValues(steps, values, order)
    done = f"\nDone before:{_done(before)}" if before else ""
    lines = "\n".join(_line(step, shown.beside(step.reads)) for step in steps)
    return f"{shown.documents}Values:\n{shown.listed}{done}\nSteps:\n{lines}"


def _done(before: Sequence[Step]) -> str:
    return "".join(f"\n{_line(step, [])}" for step in before)


def _line(step: Step, operands: list[str]) -> str:
    where = f"   ({', '.join(operands)})" if operands else ""
    form = _form(step)
    if step.expression is None:
        return f"{step.id}: {step.instruction}{f' ({form})' if form else ''}{where}"
    words = f"{step.instruction}: " if step.instruction else ""
    return f"{words}{step.id} = {step.formula}{f', {form}' if form else ''}{where}"


_IN_WORDS: Final = {
    "+": "Add {right} to {left}.",
    "-": "Subtract {right} from {left}.",
    "*": "Multiply {left} by {right}.",
    "/": "Divide {left} by {right}.",
}


def _question(step: Step, values: Mapping[str, Value], shown: ShownValues) -> str:
    """A step as a question in words, with its operands; documents stand before it."""
    tree, form = step.expression, _form(step)
    if tree is None:
        question = "\n".join((f"{step.instruction}{f' ({form})' if form else ''}", *shown.beside(step.reads)))
    else:
        worked, leaves = substitute(tree, values), _leaves(tree, values)
        if leaves is not None:
            assert isinstance(tree, Chain)
            question = _IN_WORDS[tree.operators[0]].format(left=leaves[0], right=leaves[1])
        else:
            question = f"Is it true that {worked}?" if isinstance(tree, TRUTHS) else f"How much is {worked}?"
        question += f" Give the result {form}." if form else ""
    return f"{question}\nKey: {step.id}"


def _leaves(tree: Expression, values: Mapping[str, Value]) -> list[str] | None:
    """The two numbers of one operation as text, None for any other expression."""
    if not isinstance(tree, Chain) or len(tree.operands) != 2 or tree.operators[0] not in _IN_WORDS:
        return None
    leaves = [substitute(operand, values) for operand in tree.operands if isinstance(operand, Name | Number | Negate)]
    return leaves if len(leaves) == 2 else None


def _form(step: Step) -> str:
    """What the value is to look like, in words; empty where the step says it all."""
    kind, form = step.type, ""
    match kind.kind:
        case "percent":
            form = "as a percentage"
        case "money":
            form = f"in {kind.currency}"
        case "one_of":
            form = f"one of: {', '.join(map(quoted, kind.options))}"
        case "number" if kind.within is not None:
            form = f"at most {kind.within} from the exact value"
        case "number" if step.expression is not None and _divides(step.expression):
            form = "exact (as a fraction where it does not come out)"
        case "integer" if step.expression is None:
            form = "a whole number"
        case "boolean" if step.expression is None:
            form = "true or false"
        case _:
            pass
    if kind.places is not None:
        form += f"{', ' if form else ''}rounded to {kind.places} decimal place{'' if kind.places == 1 else 's'}"
        form += f" ({kind.rounding.replace('_', ' ')})" if kind.rounding not in (None, "half_up") else ""
    return form


def _kind(step: Step) -> str:
    if step.expression is None:
        return "words"
    if not step.show_work:
        return "value"
    kind = step.type
    if kind.kind == "number" and kind.within is None and _divides(step.expression):
        return "fraction"
    if kind.kind in ("percent", "boolean"):
        return kind.kind
    return "formula" if kind.places is None else "decimal"


def _divides(tree: Expression) -> bool:
    if type(tree) is not Chain:
        return False
    return "/" in tree.operators or any(_divides(operand) for operand in tree.operands)


EXAMPLE_VALUES: Final[Mapping[str, Value]] = {"a": -14, "b": 36, "c": "Lyon, France"}
"""What the steps of demonstrations read."""


def example_steps(steps: Iterable[Step]) -> list[tuple[Step, str]]:
    """Steps that demonstrate every kind that is among `steps`, each with its answer where only words describe it.

    They read `EXAMPLE_VALUES` and each other, and nothing of the steps that they stand for.
    """
    return _examples(map(_kind, steps))


def _examples(kinds: Iterable[str]) -> list[tuple[Step, str]]:
    """Demonstration steps, with the answer of those that only words describe."""
    has = frozenset(kinds)
    examples = [(Step("s1", "a + b"), ""), (Step("s2", "s1 * 3"), ""), (Step("s3", "a - s1"), "")]
    if has == {"words"}:
        examples = []
    if "decimal" in has:
        examples.append((Step("s4", "s2 / b", type="decimal(2)"), ""))
    if "fraction" in has:
        examples.append((Step("s8", "a / b"), ""))
    if "percent" in has:
        examples.append((Step("s9", "s1 / b", type="percent(1)"), ""))
    if "boolean" in has:
        examples.append((Step("s5", "s2 > b", type="boolean"), ""))
    if "value" in has:
        examples.append((Step("s6", "b * 2", show_work=False), ""))
    if "words" in has:
        examples.append((Step("s7", instruction="Name the country in c.", reads=["c"]), "France"))
    return examples


def _build_prefix(kinds: frozenset[str], reply_format: ReplyFormat) -> tuple[Message, ...]:
    examples = _examples(kinds)
    steps = [step for step, _ in examples]
    read = {name for step in steps for name in step.reads}
    state: dict[str, Value] = {name: value for name, value in EXAMPLE_VALUES.items() if name in read}
    question = describe_steps(steps, state)
    answer: dict[str, object] = {}
    for step, words in examples:
        if step.expression is None:
            answer[step.id] = reply_format.answer(step, f"c is {EXAMPLE_VALUES['c']}", words)
            continue
        value = step.type.convert(evaluate(step.expression, state))
        answer[step.id] = reply_format.answer(step, substitute(step.expression, state), step.type.write(value))
        state[step.id] = value
    return (
        Message("system", f"{_INTRODUCTION}\n{reply_format.instructions}"),
        Message("user", question),
        Message("assistant", json.dumps(answer)),
    )


def _questioner(reply_format: ReplyFormat, in_words: bool) -> tuple[Message, ...]:
    """What stands before a plain question: what is wanted, and an example."""
    if in_words:
        step = Step("q1", instruction="Name the country in c.", reads=["c"])
        answer = reply_format.answer(step, f"c is {EXAMPLE_VALUES['c']}", "France")
    else:
        step = Step("q1", "b - a")
        answer = reply_format.answer(step, "36 - (-14) = 36 + 14", "50")
    return (
        Message("system", f"{_QUESTIONER}\n{reply_format.instructions}"),
        Message("user", _question(step, EXAMPLE_VALUES, ShownValues([step], EXAMPLE_VALUES, _NO_ORDER))),
        Message("assistant", json.dumps({step.id: answer})),
    )


_prefix = lru_cache(maxsize=64)(_build_prefix)
