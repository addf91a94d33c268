"""Words that leave a claim its writer's own: a claim behind others, or with others in a remark behind it, is not read.

One reader for transcripts, for answers and for what stands around the object of a reply. Understood are words of
grammar, arithmetic, numbering, answers, quantities, units and currencies, and those of the procedure. Whatever else a
writer may say, in any language, that a claim is another's, a guess, an example, old or false, is not, and is named.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from stepguard.core.patterns import lazy_pattern
from stepguard.core.verdicts import shorten
from stepguard.language.currencies import CODES, WORDS
from stepguard.language.retraction import doubted_before
from stepguard.language.unit_names import factors_of
from stepguard.language.vocabulary import QUANTITIES, VERBS


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


_GRAMMAR: Final = _set(
    """
    a an the this that these those it its i we me my mine us our ours ourselves here there where which what how is are
    was were be been being am has have had having do does did done will shall can must going to of in on at by for from
    with into onto out up down everything over under above below around about between among within through along per
    via than as and also too both while when whenever once after before until during since because x y z n i j k so
    thus hence therefore then now again already still just simply only directly exactly first firstly second secondly
    third thirdly fourth fifth sixth seventh eighth ninth tenth next last lastly finally final each every all one two
    three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen
    nineteen twenty thirty forty fifty sixty seventy eighty ninety hundred thousand million st nd rd th i've i'm i'll
    i'd we've we're we'll we'd let's it's that's here's there's what's
    """
)
_NOUNS: Final = _set(
    """
    step part line number value result answer solution output total variable figure term side calculation computation
    equation formula expression operation operand arithmetic math mathematics algebra order way time procedure process
    method approach task problem instruction reasoning explanation working breakdown overview summary conclusion recap
    detail json object markdown code block table row column list text field reply response token request power base
    parenthesis parentheses bracket box boxed tag integer decimal fraction digit place input point course short
    execution addition subtraction multiplication division rounding representation rule definition analysis function
    currency unit assistant item product nearest python javascript plaintext latex yaml whole rest half third quarter
    fourth twice thrice hand
    """
)
_ADJECTIVES: Final = _set(
    """
    equal more less fewer larger smaller greater lower higher longer shorter remaining whole new own same current
    corresponding respective intermediate individual overall altogether combined separate single additional extra
    simple easy straightforward exact necessary full complete net gross annual monthly weekly daily hourly flat fixed
    ready good great well ok okay alright yes sure hello hi thanks easily clearly obviously evidently quickly
    carefully accordingly together even odd true valid structured successful successfully forward
    """
)
_ELSEWHERE: Final = _set(
    """
    der die das den dem des ein eine einen einem einer wir ich uns es hier ist sind werden also daher damit somit
    folglich nun jetzt dann zuerst zunächst danach anschließend schließlich zuletzt insgesamt und mit für von vom aus
    im ins zu zum zur auf bei durch mal plus daraus folgt folgenden beträgt ergibt erhalten erhält berechne berechnen
    berechnet berechnung multiplizieren addieren subtrahieren dividieren rechnen rechnung ergebnis ergebnisse schritt
    schritte wert werte antwort endergebnis gesamtbetrag summe betrag lösung formel erster zweiter dritter letzter le
    la les un une du de au aux nous je ce sont donc ainsi alors puis ensuite enfin d'abord c'est maintenant ici et avec
    pour par dans en à voici calcul calculs calculer calcule calculons multiplions ajoutons soustrayons divisons
    obtient obtenons donne vaut égal égale résultat résultats étape étapes valeur valeurs réponse formule somme montant
    el los las una del nosotros es está aquí tienes así entonces luego después primero segundo tercero finalmente ahora
    por tanto lo y con que tenemos obtenemos calculamos calcular cálculo cálculos multiplicamos sumamos restamos
    dividimos resultado resultados paso pasos valor valores respuesta solución fórmula suma importe ecco quindi allora
    poi infine calcoliamo otteniamo risultato risultati passo valore risposta calcolo natürlich gerne objekt lautet
    lauten gewünschte abgeschlossen bien sûr objet final demandé d'accord claro supuesto están siguiente siguientes
    certo
    """
)
"""Words of grammar, calculation and answers in German, French, Spanish and Italian.

