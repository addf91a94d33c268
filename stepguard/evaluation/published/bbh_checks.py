"""The checks of BIG-Bench-Hard's steps: each from the values that the step reads, and from its own words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final

from stepguard.core.verdicts import Claim
from stepguard.language.records import Record
from stepguard.language.values import Value

if TYPE_CHECKING:
    from stepguard.procedure.steps import Step


# Declared knowledge of the counting of objects: what is not in it is left out, and never guessed.
_THINGS: Final[Mapping[str, str]] = {
    "animals": "bear cat chicken cow dog donkey duck fish frog goat horse mouse mice pig rabbit sheep snail snake",
    "fruits": "apple banana blackberry blackberries cherry cherries grape kiwi lemon mango mangoes nectarine orange "
    "peach peaches pear plum raspberry raspberries strawberry strawberries",
    "vegetables": "broccoli cabbage carrot cauliflower celery cucumber garlic lettuce onion pea pepper potato potatoes "
    "radish radishes spinach tomato tomatoes yam",
    "musical instruments": "accordion cello clarinet drum flute guitar harp piano saxophone trombone trumpet tuba "
    "violin",
    "others": "bed bicycle car chair couch couches desk fridge lamp microwave oven sofa stove table toaster vase",
}
_KINDS: Final = {word: kind for kind, words in _THINGS.items() for word in words.split()}
_MEASURES: Final = ("head of ", "heads of ", "stalk of ", "stalks of ")


def kind_of_thing(thing: str) -> str | None:
    """The kind of a thing, in the singular or plural; None where we do not know it."""
    for measure in _MEASURES:
        thing = thing.removeprefix(measure)
    thing = thing.removesuffix(" heads").removesuffix(" head")
    return _KINDS.get(thing) or _KINDS.get(thing.removesuffix("s")) or _KINDS.get(thing.removesuffix("es"))


_FORWARD: Final = {"north": (0, 1), "east": (1, 0), "south": (0, -1), "west": (-1, 0)}
_COMPASS: Final = ("north", "east", "south", "west")
_QUARTERS: Final = {"right": 1, "around": 2, "backward": 2, "left": 3}
_WORDS: Final = {
    "a": 1, "an": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8,
    "nine": 9, "ten": 10,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class SwapCheck:
    """Whether each of two people has what the other had. Where what they had stands, is said by name."""

    one: str
    other: str
    from_one: str
    from_other: str

    __name__: ClassVar[str] = "the swap"

    def __call__(self, step: Step, values: Mapping[str, Value], claim: Claim, /) -> bool:
        """Whether it is so."""
        after = values[step.id]
        before = _thing_of(values[self.from_one], self.one), _thing_of(values[self.from_other], self.other)
        return isinstance(after, Record) and (after[self.other], after[self.one]) == before


@dataclass(frozen=True, slots=True)
class AnswerCheck:
    """Whether an answer names what somebody has among the options, or whether a place is the start."""

    who: str
    place: str

    __name__: ClassVar[str] = "the answer"

    def __call__(self, step: Step, values: Mapping[str, Value], claim: Claim, /) -> bool:
        """Whether it does."""
        answer, holder = values[step.id], values[self.place]
        if "options" in values:
            listed = dict(each.split(": ", 1) for each in str(values["options"]).split("; "))
            return listed.get(str(answer)) == _thing_of(holder, self.who)
        return isinstance(holder, Record) and (holder["x"] == holder["y"] == 0) == (answer == "Yes")


@dataclass(frozen=True, slots=True)
class SaysCheck:
    """Whether a speaker's honesty is that of what is said: of `whom`, or of the speaker where that is empty."""

    whom: str
    what: str

    __name__: ClassVar[str] = "what is said"

    def __call__(self, step: Step, values: Mapping[str, Value], claim: Claim, /) -> bool:
        """Whether it is."""
        stated = self.what == "tells the truth"
        honest = values[self.whom] is stated if self.whom else stated
        return values[step.id] is honest


@dataclass(frozen=True, slots=True)
class MoveCheck:
    """Whether a move from one place leads to another."""

    move: str
    before: str

    __name__: ClassVar[str] = "the move"

    def __call__(self, step: Step, values: Mapping[str, Value], claim: Claim, /) -> bool:
        """Whether it does."""
        start, end = values[self.before], values[step.id]
        if not isinstance(start, Record):  # where everybody starts, in words
            start = Record({"x": 0, "y": 0, "facing": "north"})
        words = self.move.rstrip(".").split()
        facing, x, y = str(start["facing"]), start["x"], start["y"]
        assert isinstance(x, int)
        assert isinstance(y, int)
        quarters = _QUARTERS.get(words[-1], 0)
        point = _COMPASS[(_COMPASS.index(facing) + quarters) % 4]
        if words[0] == "Turn":
            return end == Record({"x": x, "y": y, "facing": point})
        right, up = _FORWARD[point]
        count = int(words[1])
        return end == Record({"x": x + right * count, "y": y + up * count, "facing": facing})


@dataclass(frozen=True, slots=True)
class CountCheck:
    """How many things of a kind a piece of the list names."""

    piece: str
    wanted: str

    __name__: ClassVar[str] = "the count"

    def __call__(self, step: Step, values: Mapping[str, Value], claim: Claim, /) -> bool:
        """Whether it is the claimed number."""
        number, thing = self.piece.split(" ", 1)
        counts = self.wanted == "objects" or kind_of_thing(thing) == self.wanted
        return values[step.id] == (_WORDS[number] if counts else 0)


def _thing_of(value: Value, who: str) -> Value:
    return value[who] if isinstance(value, Record) else value
