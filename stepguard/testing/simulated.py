"""A model that carries out the steps it is asked, and slips as real models do."""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Final, NamedTuple, Self

from stepguard.backends.base import Completion, Request
from stepguard.core.arguments import check_instance, check_mapping
from stepguard.engine.step_kinds import arithmetic_kind, rate_in
from stepguard.language.values import Value, show_value
from stepguard.procedure.steps import Step
from stepguard.replies.formats import EquationFormat
from stepguard.testing.planted import planted_reply
from stepguard.testing.plants import Plant, Plants
from stepguard.testing.slips import Failure, ModelSlips, Slips, draw_failure
from stepguard.testing.working import completion_of, reply_value, work_out, wrong_value

_DEFAULT: Final = Slips()
_NO_TENDENCIES: Final = ModelSlips()
_FORMAT: Final = EquationFormat()


class SimulatedModel:
    """Carries out the steps it is asked, and slips.

    It reads what a request asks (steps and values, the same that the prompt says in words) and never what a checker
    knows. The same request gets the same reply, in whatever order requests come. It tests the guard; it is no
    evidence about any real model.

    Failures can be planted, too, each at its step. A reply with one is right but for that; it is read and judged
    before it is sent (by checks of yours as well), so that the guard will find what was planted. A planted failure
    happens once (or as often as it says), whichever run it happens in: make a new model for each test. As a context
    manager the model asserts on leaving that every planted failure has happened::

        with SimulatedModel(plants=[Plant("t2", "wrong_value", times=2)]) as model:
            result = Guard(model).run(procedure, {"x": 12, "y": 7})

    Args:
        seed: decides every slip.
        slips: how often it slips, and how; by default as `Slips()` says, and never where failures are planted.
        plants: the failures that are to happen; those of one step happen one after the other. They happen only in
            replies to requests with a reply format, as the guard makes them.
        answers: the values that it answers for steps that only words describe, by step id; ``"done"`` for others. A
            function in the place of a value computes it from the values that the step reads; such a step is carried
            out, slips included, while a value is answered as it stands. It quotes nothing: a step whose check wants the
            place cited is answered by `ScriptedSteps`.

    Raises:
        ConfigError: what is planted is no `Plant`, or `slips` no `Slips`.
    """

    name = "simulated"

    def __init__(
        self,
        seed: int = 0,
        *,
        slips: Slips | None = None,
        plants: Iterable[Plant] = (),
        answers: Mapping[str, object] | None = None,
    ) -> None:
        check_instance(slips, Slips, "slips", what="a Slips such as Slips.none()", optional=True)
        check_mapping(answers, "answers", what="a mapping of steps to values", optional=True)
        self._seed: Final = seed
        self._plants: Final = Plants(plants)
        self._slips: Final = slips if slips is not None else Slips.none() if self._plants else _DEFAULT
        self._answers: Final = dict(answers or {})

    @property
    def signature(self) -> Mapping[str, object]:
        """What shapes its replies beside the request."""
        return {"model": self.name, "seed": self._seed, "slips": asdict(self._slips), "answers": repr(self._answers)}

    def complete(self, request: Request) -> Completion:
        """Answer one request: JSON where a reply format is set, otherwise lines of working and an answer.

        Raises:
            BackendError: it was planted.
            UnexpectedRequest: no reply to this request shows the failure that was planted.
            ConfigError: an answer is no value of its step, or the step has a formula.
        """
        due = self._plants.take(request.steps) if request.reply_format is not None else []
        if due:
            return planted_reply(request, due, self._answers)
        return _SimulatedReply(self._seed, self._slips, request, self._answers).completion()

    async def acomplete(self, request: Request) -> Completion:
        """As `complete`: it waits for nothing, and needs no thread of its own."""
        return self.complete(request)

    def assert_planted(self) -> None:
        """Assert that every planted failure came to pass, as often as it was to.

        Raises AssertionError: some did not; it names them and says how often their steps were asked.
        """
        self._plants.assert_planted()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self.assert_planted()


