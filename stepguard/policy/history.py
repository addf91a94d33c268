"""The history of a conversation as the rules see it: calls let through, results, facts, yeses, limits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import chain
from typing import Any, Final, Literal

from stepguard.language.terms.measure_arithmetic import same_value
from stepguard.language.values import Value
from stepguard.policy.decisions import Decision
from stepguard.policy.reading import folded

CallStatus = Literal["pending", "succeeded", "failed", "not_done"]
"""``pending``: not answered yet. ``failed``: it failed, and may have done something all the same. ``not_done``: it is
known to have done nothing."""

# Moments are kept as whole microseconds: a float of JSON could move one across the end of a limit's period.
_TICK: Final = timedelta(microseconds=1)


@dataclass(slots=True)
class LetThrough:
    """A call that was let through.

    Attributes:
        number: its number in the conversation, from 0.
        values: its arguments by name, None where they could not be read.
        data: its arguments as the tool was given them.
        status: what came of it.
        at: when it was let through, since 1970; None where the host gave no time.
        spent: the limits that it counts against, each with its key.
        yeses: who said yes to it.
        result: what it gave back, as it came.
        open: the numbers of the calls that change something and were not answered when it was let through.
    """

    number: int
    id: str
    tool: str
    values: dict[str, Value] | None
    data: dict[str, Any]
    key: str
    status: CallStatus = "pending"
    at: timedelta | None = None
    spent: tuple[tuple[str, str], ...] = ()
    yeses: tuple[str, ...] = ()
    result: Any = None
    open: tuple[int, ...] = ()
    whole: bool = field(init=False, default=True)
    """Whether its result is of the type that is declared, as what only tells of an error is not."""
    plain: dict[str, Value] = field(init=False, default_factory=dict)
    """Its arguments as they are counted, worked out once."""

    def __post_init__(self) -> None:
        # Every later call is held against these: folded each time, a long conversation would take quadratic time.
        if self.values is not None:
            self.plain = {name: folded(value) for name, value in self.values.items()}

    def to_dict(self) -> dict[str, Any]:
        """The call as plain data."""
        return {
            "id": self.id, "tool": self.tool, "arguments": self.data, "key": self.key, "status": self.status,
            "read": self.values is not None, "at": None if self.at is None else self.at // _TICK,
            "spent": [list(each) for each in self.spent], "yeses": list(self.yeses), "open": list(self.open),
            "result": self.result,
        }  # fmt: skip

    @classmethod
    def from_dict(cls, state: Mapping[str, Any], number: int, values: dict[str, Value] | None) -> LetThrough:
        """The call that `to_dict` wrote, with its number and its arguments as they were read again."""
        return cls(
            number, state["id"], state["tool"], values, dict(state["arguments"]), state["key"], state["status"],
            None if state["at"] is None else state["at"] * _TICK, tuple((path, key) for path, key in state["spent"]),
            tuple(state["yeses"]), state["result"], tuple(state["open"]),
        )  # fmt: skip

    def says(self, tool: str, values: Mapping[str, Value] | None, data: Mapping[str, Any]) -> bool:
        """Whether arguments of a tool say what those of this call say, however their numbers are written."""
        if self.tool != tool or self.values is None or values is None:
            return (self.tool, self.data) == (tool, data)
        further = [{name: each for name, each in given.items() if name not in values} for given in (self.data, data)]
        return further[0] == further[1] and all(same_value(self.values[name], each) for name, each in values.items())

    def allowed(self) -> Decision:
        """The decision that let it through."""
        # A tool may change its arguments; what the rules look at stays.
        return Decision("allow", self.tool, self.id, deepcopy(self.data), key=self.key, number=self.number)

    @property
    def counts(self) -> bool:
        """Whether it has done something, or may have."""
        return self.status != "not_done"


@dataclass(slots=True)
class Sight:
    """A result that rules may look at.

    Attributes:
        values: the arguments of the call that it answers, by name.
        value: what of it is declared; None where no type is, or it is no value of that.
        whole: whether nothing that is declared is missing in it.
        number: the call that brought it.
        open: the calls that were not answered when that one was made: whether they came before is not known.
        stale_by: the calls that make it stale, unless they have done nothing.
    """

    values: dict[str, Value]
    value: Value | None
    whole: bool
    number: int
    open: tuple[int, ...] = ()
    stale_by: list[int] = field(default_factory=list)
    plain: dict[str, Value] = field(init=False, default_factory=dict)
    """Its arguments as they are counted, worked out once."""

    def __post_init__(self) -> None:
        self.plain = {name: folded(value) for name, value in self.values.items()}


class CallHistory:
    """Everything of one conversation that a rule can depend on."""

    def __init__(self) -> None:
        self.calls: list[LetThrough] = []
        self.by_tool: dict[str, list[LetThrough]] = {}
        self.by_id: dict[str, LetThrough] = {}
        self.limits: dict[tuple[str, str], list[LetThrough]] = {}
        self._sights: dict[str, dict[tuple[Value, ...], list[Sight]]] = {}
        self._changes: dict[str, list[tuple[dict[str, Value], int]]] = {}
        self._all_changed: dict[int, None] = {}
        self._by_argument: dict[tuple[str, str, Value], list[LetThrough]] = {}
        self._unread: dict[str, list[LetThrough]] = {}
        self._keys_by_argument: dict[tuple[str, str, Value], list[tuple[Value, ...]]] = {}

    def add(self, call: LetThrough) -> None:
        self.calls.append(call)
        self.by_tool.setdefault(call.tool, []).append(call)
        self.by_id[call.id] = call
        if call.values is None:
            self._unread.setdefault(call.tool, []).append(call)
        for name, value in call.plain.items():
            self._by_argument.setdefault((call.tool, name, value), []).append(call)
        for limit in call.spent:
            self.limits.setdefault(limit, []).append(call)

    def see(self, tool: str, sight: Sight) -> None:
        """Add a result that rules may look at, in place of an older one of the same call."""
        key = _key(sight.plain)
        sights = self._sights.setdefault(tool, {})
        if key not in sights:
            for name, value in sight.plain.items():
                self._keys_by_argument.setdefault((tool, name, value), []).append(key)
        same = sights.setdefault(key, [])
        # Results may come in another order than their calls; that of the later call counts.
        if any(each.values == sight.values and each.number > sight.number for each in same):
            return
        same[:] = [each for each in same if each.values != sight.values]
        same.append(sight)
        # Changes while this call was under way: whether it saw the state before or after is not known.
        for wanted, number in reversed(self._changes.get(tool, ())):
            if number < min(sight.open, default=sight.number):
                break
            if (number > sight.number or number in sight.open) and _fits(sight, wanted):
                sight.stale_by.append(number)

    def changed(self, tool: str, wanted: dict[str, Value], number: int) -> None:
        """Note that a call makes the results of these calls stale."""
        plain = {name: folded(value) for name, value in wanted.items()}
        self._changes.setdefault(tool, []).append((plain, number))
        for sight in self._candidates(tool, plain):
            if sight.number < number and _fits(sight, plain):
                sight.stale_by.append(number)

    def changed_all(self, number: int) -> None:
        """Note that a call makes every earlier result stale."""
        self._all_changed[number] = None

    def matching(self, tool: str, wanted: dict[str, Value]) -> list[Sight]:
        """The results of calls with such arguments, and of those that a reader takes for the same."""
        plain = {name: folded(value) for name, value in wanted.items()}
        return [each for each in self._candidates(tool, plain) if _fits(each, plain)]

    def made(self, tool: str, wanted: dict[str, Value]) -> Iterator[LetThrough]:
        """The calls that count, with such arguments as a reader takes for the same; those that were not read count."""
        plain = {name: folded(value) for name, value in wanted.items()}
        listed = [self._by_argument.get((tool, name, value), []) for name, value in plain.items()]
        # Calls whose arguments could not be read may have been any: they count for every pattern.
        unread = self._unread.get(tool, []) if listed else []
        # The argument with the fewest earlier calls: a long conversation is not searched as a whole.
        read = min(listed, key=len) if listed else self.by_tool.get(tool, [])
        for call in chain(unread, read):
            if call.counts and (call.values is None or all(call.plain[name] == value for name, value in plain.items())):
                yield call

    def state_of(self, sight: Sight) -> Literal["fresh", "stale", "unanswered"]:
        """Whether a result still holds: fresh, stale, or not known until open calls are answered."""
        # Calls that were open when the result was asked for may have changed it in the meantime.
        since = [number for number in sight.open if number in self._all_changed]
        for number in reversed(self._all_changed):
            if number <= sight.number:
                break
            since.append(number)
        status = [self.calls[number].status for number in (*sight.stale_by, *since)]
        if "pending" in status:
            return "unanswered"
        return "stale" if any(each != "not_done" for each in status) else "fresh"

    def _candidates(self, tool: str, plain: dict[str, Value]) -> list[Sight]:
        sights = self._sights.get(tool, {})
        some = next(iter(sights.values()), None)
        # All arguments are given, as in most rules: one look-up, and no search.
        if some and plain.keys() == some[0].values.keys():
            return sights.get(_key(plain), [])
        if plain:
            # As in `made`: by the argument that the fewest results share.
            listed = [self._keys_by_argument.get((tool, name, value), []) for name, value in plain.items()]
            return [sight for key in min(listed, key=len) for sight in sights[key]]
        return [sight for same in sights.values() for sight in same]


def _fits(sight: Sight, plain: dict[str, Value]) -> bool:
    return all(sight.plain[name] == value for name, value in plain.items())


def _key(plain: dict[str, Value]) -> tuple[Value, ...]:
    return tuple(plain[name] for name in sorted(plain))
