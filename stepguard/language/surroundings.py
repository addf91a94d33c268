"""Whether the words around an expression leave it what it is.

``3 + 4 = 7`` is an equality behind "so he has" and none of those numbers behind "half of"; ``= 2`` is another number in
front of "thousand". What is listed here is what certainly changes nothing; everything else is doubtful.
"""

from __future__ import annotations

import re
from typing import Final, Literal

Surroundings = Literal["yes", "unit", "no"]

_INTRODUCING: Final = (
    "is are was were be been being has had have having so thus hence therefore then that's thats it's its get gets got "
    "getting gives give gave giving make makes made making earn earns earned cost costs costing pay pays paid paying "
    "need needs needed spend spends spent spending total totals totaling use uses used took take takes will would "
    "find found equals equal equation calculate calculated compute computed computing calculating since because means "
    "meaning as sell sells sold buy buys bought drive drives drove run runs ran eat eats ate read reads wrote writes "
    "write left remaining received receives receive saves saved save works worked work know that there also now "
    "collects collected produced produces produce lasts lasted weighs weighed walk walks walked travels travelled "
    "traveled charges charged sees saw baked bakes sums obtain obtaining yields yielding simplify evaluate do"
)
_INTRODUCES: Final = frozenset(_INTRODUCING.split())
"""Words that may stand in front of an equality without changing it."""

_CHANGING: Final = (
    "half twice thrice average mean median times time timed quarter third fourth fifth tenth square squared cube "
    "cubed root minus plus less more fewer difference product quotient sum remainder ln sin cos tan exp gcd lcm "
    "factorial choose power of not never cannot whether if unless instead base binary octal dozen dozens hundred "
    "hundreds thousand thousands million millions billion billions negative inverse about roughly per every "
    "between from by than without opposite reciprocal clock modulo score ratio odds function matrix vector set "
    "page version chapter section verse item number"
)
_CHANGES: Final = frozenset(_CHANGING.split())
_CHANGING_STEMS: Final = (
    *(
        "doubl",
        "tripl",
        "quadrupl",
        "percent",
        "multipl",
        "divid",
        "subtract",
        "add",
        "mod",
        "log",
        "abs",
        "max",
        "min",
    ),
    *("wrong", "incorrect", "mistake", "false", "suppos", "assum", "hex", "approx", "estimat", "round"),
)
"""What may change the number that follows, somewhere in the same clause."""
_CHANGING_SIGNS: Final = re.compile(r"[%^²³√∛!|\\{}_]")
_HARMLESS: Final = re.compile(
    r"\b(?:(?:a|the|in|grand|combined)? ?(?:total|number|amount|cost|price|value|rest|end) of|(?:per|each|every) \w+"
    r"|by the end)\b",
    re.IGNORECASE,
)
_TOTAL_OF: Final = re.compile(r"\b(?:a|the) (?:grand |combined )?total of\Z", re.IGNORECASE)

