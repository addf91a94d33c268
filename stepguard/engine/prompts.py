"""Writes the messages that ask a segment, from its steps and the verified values.

Every prompt that asks steps as they stand has a prefix that is byte-identical for a whole run (instructions and one
fitting demonstration), so that providers' prompt caches hit, and then only what this segment needs: the documents and
values its steps read, and its steps with their operands restated. Sums and products of whole numbers are asked with
less: see `Wording`. Plain questions have a prefix of their own, drafts another. The model never sees a step that is
neither asked nor needed to understand one that is, a rejected reply, or anything a checker knows: a prompt is a
function of the steps, the verified state, the way of asking and, behind a draft, of that.
"""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Final, Literal

from stepguard.backends.base import Message
from stepguard.engine.control.sources import in_numbers
from stepguard.engine.demonstrations import (
    EXAMPLE_VALUES,
    PLAIN_KINDS,
    DemonstratedStep,
    answers,
    authored,
    demonstrated_kind,
    example_steps,
    fitting_example,
    own_demonstration,
)
from stepguard.engine.shown_values import ShownValues, documents_in
from stepguard.engine.value_forms import value_form
from stepguard.errors import ProcedureError
from stepguard.language.evaluation import substitute
from stepguard.language.expressions import TRUTHS, Chain, Expression, Name, Negate, Number
from stepguard.language.values import Value
from stepguard.procedure.examples import Example
from stepguard.procedure.procedure import Procedure
from stepguard.procedure.steps import Step
from stepguard.replies.formats import EquationFormat, ReplyFormat

Wording = Literal["brief", "full"]
"""How prompts are worded: ``brief`` where a procedure has nothing but sums and products of whole numbers (little is
said of the form of the reply, and values stand in the formulas themselves), otherwise as ``full`` ones are: with the
form of every kind of step, and with the values in a list above the steps and beside each."""

_SYSTEM: Final = (
    "You carry out a part of a longer procedure, exactly as written: every step, in order, with the values given. "
    "Do not skip, add, reorder, simplify or correct steps."
)
_BRIEF: Final = (
    Message(
        "system",
        "Carry out each step exactly as written.\nAnswer with one JSON object as in the example: for each step its "
        "formula with the numbers filled in, an equals sign, the result.",
    ),
    Message("user", "Steps:\ns1 = -14 + 36\ns2 = s1 * 3\ns3 = -14 - s1"),
    Message("assistant", '{"s1": "-14 + 36 = 22", "s2": "22 * 3 = 66", "s3": "-14 - 22 = -36"}'),
)
"""What stands before steps of whole numbers. Without blanks in the example replies are shorter and more often wrong."""
_QUESTIONER: Final = "Answer the question. The key of the answer is given with it."
_DRAFTER: Final = (
    "Work out what is asked, in your own words and with every calculation written out. Do nothing that is not asked."
)
_MAX_DRAFT: Final = 4000
_NO_ORDER: Final[Mapping[str, int]] = {}
_MOST_EXAMPLES: Final = 4
_SAMPLE: Final = 50
"""How many steps of a procedure decide which kinds its demonstration shows."""


