"""What follows a claim, up to the next one: it counts where that is understood, or tells of something else.

One reader for transcripts, for answers and for what stands behind the object of a reply. A sentence tells of something
else where it works something else out (``She sells 9 * 2 = 18 eggs``), or where it tells with a verb and a number what
happens and no word of it may speak of what stands before. Whatever else it is, a denial, a joke, a source or a date, in
any language, is not understood, and is named.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from stepguard.core.patterns import lazy_pattern
from stepguard.language.prose.idioms import SIGN
from stepguard.language.prose.lexicon import CONDITIONS, POINTING_BACK, REMARKS, RIGHTING, is_verb
from stepguard.language.prose.mentioned import Mentions, mentions_another
from stepguard.language.prose.retraction import doubted_before, find_retractions, without_zeros
from stepguard.language.prose.spelled_numbers import spelled_number
from stepguard.language.prose.understanding import PART, REASON, SENTENCE_END, WORD, Understanding, words_of
from stepguard.language.prose.vocabulary import CONTROL, DOUBTFUL

MARKUP: Final = lazy_pattern(
    r"<\|/?(?:(?:im|turn|message|header|begin|start|end|eot|eom|eos|bos|assistant|text|channel|return|final|fim|pad|sep"
    r"|header|id|of|sentence)[_\u2581]?)+\|>(?:assistant\b)?|</?(?:s|p|br|hr|b|i|u|em|strong|code|pre|div|span|small|center|h[1-6]"
    r"|[uo]l|li|d[ldt]|table|t(?:able|head|body|foot|r|h|d)|sub|sup|section|article|details|summary|html|body|font|think"
    r"|(?:final_?)?answer|result|response|reply|output|json|steps?|assistant|solution|object|end_of_turn|eos)\b[^<>\n]{0,99}>"
    r"|<https?://[^\s<>]{1,200}>"
    r"|\\[A-Za-z]{1,20}|\0",
    re.IGNORECASE,
)
"""Marks of turns, of HTML and of LaTeX."""
_CALLED: Final = lazy_pattern(
    r"\b(?:it|this|that|which|these|those|(?:the|this|that|my) (?:value|result|answer|number|claim|figure|step|line)"
    r"|[a-z]+_?[0-9]+)(?:(?:['\u2019]s| is| was| are| were| seems| looks)\b(?! [-+$(]*[0-9])"
    r"| (?:should|must|may|might|would|could|can|cannot)(?: not)? be\b| \w{2,6}n['\u2019]t\b)",
    re.IGNORECASE,
)
"""What is said of a claim before it, beside another number."""
_CORRECTED: Final = lazy_pattern(
    r"\b(?:make (?:it|that)|c['\u2019]est|wir erhalten|nous obtenons|on obtient|obtenemos|tenemos"
    r"|(?:it|this|that|which|value|result|answer|number|figure|total|sum|product|difference|one|das|es|ergebnis|wert"
    r"|antwort|summe|betrag|cela|r\u00e9sultat|valeur|r\u00e9ponse|somme|resultado|valor|respuesta|suma)"
    r"(?:['\u2019]s| is| was| are| equals?| makes?| gives?| becomes?| comes to| works out (?:to|as)| ist| betr\u00e4gt"
    r"| ergibt| lautet| macht| est| vaut| fait| donne| es| da))"
    r"(?: (?:now|then|exactly|simply|about))? (?P<is>[-+$(]{0,2}[0-9][0-9.,]*)(?![0-9.,]|\s*[-+*/\u00d7\u00f7^])"
    r"|\A\W*(?:(?:so|thus|hence|then|finally|(?:we|i) (?:take|get|got|have|had)) )?(?:(?P<name>(?:\w+ ){0,2}\w*)\s*"
    r"(?::|=|->|=>|[\u2192\u21d2\u279c])\s*){0,2}(?P<to>[-+$]{0,2}[0-9][0-9.,]*)"
    r"(?:,? that is)?\W*\Z",
    re.IGNORECASE,
)
"""Another number for a claim before it: ``It is 53``, ``Final: 53``, ``53``."""
_DENIED: Final = lazy_pattern(
    r"\b(?:not|no longer|never|instead of|rather than|n['\u2019]t)[: ]+(?:(?:equal to|exactly|be|the|really) ){0,2}"
    r"([-+$(]{0,2}[0-9][0-9.,]*)|(?<![0-9.,])([-+$(]{0,2}[0-9][0-9.,]*) (?:is|was|isn|wasn|has been)\b"
    r"(?! (?:then |first )?(?:multiplied|added|subtracted|divided)\b)",
    re.IGNORECASE,
)
"""A number that is denied, or of which something is said."""
_OF_BOTH: Final = lazy_pattern(
    r"\b(?:sum|product|difference|quotient) (?:of|between) [0-9][0-9.,]* (?:and|by) [0-9][0-9.,]*"
    r"|\b(?:times|plus|minus) [0-9][0-9.,]*(?= is)",
    re.IGNORECASE,
)
"""The last operand of a sum in words, of which nothing is said: ``the sum of 12 and 7 is 19``."""
_PAST: Final = lazy_pattern(
    r"\b(?:was|were|been)(?: then| first| next| now)? (?=(?:us|multipli|add|subtract|divid|comput|calculat|round|appli"
    r"|complet|follow|perform|execut|carri|deduct|deriv|obtain|evaluat|doubl|halv|tripl)ed\b"
    r"|(?:given|taken|found|done|easy|simple|straightforward)\b)",
    re.IGNORECASE,
)
"""A past tense that only tells how a claim was worked out."""
_PLANNED: Final = lazy_pattern(
    r"\b(?:we|i|let us|let['\u2019]s|let me)(?:['\u2019]ll| will)? (?:now )?(?:need|take|took|call|know(?! if)"
    r"|write|read|see)\b|\bmore (?:steps?|operations?|calculations?)\b"
    r"|\b(?:values?|results?) (?:from before|(?:of|from) (?:an |the )?(?:earlier|previous|preceding) (?:step|line)s?)\b"
    r"|\b(?:see|as (?:shown|computed|calculated|described|given|stated|noted|explained|derived|listed|defined"
    r"|mentioned)|formulas?) above\b|\b(?:carr(?:y|ied|ying)|work(?:s|ed|ing)?|figur(?:e|ed|ing)) out\b",
    re.IGNORECASE,
)
"""What a writer does with a claim, or says of how it was worked out."""
_CHECKED: Final = lazy_pattern(
    r"\A\W*(?:(?:verification|check|proof)(?=:)|(?:let me )?double-check(?:ing|ed)?(?=:)|(?:all )?correct[.!]?\s*\Z"
    r"|(?:(?:(?:all|both|each|every) )?(?:of )?(?:the )?(?:\w+ )?(?:steps?|values?|checks?|results?|arithmetic)"
    r"|everything|i|this|it)(?:(?: have| has)? been| is| are| were)?"
    r" (?:verified|checked|double-checked|true|correct|checks? out|pass(?:es)?)\b)",
    re.IGNORECASE,
)
"""By what a writer checks a claim before it, or says that it is checked."""
_EQUATION: Final = lazy_pattern(
    r"[0-9)%][^\S\n]*(?:[a-z]{1,20}[^\S\n]*)?[-+*/x\u00d7\u00f7\u2212][^\S\n]*[-\u2212$(.]{0,4}[0-9]"
    r"[^=\n]{0,200}(?:\n[^\S\n]*)?=[^=]",
    re.IGNORECASE,
)
_GOES_ON: Final = lazy_pattern(
    r"\b(?:add|subtract|deduct|take|multipl(?:y|ie)|divid)(?:e?s|e?d|ing)?(?: (?:it|that|this))?(?: by)? "
    r"[$\u20ac\u00a3]?[0-9][0-9.,]*(?: more)?(?: off)?,? (?:(?:and|to|then|which)(?: then)?"
    r" (?:gets?|got|has|have|makes?|made|gives?|gave|obtains?|reach(?:es)?|ends?|is)|giving|making)\b[^0-9]{0,40}"
    r"(?P<to>[0-9][0-9.,]*)",
    re.IGNORECASE,
)
"""An operation with one operand and its result: ``She adds 1 and gets 53``."""
_NUMBER: Final = lazy_pattern(
    r"(?<!\w)[0-9]|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|half|twice|dozen)\b",
    re.IGNORECASE,
)
_IT_IS: Final = lazy_pattern(r"\W*(?:in fact,? )?it(?:['\u2019]s| is| was)\b", re.IGNORECASE)
_NOT_SO: Final = lazy_pattern(r"\bnot [-$(]{0,2}[0-9]", re.IGNORECASE)
_ACTORS: Final = frozenset(("he", "she", "they", "his", "her", "their", "if", "as"))
_DECIDED: Final = lazy_pattern(
    r"(?:\bis )?(?<![0-9.,])-?\$?[0-9][0-9.,]* ?(?:[<>]=?|==|[\u2264\u2265]) ?-?\$?[0-9][0-9.,]*"
    r"(?: is (?:true|false|not true))?(?:\? *(?:yes|no)\b)?",
    re.IGNORECASE,
)
"""A comparison of two numbers, and whether it holds."""
_LEADING: Final = lazy_pattern(
    r"\W*which (?:(?:leaves|gives|means|makes|takes|brings)\b|(?:the|a|she|he|they)(?: [a-z]+)? (?:pays|owes|earns|gets"
    r"|needs|spends|saves|receives|sells|buys)\b)",
    re.IGNORECASE,
)
"""What a value leads to, or is to somebody."""
_QUALIFYING: Final = lazy_pattern(
    r"\W*(?:(?:not )?(?:including|excluding|counting)|(?:in|ex)cl|without|with|plus|minus|less|before|after|net of"
    r"|except)\b",
    re.IGNORECASE,
)
"""What says of a value what is in it and what is not: ``80.86 (excluding shipping)``."""
_YEAR: Final = lazy_pattern(r"(?<![\w.,$\u20ac\u00a3])(?:1[5-9]|20)[0-9]{2}(?![\w.,]?[0-9]| ?[-+*/\u00d7\u00f7=%])")
_OPERATED: Final = lazy_pattern(r"[0-9)] ?[-+*/\u00d7\u00f7\u2212^] ?[($0-9]")
_DIGITS: Final = lazy_pattern(r"[0-9]+(?:[.,][0-9]+)*")
_COUNTING: Final = lazy_pattern(r"\W*how (?:many|much|far|long)\b[^?]*\?\W*\Z", re.IGNORECASE)
_MARKED: Final = lazy_pattern(
    r"[ \t>]*(?:\#|[-*_]*(?:step|line) ?[0-9]|[0-9]{1,3}[.)] |(?P<mark>\*\*|__).*(?P=mark)\W*\Z|.*[:\uff1a][*_]*\s*\Z)",
    re.IGNORECASE,
)
"""A line that heads what is below it."""
_CONTINUED: Final = lazy_pattern(r"[ &]*=(?![=>])")
_NUMBERED: Final = lazy_pattern(r"[\s#>*_-]*[0-9]{1,3}[.)]")
_ROW: Final = lazy_pattern(r"\s*\||[^|\n]*\|[^|\n]*\||\s*(?:[+=~^-]{3,}\s*)+\Z")
_OF_ELSE: Final = CONDITIONS | {"if", "or", "not", "must", "still", "only"}
"""Words of sentences that may work something else out, though they come to the same."""
_CLAUSE_END: Final = lazy_pattern(r"[*_`\"')\]$ ]{0,4}[.;!:](?=\s|\Z)|[*_`\"')\]$ ]{0,4}(?=\n)")
_PLAIN: Final = lazy_pattern(r"[^\S\n]{1,3}[^\W\d_][^.,;:()\[\]\n\u2014\u2013!=]*")
_UNIT: Final = lazy_pattern(
    r"(?:[^\S\n]+(?:[^\W\d_][\w/]*(?<=[^s\W\d_]s)|[^\W_]+[/\d][\w/]*|people|children|(?:wo)?men|sheep|fish))?"
    r"(?:[^\S\n]+(?:per|an?|each)[^\S\n]+(?:second|minute|hour|day|night|week|month|quarter|year|annum|person|head"
    r"|piece|item|unit|page|mile|km|kilometer|meter|kg|pound|ounce|liter|litre|gallon|dozen))?(?!['\u2019\w])",
    re.IGNORECASE,
)
"""What is counted may be any one word behind a value, if it is a plural, since others may doubt it (``19 allegedly``).