Those that may be another word of English are left out, such as names, persons and ``est``."""
_ACTIONS: Final = _set(
    """
    be equal become give get yield make mean obtain compute calculate determine evaluate work derive know call write
    set define update round start begin continue proceed move go come take use plug substitute apply keep carry
    execute perform complete finish do show provide present list contain summarize need want ask request require
    follow simplify sell buy pay spend earn save leave produce owe charge left sold bought paid spent given made gave
    got taken took kept found knew known wrote written began begun came went done shown note remember recall see
    include exclude conclude instruct help hope please fill fulfil represent correspond refer run
    specify exceed reach generate
    """
)
_REMARKS: Final = _set("correct right verified checked confirmed exact check checks checking verification proof")
"""What praises a claim behind it, or checks it."""
_PRAISE: Final = _set("valid successful ok okay yes true right done good correct verified")
"""What heads a column that holds no values."""
_CONDITIONS: Final = _set("when whenever once while until before after provided providing given")
_HEADS: Final = _set(
    "id name nr mine computed calculated obtained actual got unit description round rounds item items index pass data "
    "iteration iterations loop repeat call"
)
"""Words in the head of a column or in a key of the writer's own, beside those that are understood everywhere."""
_EXCLUDED: Final = _set(
    "sample mark marks people population error tolerance estimate check test withdraw copy correct "
    "compare cancel refund question odds replace bill grant seed"
)
"""Quantities and actions of procedures that say something else of a claim."""
_OPERATIONS: Final = _set(
    "add subtract multiply divide double triple halve sum convert compute calculate determine find derive figure "
    "evaluate work deduct adding subtracting multiplying dividing doubling"
)
_CHANGING: Final = _set(
    "half third fourth quarter square cube root multiple minus plus times percent percentage twice about like"
)
_NO_LABEL: Final = _set(
    "before input inputs will help hope problem task instruction request required requested wanted needed asked"
)
"""What is none of the writer's own claims as a label by itself."""
_ASKING: Final = _set("is are was were does did do can must shall will has have had am")
_REFUSED: Final = lazy_pattern(
    r"\b(?:not|no|never|cannot|nor|neither|none|nobody|wrong|incorrect|false|untrue|if|unless|whether|maybe|perhaps"
    r"|expected|else|or|other|old|previous|example|guess\w*|say|says|said|claim(?:s|ed)|wrote)\b|n['\u2019]t\b",
    re.IGNORECASE,
)
"""What no word of a procedure makes understood."""
_IDIOMS: Final = lazy_pattern(
    r"\bthere(?: is|['\u2019]s) no doubt(?: that)?\b|\bno doubt(?: that)?,?|\bnot (?:bad|only|markdown|text|prose)\b"
    r"|\bno (?:further|more|other) steps?\b|\bnot -?[0-9][0-9.,]*(?![0-9.,]*[0-9%])|\bit should be noted(?: that)?"
    r"|\bhere you (?:go|are)\b|\b(?:as )?you (?:asked|requested|specified|wanted|need|can see|see|gave me)"
    r"(?: for| me)?\b|\byou (?:(?:will|can) )?(?:get|obtain|find|multiply|add|subtract|divide)\b"
    r"|\byour (?:instructions|request|format|procedure|inputs|details)\b|\bbreak(?:ing)? (?:\w+ ){1,2}down\b"
    r"|\bno (?:\w+ )?(?:rounding|conversion|adjustment)s? (?:was |were |is |are )?(?:needed|necessary|required|applied)"
    r"|\b(?:is there anything else (?:i can|you)|(?:(?:would you like|do you want) me to|shall i) (?:continue|proceed"
    r"|go on|explain|show|elaborate|walk))\b(?![^?]{0,99}\b(?:wrong|errors?|mistakes?|right|correct\w*)\b)"
    r"[^.!?\n0-9]{0,99}\?"
    r"|\b(?:what|how) else (?:can i|i can) (?:help|assist|do for)(?: you)?\b\??"
    r"|\banything else\?|\bshould you (?:need|have) any\w*\b"
    r"|\bif you(?:['\u2019]d| would) like(?: (?:more|further))?\b|\b(?:best|kind) regards\b|\bgood luck\b|\bcheers\b"
    r"|\byou['\u2019]re welcome\b|\b(?:happy|glad) to (?:help|assist)\b|\bin accordance with\b|\bformat json\b"
    r"|\bif you (?:have|need) (?:any |more |further )*(?:questions|help|assistance|details|explanations?|clarification)"
    r"\b|\bin the prompt\b|\bwith (?:the )?keys\b|\becco il?\b|\bpre-(?=[a-z])|\b(?:json|requested|required) format\b"
    r"|\bformatted as\b|\b(?:here(?:['\u2019]s| is)|this is) the (?:corrected|correct|revised|fixed) (?:json|object"
    r"|output|response|reply)\b(?! below)|\u4ee5\u4e0b|\u5982\u4e0b|\u7ed3\u679c|\u7d50\u679c|\u7b54\u6848"
    r"|\u8ba1\u7b97|\u8a08\u7b97|\u6240\u4ee5|\u56e0\u6b64|\u6700[\u7ec8\u7d42\u540e\u5f8c]|\u9996\u5148|\u597d\u7684|\u6839\u636e|\u7ed9\u5b9a|\u8f93[\u5165\u51fa]|\u516c\u5f0f"
    r"|\u6b65[\u9aa4\u9a5f]?|[\u662f\u4e3a\u70ba\u7684\u5f97\u5230\u503c\u7b2c\u4e00\u4e8c\u4e09\u56db\u4e94]"
    r"|\blet me know if\b[^.!?\n]*|\blet(?:['\u2019]s| us| me)?\b|\bso far\b|\bas expected\b|\bthank you\b"
    r"|\b(?:as in|in|with|filled in|following|per) (?:the|this|your)? ?(?:\w+ )?(?:format|template|example|schema)\b"
    r"|\bfeel free to\b[^.!?\n]*|\b(?:sorry|apologies) for the \w+(?! below)\b|\bstep by step\b"
    r"|\bi (?:think|believe)(?: that)?\b|\bplease wait\b[^.!?\n]*"
    r"|\baccording to the (?:formulas?|rules?|procedures?|instructions?|steps?|order|definitions?)\b"
    r"|\b(?:there is )?nothing (?:is )?wrong\b(?: with (?:it|that|them))?",
    re.IGNORECASE,
)
"""Phrases that are understood though not all of their words are."""
_TURNING: Final = lazy_pattern(
    r"\bto be (?:verified|checked|confirmed)\b"
    r"|\bmade[ -](?:\w+ )?up\b|\b(?:take|took|taken)(?: \w+)? back\b|\bwhy not\b",
    re.IGNORECASE,
)
"""Phrases that are none of the writer's own though all of their words are understood."""
_WORD: Final = lazy_pattern(r"[^\W\d_]+(?:['\u2019][^\W\d_]+)*")
_SIGN: Final = lazy_pattern(
    r"//|/\*|(?<!-)--(?!-)|~(?![0-9])|[^\w\s~.,:'\u2019\"`*()\[\]{}|>=+\-\u2212\u2013\u2014/^<\u2264\u2265%$\u20ac\u00a3\u00a5#&@"
    r"\u00d7\u00f7\u00b7\u00b2\u00b3\u2248\u2190-\u21ff\u2022\u25aa\u25b6\u25b8\u25cf\u25e6\u2705\u2611\u2713\u2714\u27a1\u27a4\u27f6"
    r"\u2728\u3001\u3002\uff0c\uff08\uff09\U0001f389\U0001f3af\U0001f449\U0001f44d\U0001f4a1\U0001f4ca\U0001f4cb\U0001f4cc\U0001f4dd"
    r"\U0001f522\U0001f538\U0001f539\U0001f600-\U0001f604\U0001f60a\U0001f680\U0001f9ee\u2160-\u216b\ufe0f\u20e3!;]"
)
"""A sign that is not understood."""
_SENTENCE_END: Final = lazy_pattern(
    r"(?:(?<=[^\W_]{3})|(?<=[0-9)\]*`\"}]))(?<!approx)(?<!\bvs)(?<!\best)(?:[.!?]|;)[*_`\"]{0,3}(?=\s)|\n"
)
_LABEL: Final = lazy_pattern(r"(?<![0-9]):(?![:=/])|:(?![0-9:=/])|\uff1a")
_CONCLUDING: Final = lazy_pattern(r"\b(?:so(?! far\b| that\b)|therefore|thus|hence)\b", re.IGNORECASE)
_PART: Final = lazy_pattern(r",(?=\s|\Z)|\s(?:[-\u2013]|--)(?=\s|\Z)|\u2014|[()\[\]]")
_SUBJUNCTIVE: Final = lazy_pattern(r"\W*(?:had|were|should)\b", re.IGNORECASE)
_POINTING: Final = lazy_pattern(
    r"\b(?:next|following) (?:line|value|number|claim|result|answer)s?\b|\bwhat follows\b"
    r"|\b(?:line|step|value|number|claim|result|answer)s? below\b",
    re.IGNORECASE,
)
_CHECKED: Final = lazy_pattern(
    r"\A\W*(?:(?:verification|check|proof)(?=:)|(?:let me )?double-check(?:ing|ed)?(?=:)|(?:all )?correct[.!]?\s*\Z"
    r"|(?:(?:(?:all|both|each|every) )?(?:of )?(?:the )?(?:\w+ )?(?:steps?|values?|checks?|results?|arithmetic)"
    r"|everything|i|this|it)(?:(?: have| has)? been| is| are| were)?"
    r" (?:verified|checked|double-checked|correct|checks? out|pass(?:es)?)\b)",
    re.IGNORECASE,
)
"""By what a writer checks an answer behind it, or says that it is checked."""
_REASON: Final = lazy_pattern(r"\W*(?:since|because)\b", re.IGNORECASE)
_OPERATION: Final = lazy_pattern(
    r"\W*(?:(?:first(?:ly)?|second(?:ly)?|third(?:ly)?|next|then|now|and|finally|lastly|to|we|i|let us|let's|so|also"
    r"|can|will|must|need to|have to|step)\W+)*([a-z]+)\b",
    re.IGNORECASE,
)
_QUANTITY_OF: Final = lazy_pattern(
    r"\b(?P<head>\w+) (?:of|for|per|in|on)\b"
    r"|\b(?:your|his|her|their|[^\W\d_]+(?:['\u2019]s|s['\u2019])) (?P<owned>[\w ]+)\W*\Z",
    re.IGNORECASE,
)
_LONGEST_LABEL: Final = 200
_TITLE: Final = lazy_pattern(r"[^\s\d|:<][^\s|:<]{0,29}(?: [^\s\d|:<][^\s|:<]{0,29}){0,5}(?<![.,;!?)])")
_MEASURES: Final = (
    QUANTITIES - _EXCLUDED - _set("result results answer answers step steps value values output work term")
)
_REMARK: Final = lazy_pattern(
    r"[^\S\n]{0,3}(?:[\u2713\u2714\u2705\u2611]\ufe0f?[^\S\n]?)?[.*_]{0,3}[^\S\n]{0,3}"
    r"(?:\((?P<round>[^()\n]*(?:\([^()\n]*\)[^()\n]*)*)\)?|\[(?P<square>[^\]\n]*)\]?"
    r"|(?:\u2014|\u2013|-{1,3}(?=\s)|<-{1,2}|\u2190|//|#|\^)(?P<dash>[^.;\n(]*)|,(?!\S)(?P<comma>[^.;\n]*))"
)
_PLAIN: Final = lazy_pattern(r"[^\S\n]{1,3}[^\W\d_][^.,;:()\[\]\n\u2014\u2013!?=]*")
_UNIT: Final = lazy_pattern(r"[^\S\n]+[a-z][\w/]*(?!['\u2019\w])")
"""One word behind a value may be whatever is counted."""
_GOING_ON: Final = lazy_pattern(
    r"\s*(?:which|so (?:we|i|it|the|this|that|there)|and|since|because|leaving|giving|making|then|where|but|if|not"
    r"|or|no)\b",
    re.IGNORECASE,
)
"""Words by which a sentence goes on behind a comma; what they lead to is looked at elsewhere."""