class Prompter:
    """Writes the prompts of one run.

    Args:
        procedure: decides the demonstration: one step of each kind the procedure has.
        wording: see `Wording`.
    """

    def __init__(self, procedure: Procedure, reply_format: ReplyFormat, *, wording: Wording = "brief") -> None:
        asked = [in_numbers(step) for step in _sample(procedure) if step.performer == "model"]
        kinds = frozenset(map(demonstrated_kind, asked))
        self._reply_format = reply_format
        # What a step of a branching procedure is asked as shows when it comes up: a sum of dates is no formula then.
        self._common = procedure.straight and kinds <= PLAIN_KINDS and not any(step.examples for step in asked)
        # A format of your own says itself what it wants.
        brief = wording == "brief" and self._common and type(reply_format) is EquationFormat
        self._brief = brief and all(map(_in_whole_numbers, asked))
        self.prefix: Final[tuple[Message, ...]] = self._prefix_of(kinds)
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
            values: at least what they read.
            before: steps before them whose text leads into theirs.
            draft: the model's own working, which the reply is to be made from.
        """
        if self._brief and draft is None and not before:
            lines = [line for step in steps if (line := _filled_in(step, values)) is not None]
            if len(lines) == len(steps):
                return (*_BRIEF, Message("user", "\n".join(("Steps:", *lines))))
        text = self._described(steps, values, before)
        if draft is not None:
            # Lone surrogates could not be sent.
            text += f"\nWorking:\n{draft[:_MAX_DRAFT].strip().encode('utf-8', 'replace').decode()}"
        return (*(self.prefix if self._common else self._own_prefix(steps, values)), Message("user", text))

    def _prefix_of(self, kinds: frozenset[str]) -> tuple[Message, ...]:
        form = self._reply_format
        if isinstance(form, Hashable):
            return _prefix(kinds, form)
        return _build_prefix(kinds, form)

    def _own_prefix(self, steps: Sequence[Step], values: Mapping[str, Value]) -> tuple[Message, ...]:
        """What stands before steps where demonstrations of every kind in a row would be too many: those of their own.

        With one of each kind the last one is copied, whatever is asked.
        """
        chosen = {step.id: example for step in steps if (example := fitting_example(step, values)) is not None}
        kinds = frozenset(demonstrated_kind(step) for step in steps if step.id not in chosen)
        prefix = list(self._prefix_of(kinds)) if kinds else [_system(self._reply_format)]
        shown: list[Example] = []
        for step in steps:
            example = chosen.get(step.id)
            if example is not None and example not in shown and len(shown) < _MOST_EXAMPLES:
                shown.append(example)
                demonstration, state = authored(step, example, len(shown))
                prefix += _exchange([demonstration], state, self._reply_format)
        return tuple(prefix)

    def drafting(
        self, steps: Sequence[Step], values: Mapping[str, Value], *, before: Sequence[Step] = ()
    ) -> tuple[Message, ...]:
        """The messages that ask for working in free text."""
        return (Message("system", _DRAFTER), Message("user", self._described(steps, values, before)))

    def question(self, step: Step, values: Mapping[str, Value], *, before: Sequence[Step] = ()) -> tuple[Message, ...]:
        """The messages that ask one step as a plain question."""
        system = _questioner(self._reply_format, step, values)
        done = f"Done before:{_done_lines(before)}\n" if before else ""
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


def _filled_in(step: Step, values: Mapping[str, Value]) -> str | None:
    """A step with its values in its formula, None where it is not in whole numbers."""
    tree = step.expression
    if tree is None or not _in_whole_numbers(step):
        return None
    filled: dict[str, Value] = {}
    for name in step.reads:
        filled[name] = value = values.get(name, "")  # what is not known yet stays a name, as text does
        if type(value) is not int and name in values:
            return None
    return f"{step.id} = {substitute(tree, filled)}"


def _in_whole_numbers(step: Step) -> bool:
    """Whether a step is a formula and nothing else, which adds, subtracts and multiplies whole numbers."""
    return (
        step.expression is not None
        and not (step.instruction or step.examples)
        and step.show_work
        and step.type.kind in ("number", "integer")
        and not value_form(step)
        and _is_whole(step.expression)
    )


def _is_whole(tree: Expression) -> bool:
    if type(tree) is Chain:
        return "/" not in tree.operators and all(map(_is_whole, tree.operands))
    if type(tree) is Number:
        return type(tree.value) is int and not tree.percent
    return type(tree) is Name or (type(tree) is Negate and _is_whole(tree.operand))


def _sample(procedure: Procedure) -> Iterator[Step]:
    for index in range(min(len(procedure), _SAMPLE)):
        try:
            yield procedure.steps[index]
        except ProcedureError:  # a lazy procedure is wrong there; the run says so when it comes to that step
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
        before: steps that are done, and whose text leads into that of the first one.
        order: the place of each input of the procedure, so that documents stand in the same order in every request.
    """
    shown = ShownValues(steps, values, order)
    done = f"Done before:{_done_lines(before)}\n" if before else ""
    lines = "\n".join(_line(step, shown.beside(step.reads)) for step in steps)
    return f"{shown.documents}Values:\n{shown.listed}\n{done}Steps:\n{lines}"


def _done_lines(before: Sequence[Step]) -> str:
    return "".join(f"\n{_line(step, [])}" for step in before)


def _line(step: Step, operands: list[str]) -> str:
    where = f"   ({', '.join(operands)})" if operands else ""
    form = value_form(step)
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
    tree, form = step.expression, value_form(step)
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


def _build_prefix(kinds: frozenset[str], reply_format: ReplyFormat) -> tuple[Message, ...]:
    examples = example_steps(kinds)
    read = {name for each in examples for name in each.step.reads}
    state: dict[str, Value] = {name: value for name, value in EXAMPLE_VALUES.items() if name in read}
    return (_system(reply_format), *_exchange(examples, state, reply_format))


def _system(reply_format: ReplyFormat) -> Message:
    return Message("system", f"{_SYSTEM}\n{reply_format.instructions}")


def _exchange(
    examples: Sequence[DemonstratedStep], state: dict[str, Value], reply_format: ReplyFormat
) -> tuple[Message, ...]:
    """A question and its answer, as the conversation before this one."""
    question = describe_steps([each.step for each in examples], state)
    return Message("user", question), Message("assistant", answers(examples, state, reply_format))


def _questioner(reply_format: ReplyFormat, step: Step, values: Mapping[str, Value]) -> tuple[Message, ...]:
    """What stands before a plain question: what is wanted, and an example."""
    state: Mapping[str, Value] = EXAMPLE_VALUES
    if step.expression is not None:
        asked, answer = Step("q1", "b - a"), ("36 - (-14) = 36 + 14", "50")
    else:
        example = fitting_example(step, values)
        shown = own_demonstration(demonstrated_kind(step))
        if example is not None:
            shown, state = authored(step, example, 1)
        asked = Step("q1", instruction=shown.step.instruction, reads=shown.step.reads, type=shown.step.type)
        answer = shown.work, shown.value
    return (
        Message("system", f"{_QUESTIONER}\n{reply_format.instructions}"),
        Message("user", _question(asked, state, ShownValues([asked], state, _NO_ORDER))),
        Message("assistant", json.dumps({asked.id: reply_format.answer(asked, *answer)})),
    )


_prefix = lru_cache(maxsize=64)(_build_prefix)
