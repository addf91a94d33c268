"""Where the names of a procedure are set: in which loops and calls, and which of their rounds a label means."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import Final, Literal

from stepguard.language.expressions import format_expression
from stepguard.language.terms.operands import is_variable
from stepguard.procedure.procedure import Procedure
from stepguard.procedure.statements import Body, ForEach, If, ProcedureCall, Repeat
from stepguard.procedure.steps import Step

GENERIC: Final = frozenset(("round", "iteration", "pass", "cycle", "loop"))
_OF_ITEMS: Final = frozenset(("item", "entry", "element"))


@dataclass(frozen=True, slots=True)
class Loop:
    """A loop or a call around a step: its site, the words that mean it, whether it has rounds, and its variable."""

    site: str
    words: frozenset[str]
    rounds: bool
    variable: str = ""


LoopChain = tuple[Loop, ...]
"""The loops and calls around a step, the outermost first."""


Style = Literal["word", "path", "index", "item"]


@dataclass(frozen=True, slots=True)
class Round:
    """What a label says: a word (none behind an index), the number as written, and how it is written.

    The number of an item that is named, as in ``paid for Lamp``, is its 0-based place in the list of the word.
    """

    word: str | None
    number: int | None
    style: Style = "word"


Label = tuple[Round, ...]


class Places:
    """Where the names of a procedure are set.

    Attributes:
        steps: one step for each name; calls are among them.
        chains: the loops and calls around each place where a name is set.
        lists: the names of the lists that loops are over.
    """

    def __init__(self, procedure: Procedure) -> None:
        self.lists: set[str] = set()
        self.steps: dict[str, Step] = {}
        self.chains: dict[str, dict[LoopChain, None]] = {}
        self._of_site: dict[str, LoopChain] = {}
        self._beside: dict[tuple[str, LoopChain], list[tuple[str, str, Step]]] = {}
        self._walk(procedure.body, "", (), "", [])

    def _walk(self, body: Body, block: str, chain: LoopChain, condition: str, repeats: list[bool]) -> None:
        """Note the statements of a block; `repeats`: of the ones before it in its scope, whether each surely begins."""
        for number, statement in enumerate(body):
            site = f"{block}{number}"
            match statement:
                case Step():
                    self._set(statement, site, chain)
                    self._beside.setdefault((statement.id, chain), []).append((site, condition, statement))
                case If(branches, otherwise):
                    for at, (tested, inner) in enumerate((*branches, (branches[-1][0], otherwise))):
                        self._walk(inner, f"{site}.{at}.", chain, format_expression(tested), repeats)
                case ForEach(variable, over, inner):
                    words = {variable, *_OF_ITEMS, *GENERIC}
                    if is_variable(over):
                        self.lists.add(over.name)
                        words |= {over.name, over.name.removesuffix("s")}
                    self._walk(inner, f"{site}.", (*chain, Loop(site, lowered(words), True, variable)), condition, [])
                case Repeat(_, inner):
                    numbers = range(1 + sum(repeats), 2 + len(repeats))  # which of them it is on the way that is taken
                    words = {"repeat" if each == 1 else f"repeat{each}" for each in numbers} | GENERIC
                    repeats.append(not condition)
                    self._walk(inner, f"{site}.", (*chain, Loop(site, lowered(words), True)), "", [])
                case ProcedureCall(id, called):
                    self._set(Step(id, instruction=id, type=called.answer_type), site, chain)
                    self._walk(called.body, f"{site}.", (*chain, Loop(site, lowered({id}), False)), "", [])

    def _set(self, step: Step, site: str, chain: LoopChain) -> None:
        self.steps.setdefault(step.id, step)
        self.chains.setdefault(step.id, {})[chain] = None
        self._of_site[site] = chain

    def chain(self, site: str) -> LoopChain:
        """The loops and calls around the statement at a site."""
        return self._of_site[site]

    def beside(self, name: str, chain: LoopChain, site: str) -> Iterator[tuple[str, Step]]:
        """The steps of the same name in other branches, each with the condition of its branch."""
        return ((condition, step) for at, condition, step in self._beside.get((name, chain), ()) if at != site)

    @property
    def words(self) -> frozenset[str]:
        """The words that may head a round, without the names of steps."""
        loops = (loop for chains in self.chains.values() for chain in chains for loop in chain if loop.rounds)
        return frozenset(word for loop in loops for word in loop.words) - lowered(self.steps)


def lowered(words: Iterable[str]) -> frozenset[str]:
    return frozenset(word.lower() for word in words)


RoundPattern = tuple[int | None, ...]


def loops_meant(round: Round, chain: LoopChain) -> list[int]:
    """Which of the loops and calls around a step a word may mean; one that is over items of that name goes first."""
    places = [
        at for at, loop in enumerate(chain) if round.word in loop.words and loop.rounds == (round.number is not None)
    ]
    named = [at for at in places if chain[at].variable.lower() == round.word]
    return named if len(named) == 1 else places


def pattern(label: Label, chain: LoopChain) -> RoundPattern | None:
    """The numbers that a label gives to the loops around a step, as written; None where it cannot mean this place.

    A round that may be one of several loops is none: which of them is meant is not said.
    """
    numbers: list[int | None] = [None] * len(chain)
    bare = [each.number for each in label if each.word is None]
    rounds = [at for at, loop in enumerate(chain) if loop.rounds]
    if bare:
        if len(bare) != len(rounds) or len(bare) != len(label):
            return None
        for at, number in zip(rounds, bare, strict=True):
            numbers[at] = number
        return tuple(numbers)
    if len(label) == len(chain) and all(each.word in loop.words for each, loop in zip(label, chain, strict=True)):
        return tuple(each.number or 0 for each in label)  # the whole path
    for each in label:
        meant = loops_meant(each, chain)
        if len(meant) != 1 or numbers[meant[0]] is not None:
            return None
        numbers[meant[0]] = each.number if each.number is not None else 0
    return tuple(numbers)


def ambiguous(label: Label, chain: LoopChain) -> bool:
    """Whether a label that is no whole path has a word that may mean several of the loops around a step."""
    whole = len(label) == len(chain) and all(each.word in loop.words for each, loop in zip(label, chain, strict=True))
    return not whole and any(len(loops_meant(each, chain)) > 1 for each in label)


def innermost(context: Label, chain: LoopChain) -> Label:
    """The headings that mean a loop around a step, the last one of each."""
    kept: list[Round] = []
    taken: set[int] = set()
    for each in reversed(context):
        meant = loops_meant(each, chain)
        if meant and not (len(meant) == 1 and meant[0] in taken):
            kept.append(each)
            taken.update(meant if len(meant) == 1 else ())
    return tuple(reversed(kept))


def weaker(exact: tuple[int, ...]) -> Iterator[RoundPattern]:
    """Every pattern that fits the rounds of an occurrence, the most exact first."""
    places = range(len(exact))
    for size in range(len(exact), -1, -1):
        for kept in combinations(places, size):
            yield tuple(exact[at] if at in kept else None for at in places)
