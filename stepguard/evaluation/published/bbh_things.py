"""What kinds of things there are, as far as we know: declared knowledge of the counting of objects."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

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
