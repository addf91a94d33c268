"""Citations: does what a step's work quotes stand in the document that is to decide it?"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice, pairwise
from typing import TYPE_CHECKING, ClassVar, Final

from stepguard.checks.built import DocumentCheck, check_document
from stepguard.core.verdicts import Claim, Strength, Verdict, shorten
from stepguard.documents.names import Words, typewritten
from stepguard.documents.places import Place
from stepguard.documents.sentences import begun_before, governed_by_denial, is_whole
from stepguard.documents.view import View
from stepguard.errors import ConfigError
from stepguard.language.prose.retraction import doubted_before
from stepguard.language.values import Value, show_value

if TYPE_CHECKING:
    from stepguard.procedure.steps import Step

_MAX_QUOTES: Final = 20  # each is searched in the whole document
_MAX_PASSAGE: Final = 2000
_QUOTED: Final = re.compile(
    '"([^"]{1,2000})"|\u201c([^\u201d]{1,2000})\u201d|\u201e([^\u201c\u201d]{1,2000})[\u201c\u201d]'
    "|\u00ab([^\u00bb]{1,2000})\u00bb|(?<!\\w)['\u2018]([^'\u2019\n]{8,2000})['\u2019](?!\\w)"
)
# What a quotation leaves out stands between parts that are looked for one after the other.
_GAP: Final = re.compile(r"\[?(?:\.\.\.|\u2026)\]?")
_EDGES: Final = " \t\r\n,.;:!?\"'\u201c\u201d\u201e\u2018\u2019"
_ENDS: Final = " \t\r\n,.;:!?"
_WORD: Final = re.compile(r"\w+")
_ALTERED: Final = re.compile(r"\[(\w{1,30})\]")
"""A letter or a word that was fitted in: ``[B]ooks are taken back``."""
_INTRODUCED: Final = re.compile(r"(?:as|according to|under|per|in) [^\n,:\"]{1,40}[,:] ", re.IGNORECASE)
_MAX_PLACES: Final = 50
_CONDITION: Final = re.compile(
    r"\b(?:if|unless|whether|except|provided|until|in case|as long as|so long as|on condition|subject to)\b[^;]*\Z",
    re.IGNORECASE,
)
_CONDITION_BEHIND: Final = re.compile(
    r"(?<![.!?:;]),?\s(?:but |and )?(?:only|if|when|whenever|where|once|until|unless|except|provided"
    r"|subject to|as long as|so long as|on condition|in case|but not)\b",
    re.IGNORECASE,
)
"""What conditions a passage, in the rest of its sentence."""
_TURNING: Final = re.compile(
    r"\b(?:not|no|never|cannot|neither|nor|none|without|if|unless|except|until|only)\b|n['\u2019]t\b", re.IGNORECASE
)
"""What may be left out of no passage."""


@dataclass(frozen=True, slots=True, init=False)
class Cites(DocumentCheck):
    """The work of a step quotes a passage of a document, in quotes, and the passage stands there.

    The model is asked for it: beside the step stands that its work is to quote what decides it. Every passage that is
    quoted must stand in the document, or in something else that the step reads; dots may leave something out between
    passages that are long enough each, though nothing that turns them. A passage must not be cut from words of its
    sentence that deny or condition it, nor from a label that denies what is below it.

    Args:
        document: the variable of type text that holds the document.
        words: how many words a passage has at least; a document with fewer may be quoted as a whole.

    A pass is ``"constrained"``: the passage stands there; that it decides the step is the model's word.

    Raises:
        ConfigError: an option is none of those.
    """

    _strongest: ClassVar[Strength] = "constrained"
    document: str
    words: int

    def __init__(self, document: str, *, words: int = 3) -> None:
        check_document(document)
        if type(words) is not int or not 1 <= words <= 50:
            raise ConfigError(f"words is a number from 1 to 50, not {words!r}", option="words")
        self._set(document=document, words=words)

    @property
    def request(self) -> str:
        """What the model is asked for beside the step."""
        return f'quote in "work" the words of {self.document} that decide it'

    def for_passage(self, document: str) -> Copied:
        """The check of a step that copies the passage before the value is asked."""
        return Copied(document, words=self.words)

    def _misfit(self, step: Step) -> str | None:
        if self.document == step.id:
            return f"{step.id!r} is the step's own value: name the document that decides it"
        return "a step with an expression quotes nothing" if step.expression is not None else None

    def _judge_by(self, document: str, step: Step, values: Mapping[str, Value], claim: Claim) -> Verdict:
        quotes = [next(filter(None, match.groups())) for match in _QUOTED.finditer("\n".join(claim.work))]
        if not quotes:
            return self._fail(f"the work quotes nothing of {self.document}", "unfaithful_work")
        view = View(document, csv=False)
        words = Words(view.text)
        others: Words | None = None
        least = min(self.words, len(_WORD.findall(view.text)))
        cited: tuple[int, int] | None = None
        quotes = [View(_ALTERED.sub(r"\1", quote)).text for quote in quotes]
        for quote in quotes[:_MAX_QUOTES]:
            introduced = _INTRODUCED.match(quote)
            places = _standing(quote, words) or (_standing(quote[introduced.end() :], words) if introduced else [])
            parts = [view.text[slice(*part)] for part in places[0]] if places else []
            if len(parts) > 1 and parts[0].endswith(":"):
                del parts[0]  # a label is as short as it is
            if parts and all(len(_WORD.findall(part)) >= least for part in parts):
                cited = cited or (places[0][0][0], places[0][-1][1])
            if places and all(_cut_off(view.text, spans) for spans in places):
                reason = f"{shorten(quote, 60)!r} is cut in {self.document} from words that deny or condition it"
                return self._fail(f"{reason}: quote the whole sentence, with what it stands under", "unfaithful_work")
            if not places:
                read = (show_value(value) for name, value in values.items() if name not in (self.document, step.id))
                others = others or Words("\n".join(read))
                if not _standing(quote, others):
                    reason = f"{shorten(quote, 60)!r} is quoted, and does not stand in {self.document}"
                    return self._fail(reason, "unfaithful_work")
        if cited is None:
            return self._fail(f"no passage of {least} words of {self.document} is quoted", "unfaithful_work")
        place, *_ = Place.all_of(document, [view.span(*cited)])
        return self._pass(f"{self.document}, {place}")


@dataclass(frozen=True, slots=True)
class Copied(DocumentCheck):
    """The value is sentences or lines of a document as they stand there, none cut. A pass is ``"grounded"``.

    Args:
        document: the variable of type text that holds the document.
        words: how many words it has at least; a document with fewer may be copied as a whole.
    """

    _strongest: ClassVar[Strength] = "grounded"
    document: str
    words: int = 1

    def _judge_by(self, document: str, step: Step, values: Mapping[str, Value], claim: Claim) -> Verdict:
        passage = str(values[step.id])
        view = View(document, csv=False)
        count = _words_in(passage)
        if count < min(self.words, len(_WORD.findall(view.text))) or not count:
            return self._fail(f"no passage of {self.words} words of {self.document}", "unfaithful_work")
        spans = list(Words(view.text).find(passage.strip(_EDGES))) if len(passage) <= _MAX_PASSAGE else []
        if not spans:
            return self._fail(f"{shorten(passage, 60)!r} does not stand in {self.document}", "unfaithful_work")
        if not any(is_whole(view.text, *span) and _words_in(view.text[slice(*span)]) == count for span in spans):
            reason = f"{shorten(passage, 60)!r} is cut out of a sentence or line of {self.document}: copy all of it"
            return self._fail(reason, "unfaithful_work")
        return self._pass(strength="grounded")


def _words_in(text: str) -> int:
    """How many words a text has, be it written with blanks or without."""
    return len(_WORD.findall(typewritten(text)))


def _standing(quote: str, words: Words) -> list[tuple[tuple[int, int], ...]]:
    """Where the parts of a passage stand, one after the other, for every place of its first part, up to some."""
    parts = [part.strip(_ENDS) for part in _GAP.split(quote) if _WORD.search(part)]
    places = [list(islice(words.find(part), _MAX_PLACES)) for part in parts]
    found: list[tuple[tuple[int, int], ...]] = []
    for first in places[0] if places else ():
        chain = [first]
        for spans in places[1:]:
            following = next((span for span in spans if span[0] >= chain[-1][1]), None)
            if following is None:
                break
            chain.append(following)
        if len(chain) == len(places):
            found.append(tuple(chain))
    return found


def _cut_off(text: str, spans: tuple[tuple[int, int], ...]) -> bool:
    """Whether a passage leaves out words of its sentences that deny or condition it, or joins parts of two sentences.

    A label in front may deny (not covered), or be who speaks (Customer).
    """
    front = begun_before(text, spans[0][0]).rstrip(" :\"'\u201c\u201e")
    if doubted_before(front) or _CONDITION.search(front) or governed_by_denial(text, spans[0][0]):
        return True
    if _CONDITION_BEHIND.match(text, spans[-1][1]):
        return True
    for (start, end), (following, _) in pairwise(spans):
        if front := begun_before(text, following):
            whole = " ".join(text[start:following].split())
            if not front.endswith(whole) or _TURNING.search(text, end, following):
                return True
    return False
