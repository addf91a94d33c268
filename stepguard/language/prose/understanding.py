"""Words that leave a claim its writer's own: a claim behind others, or with others in a remark behind it, is not read.

One reader for transcripts, for answers and for what stands around the object of a reply. Understood are words of
grammar, arithmetic, numbering, answers, quantities, units and currencies, and those of the procedure. Whatever else a
writer may say, in any language, that a claim is another's, a guess, an example, old or false, is not, and is named.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from stepguard.core.patterns import lazy_pattern
from stepguard.core.verdicts import shorten
from stepguard.language.prose.idioms import IDIOMS, REFUSED, SIGN, TURNING, points_below
from stepguard.language.prose.lexicon import (
    ASKING,
    BEING,
    CHANGING,
    COMPARING,
    CONDITIONS,
    FAULTS,
    HEADS,
    LABELS,
    LEADING,
    MEASURES,
    NO_LABEL,
    OPERATIONS,
    PRAISE,
    REMARKS,
    changes_nothing,
    is_finite,
    is_nothing,
    is_of_work,
    is_own,
    is_understood,
    may_act,
)
from stepguard.language.prose.retraction import doubted_before, find_retractions
from stepguard.language.prose.speech import alters, disowns, is_courtesy, points, turns_round, without_idioms
from stepguard.language.prose.vocabulary import CONTROL, DOUBTFUL

WORD: Final = lazy_pattern(r"[^\W\d_]+(?:['\u2019][^\W\d_]+)*")
# The point of a short word (`e.g.`, `No.`) or of one that is cut off (`approx.`, `vs.`) ends no sentence.
SENTENCE_END: Final = lazy_pattern(
    r"(?:(?<=[^\W_]{3})|(?<=[0-9)\]*`\"}]))(?<!approx)(?<!\bMrs)(?<!\bvs)(?<!\best)(?:[.!?]|;)[*_`\"]{0,3}(?=\s)"
    r"|(?<=\w)[!?](?=\s)|\n"
)
# Times (10:05), proportions (1:2) and signs such as := are no labels.
LABEL: Final = lazy_pattern(r"(?<![0-9]):(?![:=/])|:(?![0-9:=/])|\uff1a")
_CONCLUDING: Final = lazy_pattern(r"\b(?:so(?! far\b| that\b)|therefore|thus|hence)\b", re.IGNORECASE)
PART: Final = lazy_pattern(r",(?=\s|\Z)|\s(?:[-\u2013]|--)(?=\s|\Z)|\u2014|[()\[\]]")
_SUBJUNCTIVE: Final = lazy_pattern(r"\W*(?:had|were|should|wäre|hätte)\b", re.IGNORECASE)
REASON: Final = lazy_pattern(r"\W*(?:since|because)\b", re.IGNORECASE)
_OPERATION: Final = lazy_pattern(
    r"\W*(?:(?:first(?:ly)?|second(?:ly)?|third(?:ly)?|next|then|now|and|finally|lastly|to|we|i|let us|let's|so|also"
    r"|can|will|must|need to|have to|step)\W+)*([a-z]+)\b",
    re.IGNORECASE,
)
_QUANTITY_OF: Final = lazy_pattern(r"\b(?P<head>\w+) (?:of|for|per|in|on)\b", re.IGNORECASE)
_OWNED: Final = lazy_pattern(
    r"\b(?:your|his|her|their|[^\W\d_]+(?:['\u2019]s|s['\u2019])) (?P<owned>[\w ]+?)(?: is)?\W*\Z", re.IGNORECASE
)
_ACTOR: Final = lazy_pattern(
    r"\W*(?:[Ss]o |[Tt]hen |[Nn]ow )?(?:[A-Z][\w-]+|(?:[Tt]he|[Aa]n?|[Ee]ach|[Ee]very) [a-z-]+|(?i:s?he|they)) (?:earn"
    r"|pay|sell|buy|spend|save|owe|charge|produce)s?(?:ed)? ?|\W*(?:[Ss]o |[Tt]hen )?(?:[A-Z][\w-]+|(?i:s?he|they"
    r"|the [a-z-]+)) (?:paid|sold|bought|spent) ?|\W*(?:[Ss]o |[Tt]hen )?(?i:s?he|they) (?:has|have|had|needs?|gets?) ?"
)
"""Who does what a value is the amount of: ``Maria earns``."""
_SHOULD_BE: Final = lazy_pattern(r"\b(?:should|must|can|may) (?:now |therefore |thus )?be (?P<done>\w+)", re.IGNORECASE)
"""What a step in words asks, as done: ``should be approved``."""
_DONE: Final = lazy_pattern(
    r"\W*(?:(?:first|then|next|finally|so|and|here|below|overall|to \w+ (?:this|that),?)[, ]+)?(?:i|we)(?:['\u2019]ve"
    r"| have| had)?(?: (?:also|then|first|simply|carefully|just|now|already|only"
    r"|gone through and))* (?P<done>[a-z]+)\b",
    re.IGNORECASE,
)
_OWN_WORK: Final = lazy_pattern(
    r"\W*(?:[\w']+[ ,!]+){0,6}?(?:i|we|you|ich|wir|je|nous)\b|\A\W*(?:(?:sure|certainly|absolutely|okay|ok"
    r"|so)[,!]? )?(?:(?:based on|using|from|given) [\w ]{1,60}, )?"
    r"(?:here|below|my|our|please|to|let|the following|hier|nachfolgend|im folgenden|voici|voil\u00e0"
    r"|ci-dessous|aqu\u00ed|a continuaci\u00f3n)\b",
    re.IGNORECASE,
)
"""By which a line that leads to an object says that it is the writer's."""
_LONGEST_LABEL: Final = 200
_ASIDE: Final = lazy_pattern(r"\s*[(\[](?=[^()\[\]\n]*[^\W\d_]{2})[^()\[\]\n]*+[)\]][.\s]*")
_TITLE: Final = lazy_pattern(r"[^\s\d|:<][^\s|:<]{0,29}(?: [^\s\d|:<][^\s|:<]{0,29}){0,5}(?<![.,;!?)])")


