"""Whether a call keeps its rules: exactly, from what the host and the tools gave.

A truth value may be unknown where a fact is that nobody has given; ``or`` and ``and`` are decided without it where they
can be. Everything else that has no value, a missing field, a division by zero, refuses the call.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Final, cast

from stepguard.core.verdicts import shorten
from stepguard.errors import EvaluationError
from stepguard.language.evaluation import shortened
from stepguard.language.expressions import Expression, Logic, Not
from stepguard.language.lookup_tables import Table
from stepguard.language.measure_arithmetic import same_value
from stepguard.language.records import Record
from stepguard.language.term_evaluation import evaluate_term
from stepguard.language.terms import Choice, variables_in
from stepguard.language.values import Value, show_value
from stepguard.policy.decisions import Reason, ReasonKind
from stepguard.policy.history import CallHistory, Sight
from stepguard.policy.policy import DeclaredTool, FactMissing, Policy
from stepguard.policy.reading import folded, shown_argument
from stepguard.policy.rules import (
    Binding,
    Branching,
    CallPattern,
    Confirmation,
    Demand,
    Done,
    Earlier,
    Exemption,
    Limit,
    Prohibition,
    Repetition,
    Requirement,
    Seen,
    SeenAll,
    bound_names,
)

__all__ = ["CallJudgement", "judge_call", "pattern_values"]

_MOST_SHOWN: Final = 200
"""A longer argument is not repeated to an agent: what a tool gave back could speak to it in the host's voice."""


class _Values(dict[str, Value]):
    """The values that a rule may read; a fact that is not known raises, and so does the clock that nobody gave."""

    def __init__(self, values: Mapping[str, Value], facts: frozenset[str], secret: frozenset[str]) -> None:
        super().__init__(values)
        self.facts = facts
        self.secret = secret

    def __missing__(self, name: str) -> Value:
        if name in self.facts:
            raise FactMissing(name)
        if name in ("now", "today"):
            raise EvaluationError("the host gave no time: offer the call with `now=...`")
        raise EvaluationError(f"{name} has no value here")

    def inner(self) -> _Values:
        return _Values(self, self.facts, self.secret)

    def bind(self, name: str, value: Value, tree: Expression) -> None:
        """A name for what an expression comes to, a secret where that reads one."""
        self[name] = value
        if self.hides(tree):
            self.secret |= {name}

    def hides(self, tree: Expression) -> bool:
        """Whether an expression reads what only the host knows."""
        return not self.secret.isdisjoint(variables_in(tree))


class _Stopped(Exception):
    """What stands behind cannot be judged."""


@dataclass(slots=True)
class CallJudgement:
    """What the rules say of a call.

    Attributes:
        reasons: why it is refused.
        open: the facts that are not known, in order.
        yeses: who has to say yes.
        spent: the limits that it counts against.
        pending: what is still to be asked, with its words.
    """

    reasons: list[Reason] = field(default_factory=list)
    open: dict[tuple[str, tuple[Value, ...]], None] = field(default_factory=dict)
    yeses: dict[str, None] = field(default_factory=dict)
    spent: list[tuple[str, str]] = field(default_factory=list)
    pending: list[Reason] = field(default_factory=list)


def judge_call(
    policy: Policy,
    tool: DeclaredTool,
    values: Mapping[str, Value],
    history: CallHistory,
    *,
    facts: Mapping[str, Value],
    tables: Mapping[str, Table],
    clock: Record | None,
    confirmed: frozenset[str],
) -> CallJudgement:
    """What the rules say of a call.

    Args:
        policy: the policy.
        tool: the tool that is called.
        values: its arguments by their names, and the defaults of those that were left out.
        history: what has happened.
        facts: the facts without keys that are known.
        tables: tables, and facts with keys.
        clock: the moment of the call; None where the host gave none.
        confirmed: who has said yes to this very call.
    """
    judgement = CallJudgement()
    base: dict[str, Value] = dict(facts)
    if clock is not None:
        base |= {"now": clock, "today": clock["date"]}
    plain = frozenset(name for name, fact in policy.facts.items() if not fact.keys)
    names = [each.name for each in tool.parameters]
    for number, rule in enumerate(tool.rules):
        own = dict(zip(bound_names(rule, names), (values[name] for name in names if name in values), strict=False))
        scope = _Values({**base, **own}, plain, frozenset(policy.facts))
        judge = _RuleJudge(policy, tool, history, tables, judgement, confirmed, clock)
        try:
            judge.body(rule.demands, scope, f"{tool.name}.{number}")
        except _Stopped:
            continue
    return judgement