_ALTERING: Final = (
    "hundred hundreds thousand thousands million millions billion billions trillion k m mn bn dozen dozens pair pairs "
    "couple couples twins trio trios triplets quartets brace "
    "score gross percent percentage pct r rem remainder remainders rest times x plus minus over of squared cubed point "
    "half halves quarter quarters third thirds fourths fifths tenths more less fewer to or mod modulo base binary hex "
    "octal decimal rounded rounding round approximately approx about roughly ish degrees divided multiplied per cent "
    "cents bp bps ths th if unless not is isn't but only when whenever provided providing assuming raised power each "
    "o'clock am pm ten tens ones zero zeros zeroes grand lac lacs lakh lakhs crore crores mil mio mrd cr dr basis "
    "below short pro"
)
_ALTERS: Final = frozenset(_ALTERING.split())
"""Words that may change the number in front of them."""
_ALTERING_STEMS: Final = (
    *("doubl", "halv", "tripl", "quadrupl", "negativ", "promil", "permil"),
    *("thousand", "tausend", "hundert", "million", "milliard", "milliarde", "billion", "trillion", "quadrill"),
)
_PART: Final = re.compile(
    r"[a-z]*(?:(?:third|quarter)s?|hal(?:f|ves)"
    r"|(?:four|fif|six|seven|eigh|nin|ten|eleven|twelf|teen|tie|hundred|thousand|illion)ths?)\Z"
)
_COUNTED: Final = re.compile(r"[a-ln-z][0-9]+\Z")  # 19 R2, but 19 m2
_SCALING: Final = (
    "binary base hex hexadecimal octal mod modulo dozen dozens percent lakh lakhs crore crores mio mrd minus sign"
)
_SCALES: Final = frozenset(_SCALING.split())
_SCALING_STEMS: Final = ("thousand", "tausend", "million", "milliard", "billion", "trillion", "negat", "revers", "flip")
"""Words that change a number from a distance: ``= 10 in binary``."""
_FRACTION: Final = re.compile(r"and (?:a |an |one |two |three |four |five |half|quarter|[0-9])", re.IGNORECASE)
_WORD: Final = re.compile(r"[A-Za-z][A-Za-z']*")
_GROUPS_BELOW: Final = re.compile(r"(?:[.,][0-9]|(?:,?0[0-9]{2})+\b|[%^!\u2026]|\.\.)[^=]*\Z")
"""A line that goes on with the number above it."""
_CALCULATED_BELOW: Final = re.compile(r" *(?:[+*/^\u00d7\u00f7\u00b7] ?|-)\(?[0-9][0-9.,)]*\s*\Z")
_LAST_WORD: Final = re.compile(r"[A-Za-z][A-Za-z']{0,30}\Z")
_BEFORE_SIGN: Final = frozenset((
    "is", "are", "was", "be", "so", "thus", "hence", "therefore", "then", "equals", "get", "gets", "gives", "since",
    "because", "that", "that's", "it's", "now", "also", "as", "find", "calculate", "compute",
))  # fmt: skip
"""Words behind which a minus is a sign; behind ``total`` it may take away."""
_REACH: Final = 200


def stands_alone_before(body: str, line_start: int, start: int, *, single: bool) -> bool:
    """Whether what stands in front of an expression leaves it as it is.

    Args:
        line_start: where the line, or what its label leaves of it, begins.
        start: where the expression begins.
        single: whether it is a single number, which may be the end of much that is not understood.
    """
    if single:
        return False
    near = max(line_start, start - _REACH)
    head = body[near:start]
    said = head.rstrip(" ")
    if not said and near == line_start:
        return _begins_anew(body, line_start)
    if not said:
        return False
    apart = len(said) != len(head)
    last = said[-1]
    if last.isalpha():
        word = _LAST_WORD.search(said)
        if not apart or word is None:
            return False
        total = _TOTAL_OF.search(said)
        if total is not None:
            said = said[: total.start()]
        elif word[0].lower() not in _INTRODUCES:
            return False
        if body[start : start + 1] in ("-", "+") and word[0].lower() not in _BEFORE_SIGN:
            return False
        return not _changed(said)
    if last == "(":
        before = said[:-1].rstrip(" ")
        return (not before or len(before) < len(said) - 1 or not before[-1].isalnum()) and not _changed(said[:-1])
    if last in ".!?;:,":
        behind_number = said[-2:-1].isdigit() and last in ".,"
        return apart and not behind_number and not said.endswith((" :", "..", "!.")) and not _changed(said[:-1])
    return last in "\u2014\u2192|" and (apart or last != "|")


def _changed(said: str) -> bool:
    """Whether the last clause holds something that may change what follows."""
    at = max(said.rfind(sign) for sign in ".!?;:,(\n\u2014")
    clause = said[at + 1 :]
    if _CHANGING_SIGNS.search(clause):
        return True
    words = _WORD.findall(_HARMLESS.sub(" ", clause).lower())
    return any(word in _CHANGES or word.endswith("n't") or word.startswith(_CHANGING_STEMS) for word in words)


