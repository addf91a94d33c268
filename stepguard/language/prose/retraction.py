"""Words by which a writer denies, supposes or takes back what stands beside them, where any other words may stand, too.

One reader for replies, transcripts and answers. They differ in where a word counts: a whole entry of a reply takes
something back wherever such a word stands in it (`retractions_in`), a transcript only where it begins a clause
(`find_retractions`), since ``let me compute`` and ``a mistake to avoid`` are usual in it. Whether a claim counts,
`stepguard.language.prose.understanding` decides by the words in front of it and `stepguard.language.prose.following` by
those behind it, by what they understand.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, Literal

from stepguard.core.patterns import lazy_pattern

Doubt = Literal["denied", "supposed"]
"""Whether a claim is denied, or only supposed."""

_EXCLAIMED: Final = r"scratch that|strike that|oops|whoops|sorry|hmm+|on second thought"
_REDONE: Final = r"recalculat|recomput|recheck|re-calculat|re-comput|re-check"
_MISTAKEN: Final = "wrong|incorrect|not (?:right|correct|true)"  # what is false may be a truth value

_IN_AN_ENTRY: Final = lazy_pattern(
    rf"\b(?:wait|actually|correct(?:ion|ed|ing)|mistaken?|rather|instead|let me|let's|i meant?|should be|{_EXCLAIMED}"
    rf"|(?:{_REDONE})(?:e|ed|ing)?)\b"
    r"|\bno(?:\s{0,9}[,;:!\u2013\u2014-]|\s{1,9}(?:wait|it|that|=|-?[0-9]))|~~",
    re.IGNORECASE,
)
_BEGINNING_A_CLAUSE: Final = lazy_pattern(
    r"(?:^[ *_>#-]{0,9}|[.!?,;:)\u2014\u2026\n] {0,3}|- |\()(?P<phrase>(?:(?:oh|no|hmm+|but|ah),? )?(?:wait\b(?! for"
    r"| until)|(?:hold|hang) on\b(?! to))|actually\b|correction\b|nope\b|apologies\b|retract"
    rf"|(?:{_EXCLAIMED})\b|my (?:mistake|bad|error)\b|on reflection\b|no[,:;] (?:that|this|it|the|wait|i|[-$0-9])"
    r"|(?:please )?(?:strike|disregard|ignore|forget|withdraw) (?:that|this|it|the (?:above|last|previous)|what|my)\b"
    r"|i (?:made|see) (?:a|an|my) (?:mistake|error)|i (?:meant|retract|withdraw)\b|i (?:take|took) (?:that|it) back"
    rf"|(?:that|this|it|(?:the|this|that|my) (?:final |last |above )?answer)(?:'s| is| was) (?:{_MISTAKEN}|a mistake)\b"
    r"|let me (?:re\w{2,12}|correct|fix|redo|try (?:that |this )?again|double.check|start over)"
    rf"|(?:{_REDONE}|correct)ing\b(?! the final)"
    r"|(?:edit(?:ed)?|errat(?:um|a)|typo|updated?|fix(?:ed)?|corrected|revis(?:ed|ion)|amend(?:ed|ment)|korrektur"
    r"|berichtigung|correc(?:ción|tif)|correzione|rectificat(?:ion|if))(?: ?:| (?=[-$0-9]))"
    rf"|(?<![:,;(])(?<![:,;] )(?:{_MISTAKEN})\b(?=[.! ]*$)"
    r"|(?:it |that |this )?(?:should|ought to) (?:be|read|have been) [-$0-9]|make (?:that|it) [-$0-9]"
    r"|(?:or )?rather,? [-$0-9]|(?:please )?read [^\s]{1,30} (?:instead of|for)\b)",
    re.IGNORECASE | re.MULTILINE,
)

_DENYING: Final = frozenset((
    "not", "never", "cannot", "nor", "neither", "nobody", "none", "expected", "reference", "maybe", "perhaps", "might",
    "wrong", "incorrect", "false", "nicht", "kein", "keine", "falsch", "pas", "faux", "fausse", "incorrecto", "falso",
    "niemals", "jamais", "nunca", "erwartet", "attendu", "esperado", "previously", "formerly", "unlike", "contrary",
    "hardly", "say", "says", "said", "claim", "claims", "claimed", "told", "wrote", "example",
    "wrongly", "incorrectly", "falsely",
))  # fmt: skip
_ASKING: Final = frozenset(
    ["is", "are", "was", "were", "does", "did", "can", "could", "should", "would", "may", "might", "had"]
)
"""What begins a question, and no claim."""
_SUPPOSING: Final = frozenset(("if", "unless", "whether"))
_SUPPOSING_STEMS: Final = ("suppos", "assum", "imagin", "pretend", "hypothe")
_CONDITION: Final = lazy_pattern(
    r"\b(?:when(?:ever)?|once|until|till|while|provided|providing|(?:as|so) (?:long|soon) as|in case"
    r"|on condition)(?: that)?(?: the| my)? *\Z",
    re.IGNORECASE,
)
"""``when t1 = 42``; of ``when we multiply t1 = 42`` the number is claimed."""
_CALLED_FALSE: Final = lazy_pattern(
    r"\b(?:false|wrong|incorrect|untrue|mistaken?|falsch|faux|(?<!no )doubt)(?: (?:that|to say|to claim|to think|claim"
    r"|statement|the|my|final))*\W*\Z|\b(?:no (?:way|chance)|anything but|by no means|far from)(?: that| the| my)* *\Z"
    r"|[\u274c\u2717\u2718]\ufe0f? *\Z",
    re.IGNORECASE,
)
_CLAUSE: Final = lazy_pattern(r"[.!?;:,(\n\u2014]|\b(?:so|but|therefore|thus|hence)\b")
_WORD: Final = lazy_pattern(r"[A-Za-z][A-Za-z']*")
_NONE_OF: Final = lazy_pattern(r"(?<![\w.])no \Z")  # in front of digits it is the short form of number
_DIRECTLY: Final = lazy_pattern(
    r"\b(?:not|cannot|never|neither|nor|\w+n['\u2019]t|instead of|in place of|without|rather than|other than|except"
    r"|excluding|no longer|no more|in no way|by no means|keineswegs|en aucun cas|nicht|weder|statt|anstatt|kein(?:e|en"
    r"|er|em|es)?|(?:no|non|n\u00e3o) (?:es|son|era|fue|\u00e8|\u00e9|sono)|pas|jamais|au lieu de|nunca|en lugar de"
    r"|invece di)[:,]?(?: (?:exactly|just|the|an?|be|by|for|of|from|to|at|on|is|was|de|von|bei|die|das|yet|mehr"
    r"|necessarily|longer|usual|regular|normal|old|former|previous|original"
    r"|bisher\w*))*[ (\"'*]{1,3}(?:[$\u20ac\u00a3] ?)?\Z",
    re.IGNORECASE,
)
_AMOUNT: Final = r"[-+$\u20ac\u00a3]{0,2}[0-9][0-9.,]*(?<![.,])%?"
_CONTRAST: Final = lazy_pattern(
    rf"\s{{0,3}}(?P<open>[,;\u2014\u2013]|- |\()?\s{{0,3}}(?:and |but )?not (?:equal to |just )?{_AMOUNT}(?:(?: or"
    rf"| nor|,? and not|,? not) {_AMOUNT}){{0,3}}(?P<close>\))?(?=\s*(?:[.!]?\s*(?:\n|\Z)|[.!]\s))",
    re.IGNORECASE,
)
_NUMBERS: Final = lazy_pattern(r"[0-9][0-9.,]*(?<![.,])")
_ELSE: Final = lazy_pattern(
    r"\W*(?:[0-9]|(?:or|no|not|wait|actually|maybe|perhaps|hmm+|but|sorry|scratch|strike|oops|correction)\b)",
    re.IGNORECASE,
)


def retractions_in(entry: str) -> Iterator[str]:
    """The words in one entry of a reply that take something back."""
    return (found[0] for found in _IN_AN_ENTRY.finditer(entry))


def find_retractions(text: str) -> Iterator[tuple[int, int, str]]:
    """Where clauses of a transcript take something back: start, end and the words."""
    return ((*found.span("phrase"), found["phrase"]) for found in _BEGINNING_A_CLAUSE.finditer(text))


def doubted_before(front: str) -> Doubt | None:
    """Whether the last clause in front of a claim denies it, reports it of another, or only supposes it.

    Args:
        front: what stands in front, as far as it matters.
    """
    if _CALLED_FALSE.search(front):
        return "denied"
    clause = _CLAUSE.split(front.lower())[-1]
    words = _WORD.findall(clause)
    if words and words[0] in _ASKING:
        return "supposed"
    if any(word in _DENYING or word.endswith("n't") for word in words):
        return "denied"
    if _CONDITION.search(front) or any(word in _SUPPOSING or word.startswith(_SUPPOSING_STEMS) for word in words):
        return "supposed"
    return None


def denied_before(text: str, start: int) -> bool:
    """Whether what stands right in front of a part of a text says that it is not so: ``not 10 mg``, ``statt 5``."""
    window = text, max(start - 40, 0), start  # in the text, so that no word is cut in front
    return _DIRECTLY.search(*window) is not None or (
        text[start : start + 1].isalpha() and _NONE_OF.search(*window) is not None
    )


def contrast_length(value: str, behind: str) -> int:
    """How long the remark right behind a value is by which a writer denies other numbers: ``42 (not 41)``; else 0."""
    found = _CONTRAST.match(behind)
    if found is None or (found["open"] == "(") != bool(found["close"]):
        return 0
    own, others = ({without_zeros(each) for each in _NUMBERS.findall(text)} for text in (value, found[0]))
    return 0 if own & others else found.end()


def without_zeros(digits: str) -> str:
    """The digits of a number without the commas in it and the zeros at the end of its decimals."""
    whole, point, part = digits.replace(",", "").partition(".")
    return f"{whole}{point}{part}".rstrip("0").rstrip(".") if point else whole


def goes_back(text: str) -> bool:
    """Whether what follows a value names another one, or takes it back."""
    return _ELSE.match(text) is not None
