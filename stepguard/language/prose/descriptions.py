"""Words beside a formula: a description of what is worked out, or words that change what is carried out.

A formula of a procedure is carried out always, and once. Words beside it that may say otherwise (``If x > 3``,
``Repeat 3 times``, ``Only for members``) would be taken for mere words, and its value for proved. `unclear` names them,
so that they are refused wherever a step comes from. Beside a formula that decides something (``ok = x > 3``) or bounds
it (``min``, ``max``) the words may say what that formula says itself: ``never more than the largest dose``.

Free text is read more strictly, since its writer did not set the words apart: there a description begins with a verb
(``Work out``, ``Add``), names a quantity (``Total``, ``Net price``) or something of the step itself, and is no clause.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from itertools import dropwhile, pairwise, takewhile
from typing import Final, Literal

from stepguard.core.patterns import lazy_pattern
from stepguard.core.verdicts import shorten
from stepguard.language.expressions import TRUTHS, Call, Expression, walk
from stepguard.language.prose.struck_text import struck_spans
from stepguard.language.prose.vocabulary import (
    BOUNDING,
    CONTROL,
    DEFINITE,
    DETERMINERS,
    DOUBTFUL,
    GROUPS,
    JOINING,
    LEADING,
    LOOSE,
    NAMED_UNSPACED,
    NAMING,
    PERSONS,
    PLAIN_ADVERBS,
    QUANTITIES,
    SEQUENCE,
    TESTING,
    UNSPACED,
    UNSURE,
    VERBS,
)
from stepguard.language.unseen import UNSEEN, without_unseen

WordsOrigin = Literal["field", "text", "comment"]

_WORD: Final = lazy_pattern(r"[^\W\d_]+(?:['\u2019][^\W\d_]+)*|[0-9]+(?:[.,][0-9]+)*")
_CAMEL: Final = lazy_pattern(r"(?<=[a-z])(?=[A-Z])")
_EMPHASIS: Final = lazy_pattern(r"\*\*|__|`")
_PHRASES: Final = (
    re.compile(r"\b(?:as far|(?:as|so) (?:long|soon|often|many|much)|as (?:needed|required|requested|wanted))\b"),
    re.compile(r"\b(?:in the event|save (?:for|that)|other than|go to|go back|return to|start over|n a|set aside)\b"),
    re.compile(r"\b(?:leave|cross|strike|rule|block)\b(?: \w+){0,3} (?:out|off)\b"),
    re.compile(r"\b(?:do|try|carry out|perform|apply) (?:this|that|it|so|the following)\b"),
    re.compile(r"\A(?:round|case|option|plan|phase|path|version) [0-9a-z]\b(?! to\b)|\A(?:by )?default\Z"),
)
_MULTIPLE: Final = lazy_pattern(r"(?:[0-9]\s?[x\u00d7]|(?<![a-z0-9])[x\u00d7]\s?[0-9]+)\W*\Z", re.IGNORECASE)
_BOUND: Final = lazy_pattern(
    r"\b(?:under|over|above|below|beyond|exceed(?:s|ing)?|at least|at most|up to|(?:more|less|fewer|older|younger|"
    r"larger|smaller|greater|higher|lower|longer|shorter) than) [0-9]|[0-9] or (?:more|less|over|older|under|above)\b"
)
_MARKS: Final = lazy_pattern(
    r"(?<![-=])[<>]|\((?:old|alt|opt|tbc)\.?\)|[\u2264\u2265\u2260\u274c\u2717\u2718\u2716\u2610\u26d4\u23ed\U0001f6ab]"
)
_HOW_OFTEN: Final = frozenset(("nightly", "daily", "weekly", "monthly", "yearly", "annually", "hourly", "quarterly"))
_SIGNS: Final = lazy_pattern(
    r"""[^\w\s.,;:'"\u2018\u2019\u201c\u201d()/&%#+*\u2013\u2014\u00d7\u00b0\u00b2\u00b3\u00bd-]"""
)
_COMPARING: Final = frozenset("<>=\u2264\u2265\u2260?")
_BREAK: Final = lazy_pattern(r"[,;:.\u2013\u2014]\s")
_ENDS: Final = (["end"], ["finish"], ["quit"], ["done"], ["return"])
_STEERING: Final = frozenset(
    ("otherwise", "else", "elif", "elsif", "stop", "abort", "halt", "exit", "skip", "loop", "goto")
)
_CLAUSES: Final = frozenset(
    ("if", "when", "whenever", "unless", "while", "until", "for", "once", "as", "in", "on", "provided", "assuming")
)
_BEFORE_A_NOUN: Final = VERBS | QUANTITIES | LOOSE | JOINING | UNSURE | DETERMINERS | SEQUENCE
_GROUP: Final = GROUPS | DETERMINERS | frozenset(("and",))
_LIMITS: Final = frozenset(
    ("least", "most", "less", "more", "fewer", "lower", "higher", "below", "above", "over", "under")
)
_FLOW: Final = lazy_pattern(
    r"\b(?:go (?:to|back|on)|return to|skip|jump|goto|stop|abort|halt|end here|start over|proceed)\b"
)
_FLOWING: Final = frozenset(("skip", "jump", "goto", "abort", "halt"))
_STEPS: Final = lazy_pattern(
    r"\b(?:steps?|lines?|formulas?|calculations?) (?:[0-9]+|above|below)\b|\bthe (?:following|rest|above)\Z|"
    r"\bthe following (?:steps?|lines?|formulas?|appl(?:y|ies)|only|on|if|when|for)\b|\b(?:this|these|next|following|"
    r"previous|other|remaining|all|each|every|last) (?:[a-z0-9]+ )?(?:steps?|lines?|formulas?|calculations?)\b"
)
_OPEN: Final = lazy_pattern(r"(?:[:,\u2013\u2014\uff1a-]|\b(?:then|do))\s*\Z", re.IGNORECASE)
_MAIN: Final = lazy_pattern(r"[,;:\uff0c\u3001]|\bthen\b", re.IGNORECASE)
_OFTEN: Final = lazy_pattern(r"\b(?:times|[0-9]+|until|while|twice|once|steps?|this|that|following|above|end)\b")
_ENDING: Final = lazy_pattern(r"-->|~~|</(?:s|del|strike)>", re.IGNORECASE)
_UNSEEN: Final = lazy_pattern(f"[{UNSEEN}]")
_EMOJI: Final = lazy_pattern(r"(?<=[^\w\s])\ufe0f")
_SUMMING: Final = frozenset(("add", "up", "sum", "total", "combine", "multiply", "subtract"))
_ASKING: Final = frozenset(("what", "how", "this", "that"))