class SlipType(NamedTuple):
    """What the systematic slips of a type hang on.

    Its name and fields are hashed with every seed and do not follow `stepguard.ValueType`: seeds keep their replies.
    """

    kind: str
    places: int | None
    rounding: str | None

    def __repr__(self) -> str:
        return f"ValueType(kind={self.kind!r}, places={self.places!r}, rounding={self.rounding!r})"


class _SimulatedReply:
    """One reply in the making."""

    def __init__(self, seed: int, slips: Slips, request: Request, answers: Mapping[str, object]) -> None:
        self.seed = seed
        self.answers = answers
        self.slips = slips
        self.tendencies = slips if isinstance(slips, ModelSlips) else _NO_TENDENCIES
        self.request = request
        self.right: dict[str, Value] = dict(request.values)
        self.believed: dict[str, Value] = dict(request.values)
        self.made = self.wrong = 0
        drawn = 0 if not request.temperature else request.seed
        asked = "\n".join(message.content for message in request.messages)
        self.chance = self._random("call", asked, drawn)
        self.failure: Failure | None = None
        if request.reply_format is None:
            self.failure = draw_failure(self.tendencies, len(request.steps), self._random("failing", asked, drawn))

    def _random(self, *parts: object) -> random.Random:
        digest = hashlib.blake2b(repr((self.seed, parts)).encode("utf-8", "replace"), digest_size=8)
        return random.Random(digest.digest())

    def slipped(self, rate: float) -> bool:
        return rate > 0 and self.chance.random() < rate

    def completion(self) -> Completion:
        request, slips = self.request, self.slips
        if self.slipped(slips.refused):
            return completion_of(request, None, refusal="I cannot help with that.")
        if self.slipped(slips.empty):
            return completion_of(request, "")
        state = self.believed
        lines: list[tuple[Step, str, str]] = []
        failure = self.failure
        for at, step in enumerate(request.steps):
            if (failure is not None and failure.ends_before(at)) or self.slipped(self.tendencies.stopping):
                break
            if (failure is not None and failure.leaves_out(at)) or self.slipped(slips.missing_step):
                continue
            work, value = self._carry_out(step, state)
            lines.append((step, work, value))
            self._count(step, state)
            if failure is not None and failure.makes_up_after(at):
                lines.append(self._made_up(step, state))
        text = self._json(lines) if request.reply_format is not None else self._lines(lines)
        if self.slipped(slips.truncated):
            return completion_of(request, text[: self.chance.randrange(max(1, len(text)))], finish_reason="length")
        return completion_of(request, text)

    def _carry_out(self, step: Step, state: dict[str, Value]) -> tuple[str, str]:
        """Working and value for one step; `state` takes the value that the model believes."""
        read = dict(state)
        slips = self.slips
        if step.expression is not None:
            others = [name for name in state if name not in step.reads and not isinstance(state[name], str | bool)]
            if step.reads and others and self.slipped(self._rate_of_operands(step)):
                read[self.chance.choice(step.reads)] = state[self.chance.choice(others)]
        worked = work_out(step, read, self.answers)
        if worked is None:  # a value it needs was skipped or makes no sense: it makes one up
            state[step.id] = 0
            return "0 + 0", "0"
        work, value = worked
        if step.expression is None and not callable(self.answers.get(step.id)):
            state[step.id] = value
            return work, reply_value(step, value)
        believed = self._slip_value(step, work, value, read)
        if step.expression is not None and self.slipped(slips.unfaithful_work):
            work = f"{show_value(believed)} + 0"
        state[step.id] = believed
        shown = reply_value(step, believed)
        if self.slipped(slips.self_correction) and not step.type.structured:  # an object has no room for it
            shown = f"{self.chance.randint(-99, 99)}, wait, {shown}"
        return work, shown

    def _rate_of_operands(self, step: Step) -> float:
        where = "structured" if self.request.reply_format is not None else "free"
        if all(name in self.request.values for name in step.reads):
            where = "given"
        return rate_in(self.tendencies.by_origin, where, self.slips.wrong_operand)

    def _slip_value(self, step: Step, work: str, value: Value, read: Mapping[str, Value]) -> Value:
        rate = self.slips.wrong_value
        if self.tendencies.by_kind:
            rate = rate_in(self.tendencies.by_kind, arithmetic_kind(step, read), rate)
        asked = work if step.expression is not None else f"{step.instruction} {work}"
        kind = SlipType(step.type.kind, step.type.places, step.type.rounding)
        own = self._random("step", asked, kind, *_way(self.request))
        if own.random() < rate * self.slips.systematic:
            return wrong_value(step.type, value, own)  # the same slip whenever these numbers are asked
        anew = rate * (1 - self.slips.systematic)
        if self.made:
            anew += self.tendencies.self_conditioning * self.wrong / self.made
        if self.slipped(anew):
            return wrong_value(step.type, value, self.chance)
        return value

    def _count(self, step: Step, state: Mapping[str, Value]) -> None:
        """Keep what the values of this reply would be without slips, and how many of them are wrong."""
        if not self.tendencies.self_conditioning:
            return
        worked = work_out(step, self.right, self.answers)
        if worked is not None:
            self.right[step.id] = worked[1]
        self.made += 1
        self.wrong += state.get(step.id) != self.right.get(step.id)

    def _made_up(self, step: Step, state: dict[str, Value]) -> tuple[Step, str, str]:
        """The line of a step that nobody asked for; `state` takes its result in place of that of `step`."""
        state[step.id] = wrong_value(step.type, state[step.id], self.chance)
        return Step("t_extra", instruction="made up"), step.id, reply_value(step, state[step.id])

    def _json(self, lines: list[tuple[Step, str, str]]) -> str:
        slips, chance = self.slips, self.chance
        reply_format = self.request.reply_format or _FORMAT
        fields = [(step.id, reply_format.answer(step, work, value)) for step, work, value in lines]
        if len(fields) > 1 and self.slipped(slips.wrong_order):
            at = chance.randrange(len(fields) - 1)
            fields[at], fields[at + 1] = fields[at + 1], fields[at]
        if fields and self.slipped(slips.duplicate_step):
            fields.append((fields[-1][0], "0"))
        if self.slipped(slips.extra_step):
            fields.insert(chance.randint(0, len(fields)), ("t_extra", f"1 + 1 = {chance.randint(1, 3)}"))
        if self.slipped(slips.premature_answer):
            fields.append(("final_answer", str(chance.randint(-99, 99))))
        text = "{" + ", ".join(f"{json.dumps(key)}: {json.dumps(field)}" for key, field in fields) + "}"
        if self.slipped(slips.malformed):
            ways = [text.replace('"', "'"), text.rstrip("}"), "Here are the steps.", f"{text} {text[:-1]}"]
            text = chance.choice(ways)
        return text

    def _lines(self, lines: list[tuple[Step, str, str]]) -> str:
        rows = [f"{step.id} = {work} = {value}" for step, work, value in lines]
        if len(lines) > 1 and self.slipped(self.slips.premature_answer * len(lines)):
            kept = self.chance.randrange(1, len(lines))
            rows, lines = rows[:kept], lines[:kept]
        way = self.failure.way if self.failure is not None else None
        if way == "premature_answer":
            rows.append(f"Answer: {self.chance.randint(-999, 999)}")
        elif lines:
            rows.append(f"Answer: {lines[-1][2]}")
            if way == "self_correction":
                step = lines[-1][0]
                other = reply_value(step, wrong_value(step.type, self.believed[step.id], self.chance))
                rows += ["Wait, that is not right.", f"Answer: {other}"]
        return "\n".join(rows)


def _way(request: Request) -> tuple[str, ...]:
    """What tells a plain question, and a reply that is made from a draft, from steps that are asked as they stand."""
    asked = request.messages[-1].content if request.messages and request.reply_format is not None else ""
    if "\nWorking:\n" in asked:
        return ("draft",)
    return ("question",) if "\nKey: " in asked else ()