class _RuleJudge:
    def __init__(
        self,
        policy: Policy,
        tool: DeclaredTool,
        history: CallHistory,
        tables: Mapping[str, Table],
        judgement: CallJudgement,
        confirmed: frozenset[str],
        clock: Record | None,
    ) -> None:
        self.policy = policy
        self.tool = tool
        self.history = history
        self.tables = tables
        self.judgement = judgement
        self.confirmed = confirmed
        self.clock = clock
        self.missed: list[tuple[str, tuple[Value, ...]]] = []

    # ---- values

    def value(self, tree: Expression, scope: _Values) -> Value:
        """What an expression comes to.

        Raises:
            FactMissing: a fact is not known.
            EvaluationError: it has no value.
        """
        try:
            return evaluate_term(tree, scope, self.tables)
        except KeyError as error:
            raise EvaluationError(f"{error.args[0]} has no value here") from None

    def truth(self, tree: Expression, scope: _Values) -> bool | None:
        """Whether a condition holds, None where that hangs on facts that are not known.

        Raises:
            EvaluationError: it has no value.
        """
        match tree:
            case Logic(operator, operands):
                decides = operator == "or"
                unknown = False
                for operand in operands:
                    found = self.truth(operand, scope)
                    if found is decides:
                        return decides
                    unknown = unknown or found is None
                return None if unknown else not decides
            case Not(operand):
                found = self.truth(operand, scope)
                return None if found is None else not found
            case Choice(then, condition, otherwise):
                found = self.truth(condition, scope)
                return None if found is None else self.truth(then if found else otherwise, scope)
        try:
            value = self.value(tree, scope)
        except FactMissing as missing:
            self.missed.append((missing.name, missing.keys))
            return None
        if type(value) is not bool:
            raise EvaluationError(f"{shortened(tree)} is no truth value")
        return value

    def decided(self, tree: Expression, scope: _Values, demand: Demand) -> bool | None:
        """As `truth`; what has no value refuses the call, and what is not known is asked."""
        self.missed = []
        try:
            found = self.truth(tree, scope)
        except EvaluationError as error:
            self.undecided(demand, error)
        if found is None:
            self.ask_facts(self.missed, demand)
        return found

    def needed(self, tree: Expression, scope: _Values, demand: Demand) -> Value:
        """The value of an expression, without which nothing behind it can be judged."""
        try:
            return self.value(tree, scope)
        except FactMissing as missing:
            self.ask_facts([(missing.name, missing.keys)], demand)
        except EvaluationError as error:
            self.undecided(demand, error)
        raise _Stopped

    def undecided(self, demand: Demand, error: EvaluationError) -> None:
        self.refuse("undecided", demand, "A value that the rule needs is missing or of another type", detail=str(error))
        raise _Stopped

    def ask_facts(self, missed: Iterable[tuple[str, tuple[Value, ...]]], demand: Demand) -> None:
        for name, keys in missed:
            self.judgement.open[(name, keys)] = None
            question = self.policy.facts[name].question
            words = question or f"It is not known yet: {name}"
            self.judgement.pending.append(
                Reason(
                    "unknown_fact",
                    self.tool.name,
                    words,
                    detail=f"{name} of {', '.join(map(str, keys))}",
                    line=demand.line,
                )
            )

    def refuse(self, kind: ReasonKind, demand: Demand, words: str, *, first: str = "", detail: str = "") -> None:
        own = getattr(demand, "words", None)
        line = "" if demand.line is None else f" (line {demand.line})"
        said = own or f"{words}{line}"
        self.judgement.reasons.append(Reason(kind, self.tool.name, said, first, detail, demand.line))

    # ---- demands

    def body(self, demands: Iterable[Demand], scope: _Values, path: str) -> None:
        for number, demand in enumerate(demands):
            self.demand(demand, scope, f"{path}.{number}")

    def demand(self, demand: Demand, scope: _Values, path: str) -> None:
        exemption: Exemption | None = getattr(demand, "exemption", None)
        if exemption is not None:
            counts = self.counts(exemption, demand, scope)
            if counts is None:
                self.open_demand(demand, scope, path)
            if not counts:
                return
        self.kept(demand, scope, path)

    def open_demand(self, demand: Demand, scope: _Values, path: str) -> None:
        """A demand of which it is not known whether it counts: where it is kept, nobody needs to be asked."""
        missed, outer = self.missed, self.judgement
        self.judgement = trial = CallJudgement()
        with suppress(_Stopped):
            self.kept(demand, scope, path)
        self.judgement = outer
        if trial.reasons or trial.pending:
            self.ask_facts(missed, demand)
        else:
            outer.spent += trial.spent
            outer.yeses |= trial.yeses

    def kept(self, demand: Demand, scope: _Values, path: str) -> None:
        match demand:
            case Seen():
                self.seen(demand, scope)
            case SeenAll(pattern, name):
                scope[name] = self.seen_all(pattern, demand, scope)
            case Done():
                self.done(demand, scope)
            case Earlier(pattern, name):
                self.earlier(pattern, name, demand, scope)
            case Requirement():
                found = self.decided(cast(Expression, demand.condition), scope, demand)
                if found is not None and found == demand.negated:
                    self.refuse(
                        "broken", demand, "A rule about this call does not hold", detail=self.shown(demand, scope)
                    )
            case Confirmation(by=by):
                if by not in self.confirmed:
                    self.judgement.pending.append(
                        Reason(
                            "unconfirmed",
                            self.tool.name,
                            demand.words or f"The {by} has to say yes to this call first",
                            line=demand.line,
                        )
                    )
                self.judgement.yeses[by] = None
            case Limit():
                self.limit(demand, scope, path)
            case Prohibition():
                self.refuse("forbidden", demand, f"{self.tool.name} is never to be called")
            case Binding(name, value):
                scope.bind(name, self.needed(cast(Expression, value), scope, demand), cast(Expression, value))
            case Branching():
                self.branch(demand, scope, path)
            case Repetition(variable, over, body):
                items = self.needed(cast(Expression, over), scope, demand)
                for item in cast("tuple[Value, ...]", items):
                    inner = scope.inner()
                    inner.bind(variable, item, cast(Expression, over))
                    self.body(body, inner, path)

    def counts(self, exemption: Exemption, demand: Demand, scope: _Values) -> bool | None:
        """Whether a demand counts, None where that hangs on facts that are not known."""
        self.missed = []
        try:
            found = self.truth(cast(Expression, exemption.condition), scope)
        except EvaluationError as error:
            self.undecided(demand, error)
        return None if found is None else found == exemption.counts

    def branch(self, demand: Branching, scope: _Values, path: str) -> None:
        for number, (condition, body) in enumerate(demand.branches):
            found = self.decided(cast(Expression, condition), scope, demand)
            if found is None:
                return
            if found:
                self.body(body, scope.inner(), f"{path}.{number}")
                return
        self.body(demand.otherwise, scope.inner(), f"{path}.else")

    def shown(self, demand: Requirement, scope: _Values) -> str:
        tree = cast(Expression, demand.condition)
        values = (f"{name} = {shorten(str(scope[name]), 120)}" for name in variables_in(tree) if name in scope)
        return "; ".join((shortened(tree), *values))

    def wanted(self, pattern: CallPattern, demand: Demand, scope: _Values) -> dict[str, Value]:
        try:
            values = pattern_values(self.policy.tools[pattern.tool], pattern, lambda tree: self.value(tree, scope))
            for each in values.values():
                folded(each)
            return values
        except FactMissing as missing:
            self.ask_facts([(missing.name, missing.keys)], demand)
        except EvaluationError as error:
            self.undecided(demand, error)
        raise _Stopped

    def seen(self, demand: Seen, scope: _Values) -> None:
        best: Sight | None = None
        for pattern in demand.patterns:
            wanted = self.wanted(pattern, demand, scope)
            for sight in self.history.matching(pattern.tool, wanted):
                exact = all(same_value(sight.values[name], value) for name, value in wanted.items())
                if exact and (best is None or sight.number > best.number):
                    best = sight
        state = "unseen" if best is None else self.history.state_of(best)
        if best is None or state != "fresh":
            call = self.call_text(demand.patterns[0], scope)
            match state:
                case "unseen":
                    self.refuse("unseen", demand, "It has not been looked up", first=f"First call {call}.")
                case "stale":
                    self.refuse(
                        "stale", demand, "It was changed since it was looked up", first=f"First call {call} again."
                    )
                case _:
                    self.refuse(
                        "unanswered", demand, "A call that changes it is not answered yet", first="Wait for its result."
                    )
            raise _Stopped
        if demand.name is not None:
            if best.value is None:
                self.undecided(demand, EvaluationError(f"the result of {demand.patterns[0].tool} is not of its type"))
            scope[demand.name] = cast(Value, best.value)

    def seen_all(self, pattern: CallPattern, demand: Demand, scope: _Values) -> Value:
        wanted = self.wanted(pattern, demand, scope)
        found: list[Value] = []
        for sight in self.history.matching(pattern.tool, wanted):
            exact = all(same_value(sight.values[name], value) for name, value in wanted.items())
            if not exact or self.history.state_of(sight) != "fresh":
                continue
            if sight.value is None:
                self.undecided(demand, EvaluationError(f"a result of {pattern.tool} is not of its type"))
            found.append(cast(Value, sight.value))
        return tuple(found)

    def call_text(self, pattern: CallPattern, scope: _Values) -> str:
        """The call that an agent is told to make; what only the host knows is left out."""
        tool = self.policy.tools[pattern.tool]
        pairs = [*zip((each.name for each in tool.parameters), pattern.positional, strict=False), *pattern.named]
        shown: list[str] = []
        for name, tree in pairs:
            tree = cast(Expression, tree)
            text = "..." if scope.hides(tree) else shown_argument(self.value(tree, scope))
            shown.append(f"{name}={text if len(text) <= _MOST_SHOWN else '...'}")
        return f"{pattern.tool}({', '.join(shown)})"

    def done(self, demand: Done, scope: _Values) -> None:
        wanted = self.wanted(demand.pattern, demand, scope)
        calls = self.history.made(demand.pattern.tool, wanted)
        if demand.negated:
            if next(calls, None) is not None:
                self.refuse("done_already", demand, f"{demand.pattern.tool} was called already")
            return
        for call in calls:
            exact = call.values is not None and all(
                same_value(call.values[name], value) for name, value in wanted.items()
            )
            if exact and call.status == "succeeded":
                return
        self.refuse(
            "not_done",
            demand,
            f"{demand.pattern.tool} has to be done before",
            first=f"First call {self.call_text(demand.pattern, scope)}.",
        )

    def earlier(self, pattern: CallPattern, name: str, demand: Demand, scope: _Values) -> None:
        wanted = self.wanted(pattern, demand, scope)
        calls = list(self.history.made(pattern.tool, wanted))
        if any(call.values is None for call in calls):
            self.undecided(demand, EvaluationError(f"an earlier call of {pattern.tool} could not be read"))
        scope[name] = tuple(Record(call.values) for call in calls if call.values is not None)

    def limit(self, demand: Limit, scope: _Values, path: str) -> None:
        try:
            per = [show_value(folded(self.needed(cast(Expression, each), scope, demand))) for each in demand.per]
        except EvaluationError as error:
            self.undecided(demand, error)
        limit = (path, json.dumps(per))
        spent = [each for each in self.history.limits.get(limit, ()) if each.counts]
        if demand.within is not None:
            span = self.needed(cast(Expression, demand.within), scope, demand)
            if self.clock is None:
                self.undecided(demand, EvaluationError("the host gave no time: offer the call with `now=...`"))
            assert self.clock is not None
            if cast(timedelta, span) <= timedelta():
                self.undecided(demand, EvaluationError("within no time at all nothing can be counted"))
            since = cast(timedelta, self.clock["at"]) - cast(timedelta, span)
            spent = [each for each in spent if each.at is None or each.at > since]
        if len(spent) + sum(each == limit for each in self.judgement.spent) >= demand.most:
            times = "once" if demand.most == 1 else f"{demand.most} times"
            self.refuse("spent", demand, f"{self.tool.name} may be called at most {times} here")
        self.judgement.spent.append(limit)


def pattern_values(tool: DeclaredTool, pattern: CallPattern, value: Any) -> dict[str, Value]:
    """The arguments that a pattern gives, by name, each as the tool's type has it.

    Raises:
        EvaluationError: one has no value of that type.
    """
    kinds = {each.name: each.type for each in tool.parameters}
    pairs = [*zip(kinds, pattern.positional, strict=False), *pattern.named]
    return {name: value(tree) for name, tree in pairs}