Behind it, or alone, may stand what it is reckoned by: ``18 dollars per day``.
"""


def unread_behind(
    understanding: Understanding,
    behind: str,
    claim: str,
    *,
    followed: bool = False,
    mentions: Mentions | None = None,
    whole: bool = False,
) -> str:
    """The first words behind a claim that are not understood; empty where all are, or tell of something else.

    Args:
        understanding: what is understood.
        behind: the text behind the value, up to the next claim.
        claim: the claim as it was written, for its numbers.
        followed: whether another claim, which headings may be about, stands behind it.
        mentions: the numbers that may be mentioned behind what answers all, None behind a claim.
        whole: whether the claim is a whole object, behind which no sentence goes on.
    """
    reader = _Following(understanding, _DIGITS.findall(claim), mentions)
    if whole:
        return reader.unread_sentences(behind, followed=followed)
    behind = _DECIDED.sub(" ", behind)
    end = _CLAUSE_END.match(behind) or SENTENCE_END.search(behind)
    clause, rest = (behind, "") if end is None else (behind[: end.end()], behind[end.end() :])
    return reader.unread_clause(clause) or reader.unread_sentences(rest, followed=followed)


class _Following:
    """Reads what follows one claim, of which it knows the numbers."""

    def __init__(self, understanding: Understanding, numbers: list[str], mentions: Mentions | None) -> None:
        self._understanding = understanding
        self._mentions = mentions
        self._numbers = frozenset(numbers)
        self._plain = frozenset(map(without_zeros, numbers))
        self._value = numbers[-1] if numbers else ""

    def unread_clause(self, clause: str) -> str:
        """What is not understood of the rest of the clause of a claim."""
        if not clause.strip(" \t\r\n.,;:!*_`\"'$)]}|"):
            return ""
        first, *parts = PART.split(MARKUP.sub(" ", clause.lstrip("*_`\"'$}|")))
        if "?" in clause:
            return clause.strip()
        if self._dates(first) or self._unread_words(first):
            return first.strip()
        return next((part.strip() for part in parts if self._unread_part(part)), "")

    def _unread_words(self, words: str) -> bool:
        """Whether the words right behind a value, apart from a unit, are not understood."""
        plain = _PLAIN.match(words)
        if plain is None:
            return self._unread_part(words)
        rest = words[plain.end() :].strip(" !*_`\"'|")
        if rest.strip(".") and (rest[0] == "." or self._unread_part(rest)):
            return True
        if mentions_another(plain[0], self._plain):
            return True
        unit = _UNIT.match(plain[0])
        if unit is not None and unit[0].strip().lower() in CONTROL | DOUBTFUL:
            return True
        return self._unread(plain[0]) and (unit is None or self._unread(plain[0][unit.end() :]))

    def _unread_part(self, part: str) -> bool:
        """Whether a remark behind a value is not understood: in brackets, behind a comma, a colon or a dash."""
        if not WORD.search(part):
            if part.strip()[:1] in ("\u2248", "~"):
                return False
            foreign = any(digits not in self._numbers for digits in _DIGITS.findall(part))
            alarm = part.strip(" *_.") == "!"
            return alarm or bool(SIGN.search(part)) or (foreign and _OPERATED.search(part) is None)
        if self._corrects(part):
            return True
        if (spelled := spelled_number(part.strip(" .\"'*_"))) is not None:
            return str(abs(spelled)) not in self._plain
        if not self._unread(part):
            return mentions_another(part, self._plain)
        if _QUALIFYING.match(part):
            return True
        words = set(words_of(part))
        leads = REASON.match(part) or _LEADING.match(part)
        return (leads is None or not self._points_on(words)) and not self._tells(part)

    @staticmethod
    def _points_on(words: set[str]) -> bool:
        """Whether words with a verb speak of nothing before them, apart from the one that joins them to it."""
        return any(map(is_verb, words)) and POINTING_BACK.isdisjoint(words - {"which"})

    def unread_sentences(self, behind: str, *, followed: bool) -> str:
        """The first sentence that is neither understood nor about something else."""
        for sentence, last in _sentences(MARKUP.sub(" ", behind)):
            if self._mentions is not None and self._mentions.contradicted(sentence):
                return sentence.strip()
            told = self._mentions.restated(sentence) if self._mentions and self._understanding.proved else None
            if told is not None:
                if not (word := self._understanding.disowns(*told)):
                    continue
                if word.lower() not in _OF_ELSE:
                    return sentence.strip()
            if not WORD.search(sentence):
                if SIGN.search(sentence) or self._corrects(sentence) or sentence.strip(" \t\n()[]*_") == "!":
                    return sentence.strip()
                continue
            if _ROW.match(sentence):
                continue
            on = None if followed else _GOES_ON.search(sentence)  # else it leads to the next claim
            if self._corrects(sentence) or (on is not None and on["to"].rstrip(".,") not in self._numbers):
                return sentence.strip()
            if not self._unread(_CHECKED.sub(" ", sentence)) or self._rests_elsewhere(sentence):
                continue
            words = set(words_of(sentence))
            heads = (followed or not last) and _MARKED.match(sentence) is not None
            if (heads or _COUNTING.match(sentence)) and POINTING_BACK.isdisjoint(words - {"step", "steps", "line"}):
                continue
            if not self._tells(sentence):
                return sentence.strip()
        return ""

    def _unread(self, text: str) -> bool:
        own = _PLANNED.sub(" ", _PAST.sub("", text))
        return self._dates(text) or bool(self._understanding.unread(own, REMARKS, behind=True))

    def _rests_elsewhere(self, sentence: str) -> bool:
        foreign = self._mentions is None and mentions_another(sentence, self._plain)
        return not foreign and not self._dates(sentence) and self._understanding.rests_elsewhere(sentence)

    def _dates(self, text: str) -> bool:
        """Whether a year stands there that is no number of the claim."""
        return any(year[0] not in self._numbers for year in _YEAR.finditer(text))

    def _corrects(self, sentence: str) -> bool:
        """Whether a sentence gives another number for the claim, or denies its own."""
        said = _OF_BOTH.sub(" ", sentence)
        denied = (number.strip("-+$(.,") for found in _DENIED.findall(said) for number in found)
        if any(number in self._numbers for number in denied):
            return True
        if (equation := _EQUATION.search(sentence)) is not None:
            front = sentence[: equation.start()]
            rights = not RIGHTING.isdisjoint(set(words_of(sentence))) or _IT_IS.match(front) is not None
            own = self._value in _DIGITS.findall(sentence, equation.start())
            return (rights and not own) or _NOT_SO.search(sentence) is not None
        for found in _CORRECTED.finditer(sentence):
            number = (found["is"] or found["to"]).strip("-+$(.,")
            if number not in self._numbers and not self._names_another(found["name"] or ""):
                return True
        return False

    def _names_another(self, label: str) -> bool:
        """Whether a label in front of a number says that it is a step's or an input's."""
        words = label.lower().split()
        return words != [] and all(
            word in self._understanding.own or word.isdigit() or word == "step" for word in words
        )

    def _tells(self, sentence: str) -> bool:
        """Whether a sentence works something else out, or tells with a verb and a number what happens."""
        if "?" in sentence or next(find_retractions(sentence), None) is not None or self._interjects(sentence):
            return False
        words = set(words_of(sentence))
        if (equation := _EQUATION.search(sentence)) is not None:
            front = sentence[: equation.start()]
            words = set(words_of(front))
            known = any(word in _ACTORS or not self._understanding.unread(word) for word in words) or not words
            return known and _CALLED.search(sentence) is None and doubted_before(front) != "denied"
        if not CONDITIONS.isdisjoint(sentence.lower().split(maxsplit=1)[:1]) and "," not in sentence:
            return False  # a condition by itself
        tells = _NUMBER.search(sentence) is not None and any(map(is_verb, words))
        return tells and (POINTING_BACK | RIGHTING).isdisjoint(words) and not self._dates(sentence)

    def _interjects(self, sentence: str) -> bool:
        """Whether a sentence begins with words of its own that are not understood: ``Oops, she has 7``."""
        front, mark, _ = sentence.partition(",")
        front = front.partition(":")[0] if ":" in front else front if mark else ""
        words = front.split()
        return 0 < len(words) < 3 and bool(self._understanding.unread(words[0])) and words[0].lower() not in _ACTORS


def _sentences(text: str) -> Iterator[tuple[str, bool]]:
    """The sentences of a text, each with whether it is the last one."""
    begin = 0
    last = len(text.rstrip())
    for end in (*(end.end() for end in SENTENCE_END.finditer(text)), len(text)):
        numbered = _NUMBERED.fullmatch(text, begin, end) is not None and text[end : end + 1] == " "
        if numbered or (text[begin:end].strip() and _CONTINUED.match(text, end)):
            continue
        if text[begin:end].strip():
            yield text[begin:end], end >= last
        begin = end
