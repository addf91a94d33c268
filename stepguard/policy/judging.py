"""Judge whether a call keeps its rules, exactly, from what the host and the tools gave; see `stepguard.policy.scope`.

What has no value refuses the call, and what is not known is asked.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import chain, combinations
from typing import Final, TypeVar, cast

from stepguard.core.verdicts import shorten
from stepguard.errors import EvaluationError
from stepguard.language.records import Record
from stepguard.language.terms.measure_arithmetic import same_value
from stepguard.language.terms.operands import variables_in
from stepguard.language.values import Value, show_value
from stepguard.policy.declarations import DeclaredTool, FactMissing
from stepguard.policy.history import CallHistory, Sight
from stepguard.policy.judgement import UNCHANGED, CallJudgement, JudgingStopped
from stepguard.policy.known_facts import KnownFacts
from stepguard.policy.policy import Policy
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
    ExpressionLike,
    Limit,
    Prohibition,
    Repetition,
    Requirement,
    Seen,
    SeenAll,
    bound_names,
    short_text,
    tree_of,
)
from stepguard.policy.scope import NO_TIME, RuleScope

T = TypeVar("T")
Spelling = tuple[str, ...]
"""The arguments of an earlier call that a reader takes for those that are wanted, and that are spelt otherwise."""

_MOST_SHOWN: Final = 200
"""A longer argument is not repeated to an agent: what a tool gave back could speak to it in the host's voice."""
_MOST_SPELLINGS: Final = 4


def judge_call(
    policy: Policy,
    tool: DeclaredTool,
    values: Mapping[str, Value],
    history: CallHistory,
    *,
    known: KnownFacts,
    clock: Record | None,
    confirmed: frozenset[str],
) -> CallJudgement:
    """Judge a call by its rules.

    Args:
        policy: the policy.
        tool: the tool that is called.
        values: its arguments by their names, and the defaults of those that were left out.
        history: what has happened.
        known: the facts that are known.
        clock: the moment of the call; None where the host gave none.
        confirmed: who has said yes to this very call.
    """
    judgement = CallJudgement(tool.name)
    base: dict[str, Value] = dict(known.plain)
    if clock is not None:
        base |= {"now": clock, "today": clock["date"]}
    judge = _RuleJudge(policy, tool, history, judgement, confirmed, clock)
    for number, rule in enumerate(tool.rules):
        own = {bound: values[name] for bound, name in zip(bound_names(rule, tool.names), tool.names, strict=True)}
        scope, path = RuleScope({**base, **own}, frozenset(policy.facts), known.tables), f"{tool.name}.{number}"
        judge.rule(rule.demands, scope.inner(), path)
        spellings = tuple(judge.spellings)[:_MOST_SPELLINGS]
        # Which of them the tool takes for the same is not known: the rule holds whichever these are.
        for same in chain.from_iterable(combinations(spellings, count) for count in range(len(spellings))):
            judge.same, judge.judgement = frozenset(same), CallJudgement(tool.name)
            judge.rule(rule.demands, scope.inner(), path)
            judgement.add(judge.judgement)
        judge.same, judge.judgement, judge.spellings = None, judgement, {}
    return judgement