def struck(line: str) -> str | None:
    """The part of a line that is struck out or hidden, or the mark that ends one; None where nothing is."""
    span = next(iter(struck_spans(line)), None)
    if span is not None:
        return line[span.start : span.end]
    return None if (mark := _ENDING.search(line)) is None else mark[0]


def struck_or_hidden(line: str) -> str | None:
    """What keeps a line from being read for certain: what is struck out or hidden, characters that are not seen."""
    if (part := struck(line)) is not None:
        return f"{shorten(part, 40)!r} is struck out or hidden"
    if line.isascii() or (unseen := _UNSEEN.search(_EMOJI.sub("", line))) is None:
        return None
    return f"the character U+{ord(unseen[0]):04X} cannot be seen"


def governs(title: str) -> str | None:
    """The word of a title with which a condition, a repetition or a ban begins for what stands below; None if none."""
    found = _words(title)
    if found and (found[0] in CONTROL | LEADING | DOUBTFUL or all(word in _GROUP for word in found)):
        return found[0]
    return _control(title, found, _Names(()), frozenset())


def steers(words: str) -> str | None:
    """The word with which a step of words alone says whether or how often others are carried out; None if none does.

    ``If it is late, answer yes`` is a question of its own, which a model can answer; ``If it is late:``,
    ``Otherwise use the second rate`` and ``Repeat steps 2 to 4`` are none.
    """
    found = _words(words)
    if not found or words.rstrip().endswith("?"):
        return None
    text, leading = " ".join(found), next(_after_sequence_words(found), found[0])
    control = next((word for word in found if word in CONTROL | DOUBTFUL), None)
    if leading in _STEERING or found in _ENDS:
        return leading
    limited = control is not None or leading in LEADING or _FLOW.search(text) is not None
    if (steps := _STEPS.search(text)) is not None and limited:
        return control or steps[0]
    if _OPEN.search(words) and (word := governs(words)) is not None:
        return word
    if leading in _CLAUSES and not _MAIN.search(words):
        return leading
    if leading == "repeat" and _OFTEN.search(text):
        return leading
    return control if control is not None and _FLOW.search(text) and control not in _FLOWING else None