@dataclass(frozen=True, slots=True)
class Understanding:
    """What is understood around the claims about one procedure.

    Attributes:
        own: the words of the procedure, in small letters.
    """

    own: frozenset[str] = frozenset()

    @classmethod
    def of(cls, texts: Iterable[str]) -> Understanding:
        """The one of a procedure, from its names and descriptions."""
        return cls(frozenset(word for text in texts for word in _words(_REFUSED.sub(" ", text))))

    def unread(self, text: str, more: frozenset[str] = frozenset()) -> str:
        """The first word or sign of a text that is not understood, empty where there is none."""
        said = _IDIOMS.sub(" ", text)
        if (turned := _TURNING.search(said)) is not None:
            return turned[0]
        if (sign := _SIGN.search(said)) is not None:
            return sign[0]
        return next(
            (word[0] for word in _WORD.finditer(said) if not self._knows(word[0]) and word[0].lower() not in more), ""
        )

    def shown(self, words: str) -> str:
        """Words that are not understood, and which of them is the first that is not, for a message."""
        word = self.unread(words)
        return repr(shorten(words)) + (f" ({word!r} is no word of the procedure)" if _WORD.fullmatch(word) else "")

    def unread_before(self, front: str, *, prose: bool = False) -> str:
        """The words in front of a claim that are not understood, as they are to be named; empty where all are.

        Args:
            front: the text from the beginning of its line, or from the end of the claim before.
            prose: whether the clause of the claim may say anything that does not deny, suppose or report it.
        """
        begin = 0
        for colon in _LABEL.finditer(front):
            ends = [end.end() for end in _SENTENCE_END.finditer(front, begin, colon.start())]
            label = front[max(ends, default=begin) : colon.start()]
            if label.strip(" \t*_`#>").lower() in _NO_LABEL or self._unread_label(label):
                return front[max(ends, default=begin) : colon.end()].strip()
            begin = colon.end()
        ends = [end.end() for end in _SENTENCE_END.finditer(front, begin)]
        clause = front[max(ends, default=begin) :]
        if front.count('"') % 2 and _WORD.search(front):
            return front.strip()  # a quotation
        if _SUBJUNCTIVE.match(clause):
            return clause.strip()
        concluded = [concluding.end() for concluding in _CONCLUDING.finditer(clause)]
        clause = clause[max(concluded, default=0) :]
        if prose:
            return clause.strip() if doubted_before(_IDIOMS.sub(" ", clause)) else ""
        parts = _PART.split(clause)
        for part in parts[:-1]:
            if not _REASON.match(part) and self.unread(part):
                return part.strip()
        words = _words(_IDIOMS.sub(" ", parts[-1]))
        if self.unread(parts[-1]) or (words and self._turns(words, parts)):
            return parts[-1].strip()
        return ""

    def unread_behind(self, behind: str, *, prose: bool = False) -> str:
        """The remark right behind a claim, in brackets, behind a dash or a comma, if it is not understood."""
        remark = _REMARK.match(behind)
        if remark is None:
            return self._turned_behind(behind) if prose else self._unread_going_on(behind)
        said = remark[remark.lastgroup or 0]
        if prose and remark["comma"]:
            return remark[0].strip() if _is_reported(said) else ""
        if remark.lastgroup == "comma" and _GOING_ON.match(said):
            return ""
        if _REASON.match(said) or not self.unread(said, _REMARKS):
            return ""
        return remark[0].strip()

    def unread_heading(self, line: str) -> str | None:
        """What is not understood of a heading, empty where all is; None where a line is none.

        One is marked as such, or a title of a few words, or ends in a colon, or speaks of what is below it.
        """
        said = line.lstrip(" \t>0123456789.)(").rstrip()
        bare = said.strip("*_ ")
        title = _TITLE.fullmatch(line.strip()) is not None
        marked = title or said[:1] == "#" or bare[-1:] in (":", "\uff1a") or _POINTING.search(said)
        if not bare or not marked or "=" in line or "|" in line:
            return None
        return next((label.strip() for label in _LABEL.split(bare) if self._unread_label(label)), "")

    def unread_sentence(self, behind: str) -> str:
        """The first sentence behind an answer, if it is not understood; empty where it is, or where there is none."""
        said = behind.strip(" \t\r\n.")
        ends = _SENTENCE_END.search(said)
        sentence = said if ends is None else said[: ends.end()]
        return sentence.strip() if self.unread(_CHECKED.sub(" ", sentence)) or said[:1] == "?" else ""

    def _unread_label(self, label: str) -> bool:
        return bool(self.unread(label)) and not self._is_quantity(label) and not _is_operation(label)

    def _turned_behind(self, behind: str) -> str:
        """What goes on behind a value, if it is a sign that is not understood, or words that deny or report it."""
        words = _PLAIN.match(behind)
        if words is not None:
            return words[0].strip() if _is_reported(words[0]) else ""
        sign = _SIGN.match(behind.lstrip(" *_"))
        return sign[0] if sign is not None and not sign[0].isascii() else ""

    def _unread_going_on(self, behind: str) -> str:
        """What goes on behind a value, up to the end of the clause, if it is not understood apart from a unit."""
        words = _PLAIN.match(behind)
        if words is None:
            return ""
        unit = _UNIT.match(words[0])
        behind_unit = words[0][unit.end() :] if unit is not None else words[0]
        return words[0].strip() if self.unread(words[0]) and self.unread(behind_unit, _REMARKS) else ""

    def is_own_head(self, head: str) -> bool:
        """Whether the head of a column, or a key, is understood as one of the writer's own."""
        head = head.replace("_", " ")
        return _PRAISE.isdisjoint(_words(head)) and not self.unread(head, _HEADS)

    @staticmethod
    def _turns(words: list[str], parts: list[str]) -> bool:
        """Whether understood words right in front of a claim make it a question, a condition or an operand."""
        asks = words[0] in _ASKING and len(parts) == 1
        return asks or words[0] in _CONDITIONS or words[-1] in _CHANGING

    def _knows(self, word: str) -> bool:
        lowered = word.lower().replace("\u2019", "'")
        if lowered in self.own or lowered in _KNOWN or word in CODES:
            return True
        if any(base in _VERBS or base in self.own for base in _bases(lowered)):
            return lowered not in _EXCLUDED
        if lowered.startswith(("l'", "d'")):
            return self._knows(word[2:])
        if lowered.endswith("'s") or lowered.endswith("s'"):
            return self._knows(word[:-2]) and lowered[:-2] not in _NOUNS
        return word.islower() and len(word) > 1 and factors_of(word) is not None

    def _is_quantity(self, label: str) -> bool:
        """Whether a label says of what it is the quantity: ``Number of books``, ``The farmer's total``."""
        found = None if len(label) > _LONGEST_LABEL or _REFUSED.search(label) else _QUANTITY_OF.search(label)
        if found is None:
            return False
        named = found["owned"] or label[: found.end("head")]
        words = _words(named)
        return words[-1:] != [] and words[-1] in _MEASURES and not self.unread(named)


