"""Which claims of a transcript belong to which round: by their labels, or in order where as many stand there.

Claims that may belong to several rounds are set aside with the reason, and never given to one of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import get_args

from stepguard.auditing.claim_groups import ClaimGroup
from stepguard.auditing.labels import Headings, Labels
from stepguard.auditing.names import Entry
from stepguard.auditing.numberings import Numberings
from stepguard.auditing.occurrences import (
    Label,
    LoopChain,
    Places,
    RoundPattern,
    Style,
    ambiguous,
    innermost,
    pattern,
    weaker,
)
from stepguard.auditing.states import Judge
from stepguard.auditing.ways import Key, Reached, Way
from stepguard.language.expression_parsing import parse_expression
from stepguard.language.expressions import names_in
from stepguard.language.values import Value

_MOST_WALKS = 8
_ELSEWHERE = "which round it belongs to hangs on where the loops before it end"


class Alignment:
    """The claims of a transcript by the steps that they belong to.

    Args:
        places: where the names of the procedure are set.
        numberings: what stands beside the claims.
    """

    def __init__(self, entries: Iterable[Entry], labels: Labels, places: Places, numberings: Numberings) -> None:
        self.groups: list[ClaimGroup] = []
        self.claims_at: dict[Key, list[Entry]] = {}
        self._places = places
        self._numberings = numberings
        self._unplaced: dict[str, ClaimGroup] = {}
        self._index: dict[tuple[str, LoopChain, RoundPattern], ClaimGroup] = {}
        self._indexed: list[tuple[Style, ClaimGroup, int, int, LoopChain]] = []
        sorted_out: dict[tuple[str, Label, Label], list[Entry]] = {}
        headings = Headings(labels, places)
        for entry in entries:
            name, label = labels.aliases.get(entry.name, (entry.name, ()))
            if name in places.steps:
                context = headings.over(name, entry.start)
                numeric = tuple(side for side in entry.work if not names_in(parse_expression(side)))
                sorted_out.setdefault((name, label, context), []).append(replace(entry, name=name, work=numeric))
        self._start_states(sorted_out)
        made = [round for _, label, context in sorted_out for round in (*label, *context)]
        # Counting begins at 1, unless there is a 0; for indices it is seen later on whether that can be.
        self._base = dict.fromkeys(get_args(Style), 1) | {each.style: 0 for each in made if each.number == 0}
        self._base["item"] = 0
        for (name, label, context), claims in sorted_out.items():
            self._group(name, label, context, claims)

    def _start_states(self, sorted_out: dict[tuple[str, Label, Label], list[Entry]]) -> None:
        """Take the number off claims of a round 0 that is what is there in front of the first round.

        It is where all claims with that number are about names that are set in front of their loop, too, and of which
        nothing else says what they are there.
        """
        zero = [
            key for key in sorted_out if [each.number for each in (*key[1], *key[2]) if each.style != "path"] == [0]
        ]
        if all(
            (name, (), ()) not in sorted_out
            and any(not any(loop.rounds for loop in chain) for chain in self._places.chains[name])
            for name, _, _ in zero
        ):
            for key in zero:
                sorted_out.setdefault((key[0], (), ()), []).extend(sorted_out.pop(key))

    def _group(self, name: str, label: Label, context: Label, claims: list[Entry]) -> None:
        label, context = self._from_zero(label), self._from_zero(context)
        chains: dict[LoopChain, RoundPattern] = {}
        unsaid = unsure = False
        for chain in self._places.chains[name]:
            own = innermost(context, chain)
            numbers = pattern((*own, *label), chain)
            if numbers is None and label:
                numbers = pattern(label, chain)
            unsaid = unsaid or ambiguous(label or own, chain)
            if numbers is not None:
                chains[chain] = numbers
            unsure = unsure or (numbers is None and bool(own))
        # A label that fits several loops places its claim in none: guessed, it would be held against another round.
        chains = {} if unsaid else chains
        known = None if chains else self._unplaced.get(name)
        group = known or ClaimGroup(name, [], chains)
        group.entries += claims
        if known is None:
            self.groups.append(group)
        if not chains:
            self._unplaced[name] = group
            group.dropped = "which round it belongs to is not said" if unsaid or unsure or label else "it has no place"
        for chain, numbers in chains.items():
            if (
                any(number is not None for number in numbers)
                or (name, chain, numbers) not in self._index
                or not context
            ):
                other = self._index.get((name, chain, numbers))
                if other is not None and other is not group and other.chains == chains:
                    other.entries += claims  # the same round, in another way of writing
                    other.entries.sort(key=lambda each: each.start)
                    self.groups.pop()
                    group = other
                    break
                if other is None or len(other.chains) >= len(chains):  # who means this place alone goes first
                    self._index[name, chain, numbers] = group
            indices = (each.style for each in (*label, *context) if each.style not in ("word", "item"))
            for at, loop in enumerate(chain):
                if loop.rounds and numbers[at] is not None and (style := next(indices, None)) is not None:
                    self._indexed.append((style, group, at, numbers[at] or 0, chain))

    def _from_zero(self, label: Label) -> Label:
        return tuple(
            each if each.number is None else replace(each, number=each.number - self._base[each.style])
            for each in label
        )

    def walk(
        self,
        take: Callable[[Callable[[Reached, Value | None], Value | None]], Way],
        judge: Callable[[Reached], Judge],
        right: Callable[[], Way],
    ) -> Way:
        """Align the claims along the way that they lead.

        Args:
            take: goes the way, given a function that says the value of a step, given the one that follows without it.
            judge: reads the claims about a step.
            right: goes the right way.
        """
        groups = [each for each in self.groups if not each.dropped]
        for number in range(_MOST_WALKS):
            self.claims_at = {}
            for group in groups:
                group.reached, group.right = [], []

            def value(reached: Reached, computed: Value | None) -> Value | None:
                entries = self._of(reached, computed)
                values = [claimed for entry in entries if (claimed := judge(reached).read(entry)) is not None]
                return values[-1] if values else computed

            way = take(value)
            if not self._settle(way, judge, right, last=number >= _MOST_WALKS - 2):
                break
        return way

    def _of(self, reached: Reached, computed: Value | None) -> list[Entry]:
        """The claims about a step that is reached, noted as such."""
        for numbers in weaker(reached.rounds):
            group = self._index.get((reached.name, reached.chain, numbers))
            if group is not None and group.set_aside:
                return []
            if group is not None:
                entries = group.of(len(group.reached))
                group.reached.append(reached.key)
                group.right.append(computed)
                if entries:
                    self.claims_at[reached.key] = entries
                return entries
        return []

    def _settle(self, way: Way, judge: Callable[[Reached], Judge], right: Callable[[], Way], *, last: bool) -> bool:
        """Look at what was aligned; whether the way has to be gone again because something was not."""
        again = self._first_round(way)
        steps = {each.key: each for each in way.reached}
        there: dict[int, list[Key]] = {}
        for group in self.groups:
            if group.dropped or not group.reached:
                continue
            count, rounds = len(group.entries), len(group.reached)
            broken = way.open or way.failure is not None
            pinned = all(
                number is not None or not loop.rounds
                for chain, numbers in group.chains.items()
                for loop, number in zip(chain, numbers, strict=True)
            )
            single = rounds == 1 and pinned and not (broken and any(any(chain) for chain in group.chains))
            if single or (rounds == 1 == count):
                again, group.single = again or (count > 1 and not group.single), True
                continue
            reader = judge(steps[group.reached[0]])
            claimed = [reader.read(entry) for entry in group.entries]
            labelled = any(number is not None for numbers in group.chains.values() for number in numbers)
            first = not labelled or len(group.chains) == 1
            fitting = claimed[:rounds] == group.right[:count] and None not in claimed[:rounds]
            fitting = fitting and claimed[-1] not in group.right[count:]  # or else any of them may be the one left out
            if not labelled and not fitting and not there:
                there = self._reached_by(right())
            keys = group.reached if labelled or fitting else there.get(id(group), [])
            sure = _common(keys, group.reached)
            if group.single or last or (count != rounds and not (first and fitting and count > 1)):
                shown = f"{count} for {rounds} rounds, and which belongs to which is not said"
                again, group.dropped = True, f"the number of claims is {shown}"
                group.sure = sure if count == len(keys) and not group.single else 0
            elif count == rounds and not fitting and sorted(map(repr, claimed)) == sorted(map(repr, group.right)):
                again, group.dropped = True, "the right values stand there in another order than that of the rounds"
            elif sure < min(len(keys), rounds) and claimed[sure:] != group.right[sure:]:
                again, group.sure = True, sure
                group.dropped = _ELSEWHERE
            elif not group.dropped and (beside := self._contradiction(group, steps)):
                again, group.dropped = True, f"{beside} may mean other rounds than the order of the claims"
        return again

    def _reached_by(self, way: Way) -> dict[int, list[Key]]:
        """The steps of a way by the group of claims that belong to them."""
        keys: dict[int, list[Key]] = {}
        for reached in way.reached:
            for numbers in weaker(reached.rounds):
                if (group := self._index.get((reached.name, reached.chain, numbers))) is not None:
                    keys.setdefault(id(group), []).append(reached.key)
                    break
        return keys

    def _contradiction(self, group: ClaimGroup, steps: dict[Key, Reached]) -> str:
        """What stands beside the claims of a group and contradicts their order."""
        pairs = list(zip(group.entries, (steps[key] for key in group.reached), strict=False))
        return self._numberings.contradiction(
            [(entry.start, entry.end) for entry, _ in pairs],
            [reached.rounds for _, reached in pairs],
            [reached.item for _, reached in pairs],
        )

    def _first_round(self, way: Way) -> bool:
        """Set indices aside of which it cannot be told whether they begin at 0 or at 1; whether any was."""
        waiting = [each for each in self._indexed if self._base[each[0]] and not each[1].dropped]
        rounds: dict[tuple[str, LoopChain, int], int] = {}
        for each in way.reached if waiting else ():
            for at, number in enumerate(each.rounds):
                key = each.name, each.chain, at
                rounds[key] = max(rounds.get(key, 0), number + 1)
        sure = {
            style for style, group, at, number, chain in waiting if number + 1 >= rounds.get((group.name, chain, at), 0)
        }
        unsure = [group for style, group, *_ in waiting if style not in sure]
        for group in unsure:
            group.dropped = "whether its first round is 0 or 1 is not said"
        return bool(unsure)

    def place_surplus(self, way: Way) -> None:
        """Give claims that the transcript's own way does not come to, to the steps of another way, where they fit."""
        keys_of_group = self._reached_by(way)
        for group in self.groups:
            keys, surplus = keys_of_group.get(id(group), []), group.surplus
            sure = _common(keys, group.reached)
            if not surplus or len(keys) == sure:
                continue
            if len(keys) == 1 and not group.reached:
                self.claims_at[keys[0]], group.reached = group.entries, keys
            elif sure == len(group.reached) and len(keys) == len(group.entries):
                self.claims_at |= {key: [entry] for key, entry in zip(keys[sure:], surplus, strict=True)}
                group.reached = keys
            elif sure < len(group.reached):
                for key in group.reached[sure:]:
                    del self.claims_at[key]
                group.reached, group.sure, group.dropped = group.reached[:sure], sure, _ELSEWHERE

    def set_aside(self, reached: Reached) -> ClaimGroup | None:
        """The claims that may be about a step and are set aside."""
        for numbers in weaker(reached.rounds):
            group = self._index.get((reached.name, reached.chain, numbers))
            if group is not None and group.dropped:
                return group
        return self._unplaced.get(reached.name)

    def loose(self) -> frozenset[str]:
        """The names of claims that belong nowhere although their label has a number: it may mean something else."""
        numbers: dict[tuple[str, LoopChain], set[int]] = {}
        for group in self.groups:
            for chain, meant in group.chains.items():
                numbers.setdefault((group.name, chain), set()).update(each for each in meant if each is not None)
        return frozenset(
            group.name
            for group in self.groups
            if not group.reached and not group.dropped
            for chain, meant in group.chains.items()
            if any(each is not None and each - 1 not in numbers[group.name, chain] for each in meant)
        )

    def left(self, used: Sequence[ClaimGroup]) -> list[tuple[ClaimGroup, list[Entry]]]:
        """The claims that belong to no step that is reached."""
        known = {id(claim_group) for claim_group in used}
        return [
            (group, entries)
            for group in self.groups
            if id(group) not in known and not (group.single and group.reached)
            if (entries := group.entries[len(group.reached) :])
        ]


def _common(keys: Sequence[Key], others: Sequence[Key]) -> int:
    """How many keys two ways have in common from the first on."""
    pairs = enumerate(zip(keys, others, strict=False))
    return next((at for at, (key, other) in pairs if key != other), min(len(keys), len(others)))
