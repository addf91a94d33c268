"""What a run will probably cost, and whether it will end verified, from what was seen of the model.

Every step is accepted at first with the probability that steps of its operation had (`Profile.kinds`), or all steps
where it is unknown. A segment is asked in one call; the first step in it that is not accepted is asked again, which
takes as many calls and tokens as it took on average, and is given up as often; the run goes on behind it. With q_i the
probability of step i, E(i) the expected cost from step i on and m the length of segments::

    E(i) = call(m) + q_i ... q_(i+m-1) E(i+m) + sum over j of q_i ... q_(i+j-1) (1 - q_(i+j)) (again + kept E(i+j+1))

which is solved from the last step backwards. The probability to end verified follows in the same way.

Of a procedure with branches and loops the longest way is forecast, with as many rounds as its bounds allow: on a
shorter one less is expected to be spent, and more probably everything is verified.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from itertools import takewhile
from typing import TYPE_CHECKING, Final

from stepguard.core.profile import Profile, Tries
from stepguard.engine.segments import SegmentLength, Segments
from stepguard.engine.step_kinds import SIGNS, step_kind
from stepguard.errors import ConfigError
from stepguard.language.expressions import format_expression
from stepguard.language.terms.operands import ListTerm
from stepguard.procedure.statements import Body, ForEach, If, ProcedureCall, Repeat, blocks_of
from stepguard.procedure.steps import Step

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stepguard.core.usage import Price
    from stepguard.procedure.procedure import Procedure

_MOST: Final = 2000
"""The most steps that are looked at; the rest of a longer procedure is taken to be like them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """What is expected of one run.

    Attributes:
        calls: model calls.
        input_tokens: tokens of the prompts.
        output_tokens: tokens of the replies.
        seconds: time spent waiting for the model, one call after the other.
        success: the probability that every step is completed.
        cost: money, None where no price is known.
        bound: whether this is the longest way through a procedure with branches or loops, and not what is expected.
    """

    calls: float
    input_tokens: float
    output_tokens: float
    seconds: float
    success: float
    cost: Decimal | None = None
    bound: bool = False

    @property
    def abstention(self) -> float:
        """The probability that some step is given up."""
        return 1 - self.success

    @property
    def tokens(self) -> float:
        """Input and output together."""
        return self.input_tokens + self.output_tokens


def forecast(
    procedure: Procedure, profile: Profile, *, segments: Segments | None = None, price: Price | None = None
) -> Forecast:
    """What a guarded run of a procedure will probably cost. `Guard.forecast` does it with the guard's own options.

    Raises ConfigError: the profile holds no calls, or the procedure goes through a list whose length is not known.
    """
    if not profile.tells:
        raise ConfigError("a forecast needs a profile that has seen calls: add up Result.profile", option="profile")
    steps, count = (procedure.steps, len(procedure)) if procedure.straight else _longest(procedure.body, procedure)
    length = SegmentLength(segments or Segments(), profile).size(count)
    looked = min(count, _MOST, len(steps))
    right = [_right(steps[index], profile) for index in range(looked)]
    sums, success = _solve(right, length, profile)
    # Each further part as long as what was looked at costs the same, if the run comes so far.
    # A geometric sum: a part is only paid for where the run comes through those before it.
    parts = count / looked
    reached = parts if success == 1 else (1 - success**parts) / (1 - success)
    calls, input_tokens, output_tokens, seconds = (amount * reached for amount in sums)
    cost = None
    if price is not None:
        input_cost = Decimal(input_tokens) * Decimal(str(price.input))
        cost = (input_cost + Decimal(output_tokens) * Decimal(str(price.output))) / 1_000_000
    return Forecast(
        calls=calls,
        input_tokens=input_tokens,
        output_tokens=output_tokens,
        seconds=seconds,
        success=success**parts,
        cost=cost,
        bound=not procedure.straight,
    )


def _longest(body: Body, procedure: Procedure) -> tuple[Sequence[Step], int]:
    """The first steps of the longest way through a body, and how many there are on it."""
    steps: list[Step] = []
    count = 0
    for statement in body:
        rounds = 1
        inner: Sequence[Step]
        match statement:
            case Step():
                inner, size = [statement], 1
            case If():
                ways = (_longest(block, procedure) for block in blocks_of(statement))
                inner, size = max(ways, key=lambda way: way[1])
            case ProcedureCall(_, called):
                inner, size = _longest(called.body, procedure)
            case Repeat(most, repeated):
                (inner, size), rounds = _longest(repeated, procedure), most
            case ForEach(variable, ListTerm(items), repeated):
                (inner, size), rounds = _longest(repeated, procedure), len(items)
            case ForEach(variable, over):
                raise ConfigError(
                    f"{procedure.name} cannot be forecast: how long {format_expression(over)} is, which `for each "
                    f"{variable}` goes through, shows in a run only; forecast what is done for one item, as a "
                    "procedure of its own",
                    option="procedure",
                )
        count += size * rounds
        while rounds and inner and len(steps) < _MOST:
            steps += inner[: _MOST - len(steps)]
            rounds -= 1
    return steps, count


def _right(step: Step, profile: Profile) -> float | None:
    """The probability that a step is accepted at first, None where no model performs it."""
    if step.performer != "model":
        return None
    kind = step_kind(step, {})  # without signs, since no value is known
    alike = [tries for name, tries in profile.kinds.items() if _without_signs(name) == kind]
    tries = sum(alike, Tries()) if alike else profile.asked
    # The mean under Jeffreys' prior: a few tries never show 0 or 1, which would make a long run certain or hopeless.
    return (tries.well + 0.5) / (tries.made + 1)


def _without_signs(kind: str) -> str:
    return " ".join(word for word in kind.split() if word not in SIGNS)


def _solve(right: list[float | None], length: int, profile: Profile) -> tuple[list[float], float]:
    """Expected calls, input tokens, output tokens and seconds, and the probability to complete."""
    first, again, hard = profile.first, profile.again, profile.hard
    # As in `_right`.
    cured = (hard.well + 0.5) / (hard.made + 1)
    per_failure = max(hard.made, 1)
    repair = [amount / per_failure for amount in (again.calls, again.input_tokens, again.output_tokens, again.seconds)]
    fixed = first.fixed_tokens / first.calls
    step_in = (first.input_tokens - first.fixed_tokens) / first.steps
    step_out = first.output_tokens / first.steps
    per_token = first.seconds / max(1.0, first.input_tokens + first.output_tokens)
    ends = len(right)
    expected = [[0.0] * 4 for _ in range(ends + 1)]
    success = [0.0] * ends + [1.0]
    for at in range(ends - 1, -1, -1):
        if right[at] is None:  # it costs nothing, and is no part of a call
            expected[at], success[at] = expected[at + 1], success[at + 1]
            continue
        segment = list(takewhile(lambda chance: chance is not None, right[at : at + length]))
        steps = len(segment)
        input_tokens, output_tokens = fixed + step_in * steps, step_out * steps
        sums = [1.0, input_tokens, output_tokens, per_token * (input_tokens + output_tokens)]
        whole, done = 1.0, 0.0
        for place, accepted in enumerate(segment, at):
            assert accepted is not None
            failed = whole * (1 - accepted)
            for number in range(4):
                sums[number] += failed * (repair[number] + cured * expected[place + 1][number])
            done += failed * cured * success[place + 1]
            whole *= accepted
        behind = at + steps
        expected[at] = [amount + whole * later for amount, later in zip(sums, expected[behind], strict=True)]
        success[at] = done + whole * success[behind]
    return expected[0], success[0]