def _begins_anew(body: str, line_start: int) -> bool:
    """Whether a line does not go on with the one before it."""
    tail = body[max(0, line_start - _REACH) : line_start]
    said = tail.rstrip(" \n")
    if not said or tail[len(said) :].count("\n") > 1:
        return True
    last, line = said[-1], said[said.rfind("\n") + 1 :]
    if last in ".!?:;|>$":
        return True
    if last.isdigit() or last in ")]":
        return "=" in line
    return last.isalpha() and not _changed(said)


def stands_alone_after(behind: str) -> Surroundings:
    """Whether what stands behind a number or an expression leaves it as it is; ``unit``: unless it is a unit.

    Args:
        behind: the text from its end, as far as it matters (some sixty characters and the beginning of the next line).
    """
    rest = behind.lstrip(" ")
    apart = len(rest) != len(behind)
    if not rest:
        return "yes"
    first = rest[0]
    if first == "\n":
        return _next_line(rest)
    if first.isalpha():
        return _word(rest) if apart else "no"
    if first == "(":
        inside = rest[1:].lstrip(" ")
        return _word(inside) if apart and inside[:1].isalpha() else "no"
    if first in "-\u2014":
        return "yes" if apart and rest[1:].lstrip(" -")[:1].isalpha() else "yes" if first == "\u2014" else "no"
    if first == ".":
        return "yes" if re.match(r"\.(?:[\s\"'*_)\]}$|A-Z]|\Z)", rest) else "no"
    if first == ",":
        return "no" if re.match(r", ?[0-9]{3}(?![0-9])", rest) else "yes"
    if first == ":":
        return "no" if rest[1:2].isdigit() else "yes"
    if rest.startswith("=>"):
        return "yes"
    if first == "*":
        inside = rest.lstrip("*")
        if apart or inside[:1].isalnum() or inside[:1] in ("(", "_"):  # 19 * k, but *19* apples
            return "no" if re.match(r" *[\w(.$]", inside) else "yes"
        return stands_alone_after(inside)
    if first in ";)]|\u2248<>\u2192&":
        return "yes"
    return "no"


def _word(rest: str) -> Surroundings:
    word = re.match(r"[A-Za-z][\w']*", rest)
    if word is None:
        return "no"
    lowered = word[0].lower()
    if lowered in _ALTERS or lowered.startswith(_ALTERING_STEMS) or _PART.match(lowered) or _COUNTED.match(lowered):
        return "no"
    if (len(lowered) == 1 and word[0] not in "aAI") or _FRACTION.match(rest):
        return "no"
    clause = re.split(r"[.,;:!?()\n=]", rest, maxsplit=1)[0]
    words = _WORD.findall(clause.lower())
    return "no" if any(each in _SCALES or each.startswith(_SCALING_STEMS) for each in words) else "unit"


def goes_on_below(body: str, end: int) -> bool:
    """Whether the line below the one that ends at `end` goes on with its last number: ``000``, ``.5``, ``%``."""
    line = body[end : end + _REACH].removeprefix("\n").partition("\n")[0]
    return _GROUPS_BELOW.match(line.strip()) is not None or _CALCULATED_BELOW.match(line) is not None


def _next_line(rest: str) -> Surroundings:
    """Whether the next line goes on with the number that ends this one."""
    following = rest[1:].lstrip(" ")
    if following[:1] in ("", "\n"):
        return "yes"
    line = following.partition("\n")[0]
    if re.match(r"[-+*/^%] ?[0-9(.$]", following) and "=" not in line:
        return "no"
    if _GROUPS_BELOW.match(line):
        return "no"
    return _word(line) if line[0].islower() and line[0].isalpha() else "yes"