@dataclass(frozen=True, slots=True)
class Understanding:
    """What is understood around the claims about one procedure.

    Attributes:
        own: the words of the procedure, in small letters.
        context: those of the texts that its steps read.
        proved: whether the claims are checked so that no other value would pass: then only words that alter can say
            otherwise, and not those that are merely unknown.
    """

    own: frozenset[str] = frozenset()
    context: frozenset[str] = frozenset()
    proved: bool = False

    @classmethod
    def of(cls, texts: Iterable[str], documents: Iterable[str] = (), *, proved: bool = False) -> Understanding:
        """The one of a procedure, from its names and descriptions, and from the texts that its steps read."""
        words = {word for text in texts for word in words_of(REFUSED.sub(" ", text))}
        own = frozenset(word for word in words - CONTROL - DOUBTFUL if not word.endswith("ed"))
        return cls(own, frozenset(word for text in documents for word in words_of(text)), proved)

    def unread(self, text: str, more: frozenset[str] = frozenset(), *, behind: bool = False) -> str:
        """The first word or sign of a text that is not understood, empty where there is none.

        Args:
            text: the text.
            more: further words that are understood, in small letters.
            behind: whether it stands behind a claim, where words of time and of extent say something of it.
        """
        knows = changes_nothing if behind else is_understood
        plain = IDIOMS.sub(" ", text)
        if (turned := TURNING.search(plain)) is not None:
            return turned[0]
        if (sign := SIGN.search(plain)) is not None:
            return sign[0]
        return next(
            (word[0] for word in WORD.finditer(plain) if not knows(word[0], self.own) and word[0].lower() not in more),
            "",
        )

    def rests_elsewhere(self, sentence: str) -> bool:
        """Whether a whole sentence says nothing of a claim beside it: said to the reader, or told of the work."""
        if is_courtesy(sentence):
            return True
        plain = self._plainly(sentence)
        if plain is None or not any(may_act(word[0]) for word in WORD.finditer(sentence)):
            return False
        words = [word[0] for word in WORD.finditer(plain)]
        pointing = points(plain)
        context = frozenset[str]() if pointing else self.context

        def known(word: str) -> bool:
            return self._is_known(word, documents=self.proved or not pointing) or (
                word.lower().removesuffix("'s") in context
            )

        strange = [word for word in words if not known(word)]
        if not strange:
            return True
        if pointing or any(turns_round(word) or word[0].isupper() for word in strange if word != words[0]):
            return False
        return self.proved or _tells_own_work(plain) or _tells_what_is_done(words, known)

    def disowns(self, before: str, behind: str) -> str:
        """What a line that works out a value of the answer says against it before or behind that; empty if nothing."""
        before, behind = (IDIOMS.sub(" ", without_idioms(part)) for part in (before, behind))
        line = f"{before} = {behind}"
        sign = "?" if "?" in line else TURNING.search(line) or SIGN.search(line)
        return sign[0] if sign else disowns(before, behind, self.own)

    def leads_in(self, line: str) -> bool:
        """Whether a line in front of an object tells of the writer's own work, or of the task, and leads to it."""
        *told, last = [part for part in SENTENCE_END.split(line) if WORD.search(part)] or [""]
        if not last:
            return False
        if not all(self.rests_elsewhere(each) or not self.unread(each, behind=True) for each in told):
            return False
        if line.rstrip(" *_`>")[-1:] in (".", "!") and self.rests_elsewhere(last):
            return True
        return self._presents(last) or not self.unread_before(last)

    def _presents(self, words: str) -> bool:
        """Whether words that lead to something say only that it follows, and of whose work it is: the writer's own."""
        plain = self._plainly(words)
        if plain is None or (self.proved and is_courtesy(words)):
            return plain is not None
        said = [word[0].lower() for word in WORD.finditer(plain)]
        own = _OWN_WORK.match(plain) is not None
        if not own and not any(is_finite(word) and word not in BEING for word in said):
            return False
        if self.proved and own and not points(plain):
            return not any(turns_round(word) or word[0].isupper() for word in self._strange(plain)[1:])
        return not self._strange(plain, documents=own)

    def _plainly(self, sentence: str) -> str | None:
        """A sentence without idioms; None where a word or sign of it may alter a claim."""
        plain = _SHOULD_BE.sub(
            lambda found: " " if is_own(found["done"], self.own) else found[0],
            IDIOMS.sub(" ", without_idioms(REASON.sub(" ", sentence, count=1) if REASON.match(sentence) else sentence)),
        )
        if alters(plain, self.own) or SIGN.search(plain) or TURNING.search(plain) or "?" in plain:
            return None
        return plain

    def is_plain_label(self, label: str) -> bool:
        """Whether a label only names what a document or a task has."""
        return not self._strange(label) and not alters(label, self.own)

    def _is_known(self, word: str, *, documents: bool) -> bool:
        return is_of_work(word, documents=documents) or changes_nothing(word, self.own)

    def _strange(self, text: str, *, documents: bool = True) -> list[str]:
        return [word[0] for word in WORD.finditer(text) if not self._is_known(word[0], documents=documents)]

    def shown(self, words: str) -> str:
        """Words that are not understood, and which of them is the first that is not, for a message."""
        word = self.unread(words)
        return repr(shorten(words)) + (f" ({word!r} is no word of the procedure)" if WORD.fullmatch(word) else "")

    def unread_before(self, front: str) -> str:
        """The words in front of a claim that are not understood, as they are to be named; empty where all are.

        Args:
            front: the text from the beginning of its line, or from the end of the claim before.
        """
        if not front.strip(" \n,;.*-|"):
            return ""
        begin = 0
        for colon in LABEL.finditer(front):
            ends = [end.end() for end in SENTENCE_END.finditer(front, begin, colon.start())]
            label = front[max(ends, default=begin) : colon.start()]
            if label.strip(" \t*_`#>").lower() in NO_LABEL or self._unread_label(label):
                return front[max(ends, default=begin) : colon.end()].strip()
            begin = colon.end()
        ends = [end.end() for end in SENTENCE_END.finditer(front, begin)]
        clause = front[max(ends, default=begin) :]
        if front.count('"') % 2 and WORD.search(front):
            return front.strip()  # a quotation
        if _SUBJUNCTIVE.match(clause):
            return clause.strip()
        concluded = [concluding.end() for concluding in _CONCLUDING.finditer(clause)]
        clause = clause[max(concluded, default=0) :]
        parts = PART.split(clause)
        for part in parts[:-1]:
            if not REASON.match(part) and self.unread(part):
                return part.strip()
        words = words_of(IDIOMS.sub(" ", parts[-1]))
        if _ACTOR.fullmatch(parts[-1].rstrip("$*_")) and not REFUSED.search(parts[-1]):
            return ""
        if self._is_quantity(parts[-1]) and (words[-1:] == ["is"] or _OWNED.search(parts[-1])):
            return ""
        if self.unread(parts[-1]) or (words and self._turns(words, parts)):
            return parts[-1].strip()
        return ""

    def unread_heading(self, line: str) -> str | None:
        """What is not understood of a heading, empty where all is; None where a line is none.

        One is marked as such, or a title of a few words, or ends in a colon, or stands in brackets, or speaks of what
        is below it. With an equation in it, it is one where it supposes something.
        """
        words = line.lstrip(" \t>0123456789.)(").rstrip()
        bare = words.strip("*_ ")
        title = _TITLE.fullmatch(line.strip()) is not None
        ends = bare[-1:] in (":", "\uff1a")
        marked = title or words[:1] == "#" or ends or _ASIDE.fullmatch(line) or points_below(words)
        if not bare or not marked or "|" in line:
            return None
        if "=" in line:
            return bare if ends and doubted_before(bare[:-1]) == "supposed" else None
        return next((label.strip() for label in LABEL.split(bare) if self._unread_label(label)), "")

    def _unread_label(self, label: str) -> bool:
        if not self.unread(label) or self._is_quantity(label) or _is_operation(label):
            return False
        return _OWN_WORK.match(label) is None or not self._presents(label)

    def is_own_head(self, head: str) -> bool:
        """Whether the head of a column, or a key, is understood as one of the writer's own."""
        head = head.replace("_", " ")
        words = frozenset(words_of(head))
        return (PRAISE | (COMPARING - self.own)).isdisjoint(words) and not self.unread(head, HEADS)

    def is_strange_cell(self, head: str, cell: str) -> bool:
        """Whether a cell beside a value is not understood, or denies it where its column names or describes things."""
        words = words_of(head)
        if not FAULTS.isdisjoint(words):
            return not is_nothing(cell)
        if LABELS.isdisjoint(words):
            return bool(self.unread(cell, REMARKS, behind=True))
        return self.denies(cell)

    @staticmethod
    def takes_back(key: str, said: str) -> bool:
        """Whether what stands under a key beside a value denies, doubts or corrects it, whatever else it says."""
        words = words_of(key.replace("_", " "))
        if not FAULTS.isdisjoint(words):
            return not is_nothing(said)
        if not PRAISE.isdisjoint(words):
            return said.strip().lower() in ("false", "no", "0")
        said = "" if is_nothing(said) else said
        parts = (part.strip(" .!") for part in SENTENCE_END.split(said) if not is_courtesy(part))
        doubted = any(map(doubted_before, parts))
        return doubted or (said != "" and any(find_retractions(f"{key}: {said}")))

    @staticmethod
    def denies(words: str) -> bool:
        """Whether some words deny or doubt what stands beside them, whatever the procedure is about."""
        return REFUSED.search(words) is not None

    @staticmethod
    def _turns(words: list[str], parts: list[str]) -> bool:
        """Whether understood words right in front of a claim make it a question, a condition or an operand."""
        asks = words[0] in ASKING and len(parts) == 1
        return asks or words[0] in CONDITIONS or _last(words) in CHANGING

    def _is_quantity(self, label: str) -> bool:
        """Whether a label says of what it is the quantity: ``Number of books``, ``The farmer's total``."""
        if len(label) > _LONGEST_LABEL or REFUSED.search(label):
            return False
        if (found := _OWNED.search(label)) is not None:
            named = found["owned"]
        elif (found := _QUANTITY_OF.search(label)) is not None:
            named = label[: found.end("head")]
        else:
            return False
        words = words_of(named)
        return words[-1:] != [] and words[-1] in MEASURES and not self.unread(named)


