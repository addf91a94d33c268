"""Entries of an answer that were not asked for: surplus, or another answer, a correction, a doubt or a unit of it.

Every text, number and truth value in them is read for itself, below the keys that lead to it. A key that is another
spelling of a step must agree with it; what a further step comes to, or says, is no harm.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from stepguard.core.patterns import lazy_pattern
from stepguard.core.verdicts import shorten
from stepguard.language.currencies import compatible
from stepguard.language.prose.amounts import find_numbers
from stepguard.language.prose.following import unread_behind
from stepguard.language.prose.lexicon import (
    CHANGING,
    CONDITIONS,
    FAULTS,
    POINTING_BACK,
    PRAISE,
    REMARKS,
    RIGHTING,
    UNITS,
    is_nothing,
)
from stepguard.language.prose.mentioned import Mentions
from stepguard.language.prose.neighbours import amount_stands_alone
from stepguard.language.prose.retraction import find_retractions, retractions_in, without_zeros
from stepguard.language.prose.speech import alters, is_courtesy
from stepguard.language.prose.struck_text import struck_spans
from stepguard.language.prose.understanding import Understanding
from stepguard.language.prose.vocabulary import QUANTITIES, word_set
from stepguard.language.unit_names import factors_of
from stepguard.language.unseen import without_unseen
from stepguard.language.value_types import ValueType

ANSWER_KEYS: Final = frozenset({"answer", "finalanswer", "theanswer", "result", "finalresult", "final", "solution"})

_NO_NAME: Final = lazy_pattern(r"[\W_]+")
_BETWEEN: Final = lazy_pattern(r"(?<=[a-z])(?=[A-Z])|[\W_]+")
_SENTENCE: Final = lazy_pattern(r"[^\W\d_]{2}\W+[^\W\d_]{2}")
_NAME: Final = lazy_pattern(r"(?<![A-Za-z0-9_])(?:[A-Za-z_]*[0-9][A-Za-z0-9_]*|[A-Za-z])(?![A-Za-z0-9_])")
_NUMBER: Final = lazy_pattern(r"\s*[-+]?[0-9][0-9.,]*(?:[eE][-+]?[0-9]+)?\s*")
_WORKING: Final = lazy_pattern(r"[-+*/^%().,0-9\s\u00d7\u00f7\u2212]+=(?P<value>\s*[-+]?[0-9][0-9.,]*\s*)")
"""Arithmetic on numbers alone, with its result: what a step says of its value where it shows its working."""
_UNIT: Final = lazy_pattern(r"[^\W\d_]*[^\W\d_s]s|people|children", re.IGNORECASE)
_DASH: Final = lazy_pattern(r"[-\u2212\u2013\u2014]")
"""A sign below zero, where signs and units are told, and nothing elsewhere."""
_ABOVE_ZERO: Final = ("+", "plus", "positive")
_NOT_A_UNIT: Final = lazy_pattern(r"[()\[\],;:]|\A\W*[0-9]")
_MEASURED: Final = frozenset(
    ("confidence", "probability", "score", "tokens", "ms", "id", "version", "index", "retries")
)
"""What models say of their answers in numbers."""
_SIGNED: Final = lazy_pattern(r"[^\w\s.:'\"`()\[\]#-]|[\u00b2\u00b3\u00b9\u2070-\u209f]|\A\s*-")
"""Signs in a key that make what it names another value: ``t2%``, ``-t2``."""
_SETTING: Final = word_set(
    """
    multiplied divided added subtracted multiply divide add subtract power offset shift tolerance margin prefix
    suffix range interval uncertainty std delta adjustment then next replaces supersedes for as applies negate
    invert flip trust reliability accuracy quality review
    """
)
"""Keys that say how to change a value, how far to trust it, or of what else it is."""
_NEUTRAL: Final = word_set(
    """
    value result answer explanation formula work working reasoning calculation step note comment description final
    equation output check of the steps computed
    """
)
"""What may stand in a key beside the name of a step, for the step itself or words about it."""
_TRUTHS: Final = frozenset(("true", "false", "yes", "no"))
_DENYING: Final = frozenset(("false", "no", "0"))
_STANDING: Final = frozenset(("status", "state"))
_SHORTEST_PART: Final = 3
_MOST: Final = 5_000  # each is read for itself
_DEEPEST: Final = 20
_MEANING: Final = RIGHTING | CHANGING | CONDITIONS | PRAISE | REMARKS
_POINTING: Final = POINTING_BACK - frozenset(("step", "steps", "line"))
"""Words of a key that make a number below it one for what was asked; the last where it names no further step."""


@dataclass(frozen=True, slots=True)
class Surplus:
    """Reads the entries of an answer that were not asked for.

    Attributes:
        given: what the asked steps come to, and what they read, as text.
        types: their types.
        understanding: what is understood around an answer.
        mentions: the numbers of the answer, and those that its steps read.
        spellings: the names of `given`, by what all spellings of them have in common.
        names: the names that the procedure declares.
        answer: the asked step that is the procedure's answer, unless it is proved.
        proved: whether the checks of the asked steps pass one value only: what takes that back or speaks of it
            counts, but no other number, and no word or two that are not understood: they could not make it another one.
    """

    given: Mapping[str, str]
    types: Mapping[str, ValueType]
    understanding: Understanding
    mentions: Mentions
    spellings: Mapping[str, str]
    names: Container[str]
    answer: str | None
    proved: bool

    def otherwise(self, entries: Mapping[str, object]) -> str | None:
        """What entries say otherwise than the answer, or what of them is not understood; None where they do no harm."""
        for number, (path, text) in enumerate(_leaves(entries)):
            if number >= _MOST or len(path) > _DEEPEST:
                return f"{shorten(path[0])}: ... (more than is read)"
            if (said := self._otherwise(path, text)) is not None:
                return said
        return None

    def _otherwise(self, path: tuple[str, ...], text: str) -> str | None:
        if any(_SIGNED.search(key.strip(" *_`")) and self._is_spelled(key) for key in path):
            return f"{' '.join(path)}: {text}"
        working = _WORKING.fullmatch(text)
        label = " ".join(word for key in path for word in _BETWEEN.split(key) if word)
        said = f"{label}: {text}"
        words = frozenset(label.casefold().split())
        if not words.isdisjoint(UNITS):
            return None if self._is_unit(text) or (text in _ABOVE_ZERO and "sign" in words) else said
        fault = not words.isdisjoint(FAULTS)
        below_zero = _DASH.fullmatch(text) is not None and not words.isdisjoint(_SETTING)
        if is_nothing(text) and (fault or text.casefold() not in _DENYING) and not below_zero:
            return None
        names = self.spellings.keys() & {folded(name[0]) for name in _NAME.finditer(text)}
        meant = next((self.spellings[key] for key in map(folded, path) if key in self.spellings), None)
        final = meant is None and not names and folded(path[-1]) in ANSWER_KEYS
        if final and not (_SENTENCE.search(text) or _is_truth(text)):
            # Of the whole procedure: too early, or another one than the step says.
            agrees = self.answer is None or self._same(self.answer, text)
            return None if agrees and not alters(text, self.understanding.own) else said
        if meant is not None:
            if self._same(meant, text):
                return None
            label = meant
        elif len(path) == 1 and path[0] in self.names and not fault and (working or _NUMBER.fullmatch(text)):
            return None  # a later step of the procedure, whatever else its name may mean
        if self._is_set_off(path, text, label) or self.mentions.is_another_option(text):
            return said
        if self.mentions.misstated(f"{label} = {text}") or any(find_retractions(said)) or any(retractions_in(label)):
            return said
        if fault or self.understanding.denies(label) or (text == "0" and not words.isdisjoint(PRAISE)):
            return said
        if self._stands_in_a_text(text) and self.understanding.is_plain_label(label) and not self._is_spelled(path[-1]):
            return None
        named = names or not self.spellings.keys().isdisjoint(folded(name[0]) for name in _NAME.finditer(label))
        sentence = _SENTENCE.search(text) is not None
        proved = self.proved and not named and not _is_truth(text) and words.isdisjoint(_STANDING)
        taken_back = proved and self._takes_back(label, text, words)
        of_a_step = path[1:] == ("work",)  # the working of a step in words that was not asked
        if proved and (taken_back or not sentence or of_a_step):
            return said if taken_back else None
        further = (proved and not self._names_asked(text)) or (meant is None and self._is_further(label))
        if _NUMBER.fullmatch(text) or (working is not None and not QUANTITIES.isdisjoint(words)):
            number = text if working is None else working["value"]
            harmless = meant is None and self._is_harmless(label, words, number, further=further)
            return None if harmless else said
        renamed = meant is not None and folded(text) in self.spellings
        if renamed or (not further and self.mentions.contradicted(text)) or any(struck_spans(text)):
            return said
        if sentence:
            claims, mentions = " ".join(self.given.values()), None if further else self.mentions
            read = text if meant is None else f"{label}: {text}"
            return unread_behind(self.understanding, read, claims, mentions=mentions, whole=True) or None
        if text.casefold() in PRAISE - _TRUTHS or any(folded(text) == folded(value) for value in self.given.values()):
            return None
        if (names or _is_truth(text)) and self.understanding.unread(
            _NAME.sub(" ", label), PRAISE | REMARKS, behind=True
        ):
            return said
        if _is_truth(text):
            return None if text.casefold() in ("true", "yes") else said
        return said if self.understanding.is_strange_cell(label, _NAME.sub(" ", text)) else None

    def _is_set_off(self, path: tuple[str, ...], text: str, label: str) -> bool:
        """Whether a key says that what it names is another value, or how a value is to be changed."""
        words = label.casefold().split()
        if alters(label, self.understanding.own | PRAISE | {"thoughts", "extra"}):
            return True
        if not _SETTING.isdisjoint(words) and not self._is_further(label) and not is_courtesy(text):
            return text.casefold() not in PRAISE
        for key in path:
            parts = [part.casefold() for part in _BETWEEN.split(key) if part]
            about = [part for part in parts if part in self.types]
            if folded(key) in self.spellings or not about or _NEUTRAL.issuperset(set(parts) - set(about)):
                continue
            same = any(
                name in self.given and self._same(name, text) for name in about
            ) and self.understanding.is_own_head(" ".join(parts))
            if not same and not _SENTENCE.search(text):
                return True
        return False

    def _names_asked(self, text: str) -> bool:
        """Whether a text has the name of an asked step."""
        return any(word in self.types for word in _BETWEEN.split(text))

    def _stands_in_a_text(self, text: str) -> bool:
        """Whether a text is a part of one that the steps read."""
        part = text.casefold()
        return len(part) >= _SHORTEST_PART and any(
            part in given.casefold() for name, given in self.given.items() if name not in self.types
        )

    def _is_spelled(self, key: str) -> bool:
        spelled = folded(key)
        return any(each in spelled for each in self.spellings)

    def _takes_back(self, label: str, text: str, words: frozenset[str]) -> bool:
        """Whether an entry denies, doubts or corrects values, whatever else of it is not understood."""
        value = _last_side(text)
        corrected = not _MEANING.isdisjoint(words) and not any(self._same(name, value) for name in self.given)
        return (
            (corrected and _NUMBER.fullmatch(value) is not None)
            or self.understanding.takes_back(label, text)
            or (alters(text, self.understanding.own) != "" and not (is_nothing(text) or _SENTENCE.search(text)))
            or self.mentions.misstated(text)
            or any(struck_spans(text))
        )

    def _same(self, name: str, text: str) -> bool:
        """Whether a text gives the value that the answer gives to a step, if it gives one."""
        mine, own = (_last_side(each) for each in (text, self.given.get(name, "")))
        return mine == own or (
            all(map(_NUMBER.fullmatch, (mine, own))) and without_zeros(mine.strip()) == without_zeros(own.strip())
        )

    def _is_further(self, label: str) -> bool:
        """Whether a label names a step that was not asked."""
        return any(folded(name[0]) not in self.spellings for name in _NAME.finditer(label))

    def _is_harmless(self, label: str, words: frozenset[str], text: str, *, further: bool) -> bool:
        """Whether a number below a label is the answer again, one of a further step, or none of what was asked."""
        plain = _NAME.sub(" ", label)
        if any(self._same(name, text) for name in self.given):
            return amount_stands_alone(f"1 {plain.strip().lower()}", 0, 1)
        about = not self.spellings.keys().isdisjoint(words)
        pointing = _MEANING if further else _MEANING | _POINTING
        known = further or not self.understanding.unread(plain, _MEASURED)
        return known and not about and pointing.isdisjoint(words)

    def _is_unit(self, text: str) -> bool:
        """Whether a text is a unit in which the values may be, and scales none of them."""
        if is_nothing(text) and not _DASH.fullmatch(text):
            return True
        written = f"1 {text}"
        scales = not CHANGING.isdisjoint(text.casefold().split())
        if scales or _NOT_A_UNIT.search(text) or not amount_stands_alone(written.lower(), 0, 1):
            return False
        if len(text.split()) > 1 and not text.startswith("US "):
            return False
        if text in ("%", "percent"):
            return all(each.kind == "percent" for each in self.types.values())
        units = [each.unit for each in find_numbers(written) if each.unit is not None]
        currencies = {each.currency for each in self.types.values() if each.currency is not None}
        if units or currencies:
            return all(any(compatible(unit, each) for unit in units) for each in currencies)
        known = factors_of(text) is not None or _UNIT.fullmatch(text) is not None
        return known or text.casefold() in self.understanding.own


def folded(key: str) -> str:
    """A key without what differs between spellings of it."""
    return _NO_NAME.sub("", without_unseen(unicodedata.normalize("NFKC", key))).casefold()


def _is_truth(text: str) -> bool:
    return text.casefold() in _TRUTHS


def _last_side(text: str) -> str:
    return text.rpartition("=")[2].strip().casefold()


def _leaves(entries: Mapping[str, object]) -> Iterator[tuple[tuple[str, ...], str]]:
    """Every text, number and truth value in some entries, with the keys that lead to it."""
    stack: list[tuple[tuple[str, ...], object]] = [((key,), entry) for key, entry in entries.items()]
    while stack:
        path, entry = stack.pop()
        if isinstance(entry, dict) and len(path) <= _DEEPEST:
            stack += [((*path, key), each) for key, each in entry.items()]
        elif isinstance(entry, list):
            stack += [(path, each) for each in entry]
        elif entry is not None:
            yield path, str(entry).lower() if isinstance(entry, bool) else str(entry).strip()
