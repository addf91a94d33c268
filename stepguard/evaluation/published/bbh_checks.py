"""The checks of BIG-Bench-Hard's steps: each from the values that the step reads, and from its own words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from stepguard.language.records import Record
from stepguard.language.values import Value

StepValues = Mapping[str, Value]

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


def swapped(after: Value, values: StepValues, one: str, other: str, from_one: str, from_other: str) -> bool:
    """Whether each of two people has what the other had. Where what they had stands, is said by name."""
    before = _thing_of(values[from_one], one), _thing_of(values[from_other], other)
    return isinstance(after, Record) and (after[other], after[one]) == before


def names_option(answer: Value, values: StepValues, who: str, place: str) -> bool:
    """Whether an answer is the letter of what somebody has among the options."""
    listed = dict(option.split(": ", 1) for option in str(values["options"]).split("; "))
    return listed.get(str(answer)) == _thing_of(values[place], who)


def returns(answer: Value, values: StepValues, place: str) -> bool:
    """Whether an answer says of a place whether it is the start."""
    end = values[place]
    return isinstance(end, Record) and (end["x"] == end["y"] == 0) == (answer == "Yes")


def honest(claimed: Value, values: StepValues, whom: str, statement: str) -> bool:
    """Whether a speaker's honesty is that of what is said: of `whom`, or of the speaker where that is empty."""
    stated = statement == "tells the truth"
    return claimed is (values[whom] is stated if whom else stated)


def moved(end: Value, values: StepValues, move: str, before: str) -> bool:
    """Whether a move from one place leads to another."""
    start = values[before]
    if not isinstance(start, Record):  # where everybody starts, in words
        start = Record({"x": 0, "y": 0, "facing": "north"})
    words = move.rstrip(".").split()
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


def counted(claimed: Value, values: StepValues, piece: str, kind: str) -> bool:
    """Whether a number is how many things of a kind a piece of the list names."""
    number, thing = piece.split(" ", 1)
    return claimed == (_WORDS[number] if kind in ("objects", kind_of_thing(thing)) else 0)


def _thing_of(value: Value, who: str) -> Value:
    return value[who] if isinstance(value, Record) else value