@dataclass(slots=True)
class _RuleJudge:
    policy: Policy
    tool: DeclaredTool
    history: CallHistory
    judgement: CallJudgement
    confirmed: frozenset[str]
    clock: Record | None
    spellings: dict[Spelling, None] = field(default_factory=dict)
    """Other spellings in earlier calls, as a reader takes for the same."""
    same: frozenset[Spelling] | None = None
    """Those of them that are the same; None for all."""

    # ---- values

    def truth(self, given: ExpressionLike, scope: RuleScope, demand: Demand) -> tuple[bool | None, list[FactMissing]]:
        """Whether a condition holds, None where that hangs on facts that are not known, and these."""
        missing: list[FactMissing] = []
        try:
            return scope.truth(given, missing), missing
        except EvaluationError as error:
            self.judgement.undecided(demand, str(error))

    def decided(self, given: ExpressionLike, scope: RuleScope, demand: Demand) -> bool | None:
        """As `truth`; what is not known is asked."""
        truth, missing = self.truth(given, scope, demand)
        if truth is None:
            self.judgement.ask(missing, self.policy.facts, demand)
        return truth

    def needed(self, value: Callable[[], T], demand: Demand) -> T:
        """A value that all later parts depend on; where it cannot be known, judging stops."""
        try:
            return value()
        except FactMissing as missing:
            self.judgement.ask([missing], self.policy.facts, demand)
        except EvaluationError as error:
            self.judgement.undecided(demand, str(error))
        raise JudgingStopped

    # ---- demands

    def rule(self, demands: Iterable[Demand], scope: RuleScope, path: str) -> None:
        with suppress(JudgingStopped):
            self.body(demands, scope, path)

    def body(self, demands: Iterable[Demand], scope: RuleScope, path: str) -> None:
        for number, demand in enumerate(demands):
            self.demand(demand, scope, f"{path}.{number}")

    def demand(self, demand: Demand, scope: RuleScope, path: str) -> None:
        exemption: Exemption | None = getattr(demand, "exemption", None)
        if exemption is not None:
            truth, missing = self.truth(exemption.condition, scope, demand)
            if truth is None:
                self.open_demand(demand, scope, path, missing)
            if truth is not exemption.counts:
                return
        self.kept(demand, scope, path)

    def open_demand(self, demand: Demand, scope: RuleScope, path: str, missing: Iterable[FactMissing]) -> None:
        """Judge a demand that may not count. Where it is kept anyway, nobody is asked whether it does."""
        outer = self.judgement
        # With the limits so far: in a loop, a limit must not start anew for each item.
        self.judgement = trial = CallJudgement(self.tool.name, spent=list(outer.spent))
        with suppress(JudgingStopped):
            self.kept(demand, scope, path)
        self.judgement = outer
        if trial.reasons or trial.pending:
            self.judgement.ask(missing, self.policy.facts, demand)
        else:
            outer.spent = trial.spent
            # Used up even though they may not have been needed, or one yes would let two calls through.
            outer.yeses |= trial.yeses

    def kept(self, demand: Demand, scope: RuleScope, path: str) -> None:
        match demand:
            case Seen():
                self.seen(demand, scope)
            case SeenAll(pattern, name):
                scope[name] = self.seen_all(pattern, demand, scope)
            case Done():
                self.done(demand, scope)
            case Earlier(pattern, name):
                scope[name] = self.earlier(pattern, demand, scope)
            case Requirement(condition=condition):
                truth = self.decided(condition, scope, demand)
                if truth is not None and truth == demand.negated:
                    self.broken(demand, condition, scope)
            case Confirmation(by=by):
                if by not in self.confirmed:
                    words = demand.words or f"The {by} has to approve this very call first"
                    self.judgement.wait("unconfirmed", demand, words)
                # Also where it was given: the call uses it up.
                self.judgement.yeses[by] = None
            case Limit():
                self.limit(demand, scope, path)
            case Prohibition():
                self.judgement.refuse("forbidden", demand, f"{self.tool.name} must never be called")
            case Binding(name, source):
                scope.bind(name, self.needed(lambda: scope.value(source), demand), source)
            case Branching():
                self.branch(demand, scope, path)
            case Repetition(variable, over, body):
                for item in cast("tuple[Value, ...]", self.needed(lambda: scope.value(over), demand)):
                    inner = scope.inner()
                    inner.bind(variable, item, over)
                    self.body(body, inner, path)

    def broken(self, demand: Requirement, condition: ExpressionLike, scope: RuleScope) -> None:
        """A relation does not hold; it is shown unless it reads what only the host knows."""
        verb = "must not be called if" if demand.negated else "may be called only if"
        words = f"{self.tool.name} {verb} {short_text(condition)}"
        if scope.hides(condition):
            words = f"A rule does not allow {self.tool.name} here"
        names = [name for name in variables_in(tree_of(condition)) if name in scope]
        values = (f"{name} = {shorten(str(scope[name]), 120)}" for name in names)
        detail = "; ".join((short_text(condition), *values))
        self.judgement.refuse("broken", demand, words, first=UNCHANGED, detail=detail)

    def branch(self, demand: Branching, scope: RuleScope, path: str) -> None:
        for number, (condition, body) in enumerate(demand.branches):
            truth = self.decided(condition, scope, demand)
            # Without an answer, which branch counts is unknown, and so is everything in it.
            if truth is None:
                return
            if truth:
                self.body(body, scope.inner(), f"{path}.{number}")
                return
        self.body(demand.otherwise, scope.inner(), f"{path}.else")

    def wanted(self, pattern: CallPattern, demand: Demand, scope: RuleScope) -> dict[str, Value]:
        """The arguments that a pattern gives, by name."""

        def values() -> dict[str, Value]:
            pairs = pattern.arguments(self.policy.tools[pattern.tool].names)
            wanted = {name: scope.value(tree) for name, tree in pairs}
            for each in wanted.values():
                folded(each)  # what cannot be compared has no value
            return wanted

        return self.needed(values, demand)

    def sights(self, pattern: CallPattern, demand: Demand, scope: RuleScope) -> list[Sight]:
        """The results of such calls."""
        wanted = self.wanted(pattern, demand, scope)
        # Exactly these arguments: a result for another spelling may be about something else.
        return [each for each in self.history.matching(pattern.tool, wanted) if not _spelling(each.values, wanted)]

    def seen(self, demand: Seen, scope: RuleScope) -> None:
        sights = [each for pattern in demand.patterns for each in self.sights(pattern, demand, scope)]
        newest = max(sights, key=lambda sight: sight.number, default=None)
        state = "unseen" if newest is None else self.history.state_of(newest)
        if state != "fresh":
            call = self.call_text(demand.patterns[0], scope)
            why, first = {
                "unseen": ("there is none yet", f"Call {call} first."),
                "stale": ("the last one may be out of date", f"Call {call} again first."),
                "unanswered": ("a call that may change it has not returned yet", "Wait for that call to return."),
            }[state]
            needed = f"{self.tool.name} needs a current result of {' or '.join(each.tool for each in demand.patterns)}"
            self.judgement.refuse(state, demand, f"{needed}, and {why}", first=first)
            raise JudgingStopped
        assert newest is not None
        if newest.value is None if demand.name is not None else not newest.whole:
            self.judgement.undecided(demand, f"the result of {demand.patterns[0].tool} is not of its type")
        if demand.name is not None:
            scope[demand.name] = cast(Value, newest.value)

    def seen_all(self, pattern: CallPattern, demand: Demand, scope: RuleScope) -> Value:
        values: list[Value] = []
        for sight in self.sights(pattern, demand, scope):
            # Left out and not refused: the rule asks for what still holds.
            if self.history.state_of(sight) != "fresh":
                continue
            if sight.value is None:
                self.judgement.undecided(demand, f"a result of {pattern.tool} is not of its type")
            values.append(sight.value)
        return tuple(values)

    def call_text(self, pattern: CallPattern, scope: RuleScope) -> str:
        """The call that an agent should make; what only the host knows is left out."""
        shown: list[str] = []
        for name, tree in pattern.arguments(self.policy.tools[pattern.tool].names):
            text = "..." if scope.hides(tree) else shown_argument(scope.value(tree))
            shown.append(f"{name}={text if len(text) <= _MOST_SHOWN else '...'}")
        return f"{pattern.tool}({', '.join(shown)})"

    def done(self, demand: Done, scope: RuleScope) -> None:
        tool = demand.pattern.tool
        wanted = self.wanted(demand.pattern, demand, scope)
        calls = self.history.made(tool, wanted)
        if demand.negated:
            if next(calls, None) is not None:
                self.judgement.refuse(
                    "done_already", demand, f"{self.tool.name} is not allowed once {tool} has been called"
                )
            return
        if not any(
            # In another spelling a call permits nothing, while for `not done` above it counts.
            call.status == "succeeded" and call.whole and call.values is not None and not _spelling(call.values, wanted)
            for call in calls
        ):
            first = f"Call {self.call_text(demand.pattern, scope)} first."
            self.judgement.refuse(
                "not_done", demand, f"{self.tool.name} is allowed only after {tool} has succeeded", first=first
            )

    def earlier(self, pattern: CallPattern, demand: Demand, scope: RuleScope) -> Value:
        wanted = self.wanted(pattern, demand, scope)
        values: list[Mapping[str, Value]] = []
        for call in self.history.made(pattern.tool, wanted):
            if call.values is None:
                self.judgement.undecided(demand, f"an earlier call of {pattern.tool} could not be read")
            if spelling := _spelling(call.values, wanted):
                self.spellings[spelling] = None
                if len(self.spellings) > _MOST_SPELLINGS:  # each more would double the ways to judge
                    self.judgement.undecided(
                        demand, f"earlier calls of {pattern.tool} write its arguments in too many ways"
                    )
                if self.same is not None and spelling not in self.same:
                    continue
            values.append(call.values)
        return tuple(map(Record, values))

    def limit(self, demand: Limit, scope: RuleScope, path: str) -> None:
        per = self.needed(lambda: [show_value(folded(scope.value(each))) for each in demand.per], demand)
        limit = (path, json.dumps(per))
        spent = [each for each in self.history.limits.get(limit, ()) if each.counts]
        if (within := demand.within) is not None:
            span = cast(timedelta, self.needed(lambda: scope.value(within), demand))
            if self.clock is None:
                self.judgement.undecided(demand, NO_TIME)
            if span <= timedelta():
                self.judgement.undecided(demand, "within no time at all nothing can be counted")
            since = cast(timedelta, self.clock["at"]) - span
            spent = [each for each in spent if each.at is None or each.at > since]
        # Plus those of this very call: in a loop, each item counts against the limit.
        if len(spent) + sum(each == limit for each in self.judgement.spent) >= demand.most:
            times = "once" if demand.most == 1 else f"{demand.most} times"
            of_each = "".join(f" per {short_text(each)}" for each in demand.per)
            period = "" if within is None else f" within {short_text(within)}"
            words = f"{self.tool.name} may be called at most {times}{of_each}{period}, and that limit is reached"
            self.judgement.refuse("spent", demand, words)
        # Also where it is reached: an observed call counts against the limit all the same.
        self.judgement.spent.append(limit)


def _spelling(values: Mapping[str, Value], wanted: Mapping[str, Value]) -> Spelling:
    """The arguments that are not exactly those that are wanted; empty where all are."""
    return tuple(show_value(values[name]) for name, value in wanted.items() if not same_value(values[name], value))