def unclear(words: str, names: Iterable[str], tree: Expression, place: WordsOrigin) -> str | None:
    """What in the words beside a formula may change whether, when or how often it applies; None where nothing does.

    Args:
        names: the names of the step: what it sets and what it reads.
        place: ``"field"`` for words that their writer set apart (a field, quotes); ``"text"`` for free text in front
            of the formula, which has passed as a field; ``"comment"`` for a comment behind it.
    """
    found = _words(words)
    own = _Names(names)
    bounds = any(type(node) is Call and node.function in ("min", "max") for node in walk(tree))
    tests = isinstance(tree, TRUTHS)
    spoken = TESTING if tests else BOUNDING if bounds else frozenset[str]()
    if spoken and len(found) > 1 and found[0] in ("at", "not", "no") and found[1] in _LIMITS:
        del found[0]  # such as `at least 5`
    if place == "text":
        return _loose(words, found, own, spoken, tests=tests)
    leading = next(_after_sequence_words(found), found[0] if found else "")
    if place != "comment" and leading in (CONTROL | LEADING | SEQUENCE) - (spoken - CONTROL | {"whether"}):
        return leading
    control = _control(words, found, own, spoken)
    return (
        control
        if control is not None or place == "comment"
        else _changed(list(_after_sequence_words(found)), own, spoken)
    )


def _words(text: str) -> list[str]:
    """The words of a text as they are looked up: folded, without accents of emphasis and apostrophes."""
    plain = _EMPHASIS.sub("", text)
    if not plain.isascii():
        plain = unicodedata.normalize("NFKC", without_unseen(plain))
    return [
        each.casefold().replace("'", "").replace("\u2019", "")
        for each in _WORD.findall(_CAMEL.sub(" ", plain).replace("_", " "))
    ]


def _control(words: str, found: list[str], own: _Names, spoken: frozenset[str]) -> str | None:
    for word, behind in pairwise([*found, ""]):
        bare = word if word.isascii() else _without_accents(word)
        negated = word.endswith("nt") and word[:-2] in UNSURE
        if (word in CONTROL or bare in CONTROL or negated) and word not in spoken:
            return word
        if word in DOUBTFUL and word not in own.words and word not in spoken:
            return word
        if not word.isascii() and (_mixed(word) or any(each in word for each in UNSPACED)):
            return word
        if word in _HOW_OFTEN and (not behind or (behind in VERBS and behind not in QUANTITIES)):
            return word
        if word in ("times", "twice", "thrice") and not _multiplied(behind, own):
            return word
    text = " ".join(found)
    phrases = [phrase.search(text) for phrase in _PHRASES] + [_MULTIPLE.search(words)]
    phrases += [] if spoken else [_BOUND.search(text), _MARKS.search(words)]
    match = next(filter(None, phrases), None)
    return None if match is None else match[0]


def _without_accents(word: str) -> str:
    return "".join(each for each in unicodedata.normalize("NFKD", word) if not unicodedata.combining(each))


def _changed(told: list[str], own: _Names, spoken: frozenset[str]) -> str | None:
    """The word that says for whom, when or with what a verb changes something, where that is nothing of the step."""
    if not told or told[0] not in VERBS or told[0] in NAMING or _names(told):
        return None
    for at, word in enumerate(told):
        figure = spoken and word == "at" and told[at + 1 :] and told[at + 1][0].isdigit()
        if not at or figure or not spoken.isdisjoint(told[at : at + 2]):
            continue
        summed = word in ("all", "both") and told[at - 1] in _SUMMING
        if word in ("all", "both") and not summed:
            return word
        if (word in LOOSE and not _belongs(told, at + 1, own)) or (word in GROUPS and word not in own):
            return word
    return None


def _names(told: list[str]) -> bool:
    """Whether a word that may be a verb or a quantity is the quantity: ``Tax at 5%``, but ``Tax the income``."""
    return told[0] in QUANTITIES and (len(told) == 1 or told[1] in LOOSE or told[1] in ("of", "plus", "and"))


class _Names:
    """The names of a step, by their words; a word is among them in any of its forms: ``fees``, ``discounted``."""

    def __init__(self, names: Iterable[str]) -> None:
        self.words = frozenset(part for name in names for part in _words(name))
        self._begun = frozenset(word[:size] for word in self.words for size in range(3, len(word) + 1))

    def __contains__(self, word: str) -> bool:
        sizes = range(3, min(len(word), 64) + 1)
        return word in self.words or word in self._begun or any(word[:size] in self.words for size in sizes)


