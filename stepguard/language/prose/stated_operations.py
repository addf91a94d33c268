"""What words beside a formula say that is done, and whether the formula does it.

A formula is read for its effect, not for its letters: ``a - -5`` adds 5, ``a * 0.5`` and ``a / 2`` halve, ``a + a``
doubles, ``a * 80 / 100`` takes off 20%. Of words only those are held against it that say an operation with a figure or
with names of the step (``Divide total by 2``, ``10% of price``, ``Subtract fee from total``), that say as a whole which
operation it is (``Average of both``, ``Negate it``, ``Add them up``), or how is rounded.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction
from typing import Final

from stepguard.core.patterns import lazy_pattern
from stepguard.core.verdicts import shorten
from stepguard.language.currencies import CODES, WORDS
from stepguard.language.expressions import Call, Chain, Expression, Name, Negate, Number, Power, names_in, walk
from stepguard.language.prose.effects import MOST, Effect, constant
from stepguard.language.prose.mentioned import in_digits
from stepguard.language.prose.stated_figures import unheld_figures
from stepguard.language.terms.operands import Aggregate

_ROUNDED: Final = lazy_pattern(
    r"\b(?:round(?:ed|ing)?(?: (?:it|this|that|the \w+))? (?P<way>(?:half )?(?:up|down)|half even)|rounded"
    r"|(?<!before )(?<!without )(?<!no )rounding(?! (?:error|difference|loss|gain|adjustment))"
    r"|round(?: (?:off|to|it|half|the|this|that|all|each|and)\b|(?=[.,;)]|\Z))"
    r"|to (?:[0-9]|one|two|three|four) (?:decimals?|digits|(?:decimal |significant )(?:places?|digits|figures))\b"
    r"|(?P<cut>truncate|truncated(?=[.,;)]|\Z| to\b))|to the nearest"
    r"|(?:auf|ab)?gerundet|arrondie?s?|redondead[oa]s?)\b",
    re.IGNORECASE,
)
_UNBROKEN: Final = lazy_pattern(
    r"\bwhole numbers?\b|\b(?:number of|in|to the next) (?:whole|full|complete) \w+|\b(?:nearest|next) multiple\b",
    re.IGNORECASE,
)
_ROUNDING: Final = {"round": "", "floor": "floor", "ceil": "ceiling", "trunc": "down"}
_MODES: Final = {
    **{"up": {"up", "ceiling"}, "down": {"down", "floor"}},
    **{f"half {way}": {f"half_{way}"} for way in ("up", "down", "even")},
}
_PLACES: Final = lazy_pattern(r"\bto ([0-9]{1,2}) (?:decimals?|(?:decimal )?places?)\b", re.IGNORECASE)
_FIGURE: Final = (
    r"[$\u20ac\u00a3]?(?P<figure>[0-9]+(?:,[0-9]{3})*(?:\.[0-9]+)?"
    r"|a (?:half|third|quarter|tenth|hundred|thousand)|half)(?P<percent> ?%| per ?cent)?"
)
_MONEY: Final = "|".join((*WORDS, *CODES))
_CHANGED: Final = lazy_pattern(
    r"\b(?:(?P<more>add|plus|(?:increased?|raised?)(?: [^\W\d]+){0,3}? by)"
    r"|(?P<less>subtract|minus|deduct|take off|(?:reduced?|lower(?:ed)?|cut|decreased?)(?: [^\W\d]+){0,3}? by)"
    r"|(?P<times>multipl(?:y|ied)(?: [^\W\d]+){0,3}? by)|divided?(?: [^\W\d]+){0,3}? by)"
    rf" (?:another |an? (?:\w+ ){{1,2}}of )?{_FIGURE}(?: ?(?:{_MONEY})\b|(?<=%) (?:\w+ )?(?:tax|vat|discount))?"
    r"(?=[.,;)]?\Z|[.,;)] | (?:to|from|and|then) )",
    re.IGNORECASE,
)
"""``add 5``, ``add 5 dollars``, ``reduce it by 10%``, ``divide the total by 12``."""
_BY_A_SHARE: Final = lazy_pattern(r"\b(?:add|plus|by|subtract|minus|deduct|off|less)\b[^.;]*\Z", re.IGNORECASE)
_SHARE: Final = lazy_pattern(rf"(?<![\w.,])(?<!first )(?<!second )(?<!last )(?<!other ){_FIGURE} of\b", re.IGNORECASE)
_MULTIPLE: Final = lazy_pattern(
    r"\b(?P<verb>double|triple|quadruple|halve|square|cube)(?= (?:it|this|that|the|its|(?P<name>\w+))\b|\Z)"
    r"|\b(?P<done>doubled|tripled|quadrupled|halved|squared|cubed)\b",
    re.IGNORECASE,
)
_MULTIPLES: Final = {
    "double": Fraction(2), "triple": Fraction(3), "quadruple": Fraction(4), "halve": Fraction(1, 2),
}  # fmt: skip
_POWERS: Final = {"square": 2, "cube": 3}
_PARTS: Final = {"half": 2, "third": 3, "quarter": 4, "tenth": 10}
_LARGE: Final = {"hundred": 100, "thousand": 1000}
_OPERATED: Final = (  # sign, verb, what joins its operands, what stands in front of one, what is "of" both
    ("+", "add", "and|to", "plus|add", "sum"),
    ("-", "subtract|deduct|take", "from", "minus|subtract|deduct", "difference"),
    ("*", "multiply", "by|with|and", "times|multipl(?:y|ied)(?: it| this| that)? by", "product"),
    ("/", "divide", "by", "divided?(?: it| this| that)? by", "quotient"),
    ("max", "", "", "", "(?:larg|great|high|bigg)(?:er|est)|maximum"),
    ("min", "", "", "", "(?:small|low)(?:er|est)|minimum"),
)
_WHOLE: Final = (
    r"(?:\A|[.;:] |, |\b(?:and|then) )(?:now |first |next |simply )*(?:{verb})(?= (?:(?:it|them|this|that|both|all"
    r"|these|those|the (?:two|three|numbers|values|sum|product|difference|total|result))\b|{marked})|[.;,)]|\Z)"
    r"|\A(?:(?:find|take|compute|calculate|determine|get|work out|give|form) )?(?:the )?(?:{noun})"
    r"(?: (?:of|between) |[.,;)]|\Z)"
)
_KINDS: Final = tuple(
    (kind, lazy_pattern(_WHOLE.format(verb=verb, noun=noun, marked="\ue000[0-9]+\ue001")))
    for kind, verb, noun in (
        ("add", "add(?: up)?|sum(?: up)?|total", "sum"),
        ("subtract", "subtract|deduct", "difference"),
        ("multiply", "multiply", "product"),
        ("divide", "divide", "quotient|ratio"),
        ("divide", "average", "average|mean|arithmetic mean|median"),
        ("negate", "negate|change the sign of|flip the sign of", "negative|opposite|additive inverse"),
        ("invert", "invert", "reciprocal|inverse|multiplicative inverse"),
        ("root", "take the (?:square |cube )?root of", "(?:square|cube) root"),
        ("abs", "take the absolute value of", "absolute (?:value|difference)"),
        ("max", "(?!)", "(?:larg|great|high|bigg)(?:er|est)|maximum"),
        ("min", "(?!)", "(?:small|low)(?:er|est)|minimum"),
        ("remainder", "(?!)", "remainder"),
        ("power", "cube|square|raise to a power", "square|cube|(?:[a-z]+th )?power"),
    )
)
"""What words as a whole, or a clause of them by its verb, say of a formula: of these operations it has to have one."""
_MARKED: Final = "\ue000[0-9]+\ue001"
"""A name of the step, as its number: so the patterns are the same for all steps, and are compiled once."""
_OPERAND: Final = rf"(?:the )?({_MARKED}|[0-9]+(?:\.[0-9]+)?(?!\w|\.\w))"
_UNMARKED: Final = lazy_pattern(_MARKED)
_WORDS: Final = lazy_pattern(r"([^\W_]+)")


def _forms(verb: str, joined: str, front: str, noun: str) -> Iterator[re.Pattern[str]]:
    """The ways to say an operation: by a verb, by what stands between its operands, by a noun, and of one operand."""
    if verb:
        yield lazy_pattern(rf"\b(?:{verb}) {_OPERAND} (?:{joined}) {_OPERAND}")
        yield lazy_pattern(rf"(?<!\w){_OPERAND} (?:{front}) {_OPERAND}")
    yield lazy_pattern(rf"\b(?:{noun}) (?:of|between) {_OPERAND} and {_OPERAND}")
    if front:
        yield lazy_pattern(rf"\b(?:{front}) (?:the )?()({_MARKED})")


_SAID: Final = [(sign, noun, tuple(_forms(verb, joined, front, noun))) for sign, verb, joined, front, noun in _OPERATED]
_ARITHMETIC: Final = frozenset((Name, Number, Negate, Chain, Power, Call))
_HEAD: Final = lazy_pattern(
    r"(?:(?:work out|compute|calculate|determine|find|get|take|first|then|the) )*"
    r"(?:(?P<sum>sum)|(?P<average>average|mean)|(?P<min>smallest|lowest|least|minimum|cheapest)"
    r"|(?P<max>largest|highest|greatest|biggest|maximum|dearest))\b",
    re.IGNORECASE,
)
_LONGEST_FIGURE: Final = 1000


def contradicts(
    words: str, tree: Expression, places: int | None, rounding: str | None, *, whole: bool = False
) -> str | None:
    """What in the words beside a formula it does not do: round, or work with a figure; None where it does all of it.

    Args:
        places: the decimal places that the type rounds to.
        rounding: the mode in which it does.
        whole: whether the type holds whole numbers alone.
    """
    calls = [node for node in walk(tree) if type(node) is Call and node.function in _ROUNDING]
    modes = {node.mode or _ROUNDING[node.function] for node in calls} | ({rounding} if places is not None else set())
    chains = [node for node in walk(tree) if type(node) is Chain]
    modes |= {"floor" for node in chains if not {"//", "%"}.isdisjoint(node.operators)}
    rounded = _ROUNDED.search(words)
    if rounded is not None:
        way = "down" if rounded["cut"] else (rounded["way"] or "").lower()
        if not modes & _MODES.get(way, modes):
            return rounded[0]
    if not (whole or modes) and (said := _UNBROKEN.search(words)) is not None:
        return said[0]
    effect, words = Effect.of(tree), in_digits(words)
    said = _PLACES.search(words)
    to = {places, *(constant(node.arguments[1]) for node in calls if len(node.arguments) > 1)}
    if said is not None and int(said[1]) not in to:
        return said[0]
    # As tuples of words, so that `net price` in the words is `net_price` in the formula.
    names = {tuple(filter(None, name.lower().split("_"))): name for name in names_in(tree)}
    spoken, shown = _marked(" ".join(words.replace("_", " ").lower().split()), names if len(names) <= MOST else {})
    changed = (*_changes(words, effect), *_multiples(words, effect, names.values()))
    operated = (*_operations(spoken, shown, effect, tree), *_kinds(spoken, effect, tree))
    found = (
        *changed,
        *(_UNMARKED.sub(lambda mark: _shown(shown[mark[0]]), each).strip() for each in operated),
        *_aggregated(words, tree),
        *unheld_figures(words, tree, effect.factors | effect.added),
    )
    return next((shorten(each) for each in found), None)


def _changes(words: str, effect: Effect) -> Iterator[str]:
    """Where words say by which figure something is changed, and the formula does not."""
    more = any(sum(added for _, added in terms) > 1 for terms in effect.sums)
    less = any(not added for terms in effect.sums for _, added in terms)
    for said in _CHANGED.finditer(words):
        amount = _amount(said)
        share = bool(said["percent"]) or said["figure"][-1].isalpha()
        if amount is None:
            yield said[0]
        elif said["more"] or said["less"]:
            sign = 1 if said["more"] else -1
            shared = share and (
                1 + sign * amount in effect.factors or (amount in effect.factors and (more if sign > 0 else less))
            )
            if not shared and sign * amount not in effect.added:
                yield said[0]
        elif amount == 0 or (amount if said["times"] else 1 / amount) not in effect.factors:
            yield said[0]
    for said in _SHARE.finditer(words):
        amount = _amount(said)
        if (said["percent"] or said["figure"].lower().endswith(tuple(_PARTS))) and amount is not None:
            changed = _BY_A_SHARE.search(words[max(said.start() - 60, 0) : said.start()]) is not None
            wanted = {amount, 1 + amount, 1 - amount} if changed else {amount}
            if effect.factors.isdisjoint(wanted):
                yield said[0]


def _amount(said: re.Match[str]) -> Fraction | None:
    """The figure that is said; None where it is too long to be one."""
    word = said["figure"].lower().split()[-1]
    if word in _PARTS:
        return Fraction(1, _PARTS[word])
    if len(word) > _LONGEST_FIGURE:
        return None
    figure = Fraction(_LARGE[word] if word in _LARGE else word.replace(",", ""))
    return figure / 100 if said["percent"] else figure


def _multiples(words: str, effect: Effect, names: Iterable[str]) -> Iterator[str]:
    """Where words double, halve or square what the formula does not."""
    own = {part for name in names for part in (name.lower(), *name.lower().split("_"))}
    for said in _MULTIPLE.finditer(words):
        if said["name"] and said["name"].lower() not in own:
            continue  # of a double room
        verb = (said["verb"] or said["done"].removesuffix("d")).lower()
        done = Fraction(_POWERS[verb]) in effect.powers if verb in _POWERS else _MULTIPLES[verb] in effect.factors
        if not done:
            yield said[0]


def _operations(spoken: str, shown: Mapping[str, Name], effect: Effect, tree: Expression) -> Iterator[str]:
    """Where words say an operation of two operands that the formula does not carry out, or the other way round."""
    functions = {node.function for node in walk(tree) if type(node) is Call}
    if not shown:
        return
    for sign, noun, forms in _SAID:
        for number, form in enumerate(forms):
            for said in form.finditer(spoken):
                one, other = (shown[each] if each in shown else _number(each) for each in said.groups())
                if sign in ("max", "min"):
                    done = sign in functions or functions.isdisjoint(("max", "min"))
                else:
                    chains = effect.sums if sign in "+-" else effect.products
                    backwards = sign == "-" and number == 0
                    done = _done(chains, *((other, one) if backwards else (one, other)), with_sign=sign in "+*")
                    done = done or (noun == "difference" and number == 2 and _done(chains, other, one, with_sign=False))
                if not done:
                    yield said[0]


def _kinds(spoken: str, effect: Effect, tree: Expression) -> Iterator[str]:
    """Where words say of what kind a formula is as a whole, and it has no operation of that kind."""
    nodes = list(walk(tree))
    if not {type(node) for node in nodes} <= _ARITHMETIC or len(nodes) > MOST * MOST:
        return
    signs = {sign for node in nodes if type(node) is Chain for sign in node.operators}
    done = signs | {node.function for node in nodes if type(node) is Call}
    shares = {each for each in effect.factors if each.denominator > 1}
    kinds = {
        "add": "+" in signs or any(each > 1 for each in effect.factors) or any(map(_adds, effect.sums)),
        "subtract": any(not more for terms in effect.sums for _, more in terms)
        or any(0 < each < 1 for each in effect.factors),
        "multiply": "*" in signs or bool(effect.powers or effect.factors - {0, 1}),
        "divide": bool(signs & {"/", "//"} or shares or effect.powers & {Fraction(-1)}),
        "negate": any(not more for terms in effect.sums for _, more in terms) or Fraction(-1) in effect.factors,
        "invert": bool(signs & {"/"} or any(each < 0 for each in effect.powers)),
        "root": any(each.denominator > 1 for each in effect.powers),
        "abs": bool(done & {"abs", "max"}) or {Fraction(2), Fraction(1, 2)} <= effect.powers,
        "max": "max" in done,
        "min": "min" in done,
        "remainder": "%" in signs,
        "power": bool(effect.powers),
    }
    for kind, form in _KINDS:
        said = None if kinds[kind] else form.search(spoken)
        if said is not None:
            yield said[0]


def _shown(name: Name) -> str:
    return name.name.replace("_", " ").lower()


def _adds(terms: list[tuple[Expression, bool]]) -> bool:
    return sum(more for _, more in terms) > 1


def _aggregated(words: str, tree: Expression) -> Iterator[str]:
    """Where words begin with another aggregate of a list than the formula is."""
    head = _HEAD.match(words.strip())
    if head is None or not isinstance(tree, Aggregate):
        return
    if tree.function == "count" or (tree.function in ("sum", "min", "max") and not head[tree.function]):
        yield head[0]


def _marked(spoken: str, names: Mapping[tuple[str, ...], str]) -> tuple[str, Mapping[str, Name]]:
    """A text with names as marks, the longest first where several begin alike, and the name of each mark."""
    shown = {f"\ue000{number}\ue001": Name(name) for number, name in enumerate(names.values())}
    marks = dict(zip(names, shown, strict=True))
    lengths = sorted({len(name) for name in names}, reverse=True)
    pieces = _WORDS.split(spoken)  # what stands between words, and every second one a word
    at, marked = 1, pieces[:1]
    while at < len(pieces):
        mark, length = pieces[at], 1
        for length in lengths:
            between = pieces[at + 1 : at + 2 * length - 2 : 2]
            mark = marks.get(tuple(pieces[at : at + 2 * length : 2]), "") if set(between) <= {" "} else ""
            if mark:
                break
        if not mark:
            mark, length = pieces[at], 1
        marked += (mark, pieces[at + 2 * length - 1])
        at += 2 * length
    return "".join(marked), shown


def _number(written: str) -> Number | None:
    return Number(Fraction(written)) if written else None


def _done(
    chains: list[list[tuple[Expression, bool]]], x: Expression | None, y: Expression | None, *, with_sign: bool
) -> bool:
    """Whether a chain has `x` and, with a sign or without, `y`; or where none has `x`, one that has `y` so."""
    having = [chain for chain in chains if any(sign is with_sign and _holds(each, y) for each, sign in chain)]
    if any(sign and _holds(each, x) for chain in having for each, sign in chain):
        return True
    return bool(having) and not any(_holds(each, x) for chain in chains for each, _ in chain)


def _holds(tree: Expression, operand: Expression | None) -> bool:
    if isinstance(operand, Number):
        number = constant(tree)
        return number is not None and abs(number) == operand.value
    return operand is not None and operand in walk(tree)