def _tells_what_is_done(words: list[str], known: Callable[[str], bool]) -> bool:
    """Whether a sentence says what something that is known does: so what it does it to is nothing of a claim."""
    if not BEING.isdisjoint(word.lower() for word in words):
        return False  # it says what something is
    verb = next(
        (at for at, word in enumerate(words) if at and may_act(word) and words[at - 1].lower() not in LEADING), 0
    )
    return verb > 0 and all(map(known, words[: verb + 1]))


def _tells_own_work(sentence: str) -> bool:
    """Whether a sentence says what its writer did with the task, as far as its verb is one of such work."""
    found = _DONE.match(sentence)
    return found is not None and is_of_work(found["done"], documents=False)


def _is_operation(label: str) -> bool:
    """Whether a label says what its writer works out, whatever of: ``Then add the dogs of the farmer``."""
    verb = _OPERATION.match(label)
    return verb is not None and verb[1].lower() in OPERATIONS and doubted_before(label) != "denied"


def _last(words: list[str]) -> str:
    """The last of some words that is no word of grammar alone, as of ``half of the``."""
    return next((word for word in reversed(words) if word not in ("of", "the", "that", "to")), "")


def words_of(text: str) -> list[str]:
    """The words of a text in small letters."""
    return [word[0].lower().replace("\u2019", "'") for word in WORD.finditer(text)]
