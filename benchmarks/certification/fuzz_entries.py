"""Right entries and replies with characters changed: what passes must be true."""

from __future__ import annotations

import random
from collections.abc import Sequence

from certification.cases import Case, answer, pairs_text, values_of
from certification.fuzz_items import Found, Item, Passed, as_truth, mutated
from certification.hostile import HOSTILE
from certification.right_ways import RIGHT_WAYS
from certification.traces import make_trace
from stepguard.backends import Completion
from stepguard.checks import judge_claims
from stepguard.core.verdicts import Claim, Deviation
from stepguard.language.values import Value
from stepguard.replies.formats import EquationFormat
from stepguard.replies.reading import Reading, read_reply

__all__ = ["Entries", "Replies"]


class Entries:
    def __init__(self, chance: random.Random, size: int) -> None:
        self.format = EquationFormat()
        self.cases: list[tuple[Case, str, dict[str, Value]]] = []
        ways = list(RIGHT_WAYS.values())
        while len(self.cases) < size:
            trace = make_trace(chance)
            at = chance.randrange(len(trace.steps))
            case = Case(chance, trace, at)
            entry = chance.choice(ways)(case)
            if isinstance(entry, str) and case.made.tree is not None:
                self.cases.append((case, entry, values_of(trace, at)))
        self.pool = [*(entry for _, entry, _ in self.cases), *HOSTILE]

    def item(self, chance: random.Random) -> Item:
        case, entry, values = chance.choice(self.cases)
        step = case.made.step

        def run(text: str) -> object:
            claim = self.format.claim(step, text)
            if isinstance(claim, Deviation):
                return f"judged {claim.kind}"
            (judged,) = judge_claims((step,), (claim,), values)
            verdict = judged.verdict
            assert verdict is not None
            if verdict.outcome != "pass":
                return f"judged {verdict.kind}"
            return Passed(judged.value)

        def judge(result: object, found: Found) -> str | None:
            if not isinstance(result, Passed):
                return None if isinstance(result, str) and result.startswith("judged ") else f"{result!r:.80} came out"
            found.compared += 1
            value = result.value
            given = as_truth(value)
            wrong = given is None or case.spec.wrong(given, case.made.exact)
            return f"{value!r:.80} passed for {case.made.truth!r:.80}" if wrong else None

        return Item(mutated(chance, entry, self.pool), run, judge)


class Replies:
    def __init__(self, chance: random.Random) -> None:
        self.format = EquationFormat()
        self.traces = [make_trace(chance) for _ in range(200)]
        self.pool = [
            *(pairs_text(answer(trace, chance)) for trace in self.traces),
            "```json\n",
            "<think>",
            "</think>",
            *HOSTILE,
        ]

    def item(self, chance: random.Random) -> Item:
        trace = chance.choice(self.traces)
        text = mutated(chance, pairs_text(answer(trace, chance)), self.pool)
        steps = [made.step for made in trace.steps]
        values = values_of(trace, 0)

        def run(text: str) -> object:
            return read_reply(Completion(text), steps, self.format)

        def judge(result: object, found: Found) -> str | None:
            if not isinstance(result, Reading):
                return f"{result!r:.80} came out"
            claims: Sequence[Claim] = result.claims
            for at, judged in enumerate(judge_claims(steps[: len(claims)], claims, values)):
                case = Case(chance, trace, at)
                if judged.verdict is None or judged.verdict.outcome != "pass":
                    break
                found.compared += 1
                value = judged.value
                given = as_truth(value)
                if given != case.made.truth:
                    if given is None or case.spec.wrong(given, case.made.exact):
                        return f"{value!r:.80} passed for {case.made.id}"
                    break  # within a tolerance: what follows rests on it
            return None

        return Item(text, run, judge)