def _after_sequence_words(found: list[str]) -> Iterator[str]:
    return dropwhile(lambda word: word in SEQUENCE, found)


def _multiplied(word: str, own: _Names) -> bool:
    """Whether what stands behind ``times`` or ``twice`` is what it multiplies."""
    if word in ("a", "an", "following", ""):
        return False
    return word in DETERMINERS or word in QUANTITIES or word[0].isdigit() or word in own


def _mixed(word: str) -> bool:
    """Whether letters of several alphabets that look alike stand in one word."""
    alphabets = {unicodedata.name(each, "?").partition(" ")[0] for each in word if each.isalpha()}
    return len(alphabets & {"LATIN", "CYRILLIC", "GREEK", "ARMENIAN", "CHEROKEE"}) > 1


def _loose(words: str, found: list[str], own: _Names, spoken: frozenset[str], *, tests: bool) -> str | None:
    """What keeps free text from being a plain description."""
    for match in _SIGNS.finditer(words):
        if not (tests and match[0] in _COMPARING) and unicodedata.category(match[0]) not in ("Sc", "Mn", "Mc"):
            return match[0]
    told = list(_after_sequence_words(found))
    if not told:
        return words
    head = told[0]
    named = takewhile(lambda word: word not in LOOSE, _words(_BREAK.split(words, maxsplit=1)[0]))
    quantity = any(word in QUANTITIES or (word in own and (len(word) > 2 or word == head)) for word in named)
    quantity = quantity or (head in DETERMINERS and all(word not in GROUPS for word in told))
    purpose = head == "to" and told[1:2] and told[1] in VERBS
    limit = bool(spoken) and head in _LIMITS
    if not (head in VERBS or quantity or tests or purpose or limit or _unspaced(head)):
        return head
    if head in GROUPS and head not in own:
        return head
    if not words.isascii() and (unread := next((word for word in told if _unread(word, own)), None)) is not None:
        return unread
    if (head not in VERBS or head in QUANTITIES) and not purpose and (clause := _clause(words)) is not None:
        return clause
    # In `Negotiate the price` or `The clerk sets the price` somebody does something with what is worked out.
    for word, behind in pairwise(told):
        if behind in DETERMINERS and word not in _BEFORE_A_NOUN and word not in own and word not in spoken:
            return word
    asked = False
    for at, word in enumerate(told):
        asked = asked or word in _ASKING
        if word in spoken:
            continue
        if word in PERSONS and word not in own:
            return word
        if word in UNSURE and not _harmless(told, at, asked=asked):
            return word
        if word.endswith("ly") and word not in PLAIN_ADVERBS and word not in own:
            return word
    return None


def _harmless(told: list[str], at: int, *, asked: bool) -> bool:
    """Whether a word of clauses stands where it changes nothing: ``what is left``, ``sum of all fees``."""
    word = told[at]
    if word in ("all", "both"):
        return told[0] not in VERBS or told[0] in NAMING or told[at - 1] in _SUMMING
    if word in ("is", "are", "was", "were"):
        return asked or at == len(told) - 1
    return word == "many" and told[at - 1] == "how"


def _belongs(told: list[str], at: int, own: _Names) -> bool:
    """Whether what follows a preposition is of the step itself, or one definite quantity."""
    behind = told[at : at + 3]
    noun = next((word for word in behind if word not in DETERMINERS), "")
    return noun in own or (noun in QUANTITIES | DEFINITE and behind[0] in DETERMINERS)


def _clause(words: str) -> str | None:
    """The verb of a second clause: in ``Weekends, double the rate`` the first one says when."""
    for part in _BREAK.split(words)[1:]:
        found = _words(part)
        if found and found[0] in VERBS and (found[0] not in QUANTITIES or set(found[1:2]) & DETERMINERS):
            return found[0]
    return None


def _unread(word: str, own: _Names) -> bool:
    """Whether a word is of another script than Latin, and nothing that is known says what it means."""
    if word.isascii() or len(word) == 1 or word in own or word in VERBS or word in QUANTITIES:
        return False
    if _unspaced(word):
        return not any(part in word for part in NAMED_UNSPACED)
    return any(not unicodedata.name(each, "?").startswith("LATIN") for each in word)


def _unspaced(word: str) -> bool:
    """Whether a word is of a script whose words cannot be looked up one by one."""
    return any(unicodedata.name(each, "?").startswith(("CJK", "HIRAGANA", "KATAKANA", "HANGUL")) for each in word)