def _is_operation(label: str) -> bool:
    """Whether a label says what its writer works out, whatever of: ``Then add the dogs of the farmer``."""
    verb = _OPERATION.match(label)
    return verb is not None and verb[1].lower() in _OPERATIONS and doubted_before(label) != "denied"


def _is_reported(behind: str) -> bool:
    """Whether what goes on behind an answer denies it, or says whose it is."""
    said = _IDIOMS.sub(" ", behind).strip()
    return said.lower().startswith("according ") or doubted_before(said) == "denied"


def _words(text: str) -> list[str]:
    return [word[0].lower().replace("\u2019", "'") for word in _WORD.finditer(text)]


def _bases(word: str) -> Iterator[str]:
    """What a word may be a form of."""
    for end, instead in (("s", ""), ("es", ""), ("ies", "y"), ("d", ""), ("ed", ""), ("ied", "y"), ("ing", ""),
                         ("ing", "e"), ("n", ""), ("ly", "")):  # fmt: skip
        base = word.removesuffix(end) + instead
        if word.endswith(end) and len(base) > 2:
            yield base
            if not instead and base[-1] == base[-2:-1]:
                yield base[:-1]


_KNOWN: Final = (_GRAMMAR | _NOUNS | _ADJECTIVES | _ACTIONS | QUANTITIES | VERBS | _ELSEWHERE | set(WORDS)) - _EXCLUDED
_VERBS: Final = (_NOUNS | _ACTIONS | QUANTITIES | VERBS) - _EXCLUDED
