"""Sentences beside a claim that rest on something else: on the talk itself, on the task, or on what the steps read.

A word can change what a claim means only where it is said of the claim, or where it denies, supposes, doubts, corrects,
dates, scales or passes on what stands beside it (`alters`). So what is said to the reader (`is_courtesy`: a greeting,
thanks, a wish, an offer) may say anything that does not alter; and what tells, without pointing at a claim, how the
work is done or what a document holds may use the words of documents and of work. Beside claims that are proved, a
sentence that neither alters nor points says nothing of them, whatever its words are.
"""

from __future__ import annotations

from collections.abc import Container
from re import IGNORECASE
from typing import Final

from stepguard.core.patterns import lazy_pattern
from stepguard.language.prose.vocabulary import CONTROL, DOUBTFUL, word_set

_MODAL: Final = word_set("would could might may")
_ALTERING: Final = (
    (CONTROL | DOUBTFUL)
    - word_set(
        "any anything each every everyone everybody mal que ob soit fois case conditions se subject falls bis provided "
        "cada who whose continue"
    )
) | word_set(
    """
    no none nothing nobody without lack lacks lacking missing but however though although despite yet still unlike
    opposite contrary reverse inverse reversed swap swaps swapped mixed confused should ought must shall assumption
    say says said claims claimed told wrote alleged allegedly supposedly reportedly rumour rumor roughly
    approximately approximate approx estimate estimated estimates ballpark nearly almost circa guess guessed guesses
    guessing unsure uncertain certain doubt doubts doubtful sceptical skeptical confident suspect suspected seem
    seems looks probable probably plausible plausibly think thought believe believed honestly frankly actually wait
    hold scratch strike oops whoops hmm sorry apologies apologise apologize regret mistake mistakes error errors
    untrue fault faults fault flaw flaws typo typos slip slips bug bugs issue issues problem problems caveat caveats
    objection objections correct corrected correction corrections correcting revise revised revision update updated
    fix fixed amend amended redone replace replaced replaces change changed changes changing adjust adjusted modify
    modified withdraw retract retracted forgot forgotten overlooked neglected real really true truth proper properly
    better best worse worst bad right careless naive lazy honest dishonest lied cheat cheated joke joking kidding
    kid sarcasm irony ironic serious seriously funny prank fake faked forged forgery fiction fictional fictitious
    invent invented placeholder placeholders dummy sample samples demo template illustrative illustration random
    arbitrary imaginary mock simulated preliminary pending unverified unconfirmed unchecked test testing trial
    attempt old older former formerly previous previously earlier last yesterday ago past expired original
    originally initially meanwhile meantime since other others another different else colleague colleagues intern
    somebody someone anybody nobody thousand thousands hundred hundreds million millions billion billions dozen
    dozens pair pairs tens percent percentage percentages cent cents pence hex hexadecimal binary octal base scale
    scaled scaling factor exponent multiplier magnitude half halve halved third quarter double doubled twice thrice
    triple tripled square squared cubed root negative minus sign negated inverted per rounded unit units gross net
    annual monthly weekly daily hourly yearly quarterly short part rounded rounding round truncated bound bounds
    maximum minimum least most excluded exclude excludes excluding before more less fewer larger smaller greater
    lower higher than extra additional wäre wären würde würden könnte könnten sollte sollten müsste hätte hätten
    angenommen ohne aber jedoch allerdings doch anstatt sondern eigentlich moment korrektur falsch fehler irrtum
    scherz witz ungefähr etwa circa rund geschätzt schätzung unsicher vermutlich wohl tausend millionen hundert
    dutzend prozent negativ hälfte doppelte beispiel muster fiktiv erfunden entwurf vorläufig alt alte alten früher
    frühere vorher gestern letzte letzten andere anderer anderen anderes gerundet laut angeblich serait seraient
    aurait auraient pourrait pourraient devrait non sans mais cependant toutefois erreur faux trompé plaisanterie
    blague environ approximatif estimation incertain peut-être milliers moitié négatif exemple fictif fictifs
    inventé brouillon provisoire ancien anciens autre autres selon prétend finalement vérifier réalité sería serían
    habría tendría podría podrían debería pero embargo falso broma equivoqué aproximado aproximados aproximadamente
    estimación incierto dudoso tal miles millones mitad doble negativo ejemplo ficticio inventado borrador antiguo
    ayer otro otra otros otras según realidad mejor perdón fuera sarebbe sarebbero senza però sbagliato errore
    scherzo migliaia metà esempio bozza
    """
)
"""Words that deny, suppose, doubt, correct, date, scale or pass on what they are said with, or set it off."""
_OF_THINGS: Final = word_set(
    "per each miles kids problems last best better since unit units more than stop exit test tests pair pairs"
)
_OF_OPERANDS: Final = word_set(
    """
    other others another more less fewer larger smaller greater lower higher than half third quarter double doubled
    twice thrice triple tripled extra additional pair pairs percent percentage part short gross net annual monthly
    weekly daily hourly yearly quarterly square
    """
)
"""Those that say in a calculation of which operands it is."""
_REJECTING: Final = lazy_pattern(
    r"\b(?:reject|den(?:y|i(?!m))|disput|contest|refut|disprov|disagree|challeng|contradict|oppos|dismiss|discard|cancel"
    r"|void|annul|revok|rescind|abandon|refus|disbelie|disallow|invalid|obsolete|supersed|overrul|overturn|nonsens|struck"
    r"|cross(?:ed|es) out|ignor|fool|mock|legend|myth|wrong|false|incorrect|mistak|hallucinat|alleg|purport"
    r"|pretend|insist|swear|swore|jok|prank|delet|eras(?:e|ing)|remov|omit|skip|undo|undid|fail|lie(?:s|d)?\b|liar|inaccura"
    r"|imprecis|unlike|unfortunate|trap|impost)\w*",
    IGNORECASE,
)
_SCALING: Final = lazy_pattern(
    r"\b(?:half|thirds?|quarters?|twice|thrice|double|triple|minus|percent|part|most|some)(?: (?:of|than|the))*\W*\Z",
    IGNORECASE,
)
_PREDICATE: Final = lazy_pattern(
    r"\A[^.,;:]*\b(?:is|are|was|were|do|does|did|has|have|had|will|can|cannot|too)\b", IGNORECASE
)
_AGED: Final = lazy_pattern(r"\b(?:years?|months?|weeks?|days?) (?:old(?:er)?|ago)\b", IGNORECASE)
_ALTERS: Final = lazy_pattern(
    r"n['\u2019]t\b|\bma(?:d|k)(?:e|es|ing)? (?:\w+ )?up\b|\bleft out\b|\bleav(?:e|ing) out\b|\bmis[a-z]{3,}"
    r"|\bre-?do\b|\b(?:about|around) (?=\W{0,2}[0-9]|half|a )|\bkind of\b(?<!what kind of)|\bre-?(?:calculat|comput"
    r"|check)\w*|[\u2030\u00b1~\u2260]|:-?[(/]",
    IGNORECASE,
)
_WORD: Final = lazy_pattern(r"[^\W\d_]+(?:['\u2019-][^\W\d_]+)*")
_NOT_THE_CLAIM: Final = lazy_pattern(
    r"\b(?:any|some|no|how|what|who|anything|something|everything|nothing|anyone)[ ]?(?:one|thing)? (?:else|other|more"
    r"|further)\b|\b(?:any|some|more|further|additional|other|no|any other|another) (?:questions?|help|information"
    r"|details?|fields?|problems?|issues?|concerns?|calculations?|orders?|documents?|invoices?|claims?|tasks?"
    r"|assistance|requests?|examples?|worries|need|trouble|one)\b|\b(?:one more|another|extra|last) (?:thing|word)\b"
    r"|(?<!it )(?<!this )(?<!that )\b(?:is|are|was|were)(?:n['\u2019]t| not) (?:needed|necessary|required|requested"
    r"|asked for)\b|\bper (?=(?:step|line|entry|key|row|field)\b)|\b(?:with|without) (?:the |any "
    r"|a )?(?:thousands? separators?|currency (?:sign|symbol)s?|further ado|commas?)\b|\bas follows\b"
    r"|\blast (?=(?:step|line|row|column|entry|field|key)\b)|\b(?:dollar|euro|pound|currency|equals?) signs?\b"
    r"|\bfalls (?:under|within|into|in)\b|\bin short\b|\b(?:according to|laut|gem\u00e4\u00df|selon"
    r"|seg\u00fan) (?:the |your |der |dem |la |le |el )?(?:table|letter|invoice|document|text|policy|email|message"
    r"|contract|receipt|report|tabelle|rechnung|brief|dokument|police|tableau|facture|lettre|tabla|factura|carta"
    r"|p\u00f3liza|documento)\b|(?<=[a-z]) provided that\b(?! )|\bif (?:you|anything|there['\u2019]s|there is|needed"
    r"|necessary|desired)\b|\b(?:should|whenever|when) you\b|\b(?:do not|don['\u2019]t) hesitate\b|\b(?:should"
    r"|shall) i\b|\bjust (?:ask|let me|say|tell|write|reply|reach)\b|\bwenn (?:du|sie|noch|etwas)\b|\bfalls (?:du|sie"
    r"|noch|etwas|weitere)\b|\bsollte[nst]* (?:du|sie|noch)\b|\b(?:andere|weitere)(?:n|s)? (?:fragen?|angaben|felder"
    r"|hilfe|berechnung\w*|rechnung\w*)\b|\bnicht zu zögern\b|\b(?:zögern?|zögere) (?:sie |du )?(?:bitte )?nicht\b"
    r"|\bn['\u2019]hésite[zs]? (?:surtout )?pas\b|\bsi (?:vous|tu|besoin)\b|\bautres? (?:question|demande|calcul"
    r"|information|renseignement)s?\b|\bno dud(?:es|en?|éis)\b|\bsi (?:necesitas?|tienes?|quieres|desea|hay|usted)\b"
    r"|\botr[ao]s? (?:consulta|pregunta|duda|cosa|información)s?\b|\bse (?:hai|avete|ha) (?:bisogno|domande|altre)\b",
    IGNORECASE,
)
"""What is other, more or not asked for in an offer, and on what condition: nothing of the claim."""
_COURTESY: Final = lazy_pattern(
    r"\W*(?:(?:and|so|also|of course|now|please|as always|bitte|y|et|und|por favor)[, ]+)*(?:(?:just )?(?:let (?:me"
    r"|us) know|feel free|(?:don['\u2019]t|do not) hesitate|reach out|get in touch|contact me|ask me)\b|(?:if|should"
    r"|when|whenever) you(?:['\u2019]d| would| want| need| have| wish|['\u2019]re| are| prefer| require| ever)\b"
    r"|if (?:anything|there['\u2019]s anything|there is anything)\b|(?:would|do) you (?:like|want|need|prefer|have)\b"
    r"|shall i\b|(?:can|may|could|should) i (?:help|assist|do|also|compute|calculate|explain|show)\b"
    r"|is there (?:anything|something)\b|(?:what|how) (?:else|more) (?:can|could|may) i\b|anything else\b"
    r"|i(?:['\u2019]m| am|['\u2019]d be| would be)(?: always| also| very)? (?:happy|glad|here|delighted|pleased) to\b"
    r"|(?:happy|glad|pleased|delighted|here) to (?:help|assist|explain)\b|i can (?:also|gladly)\b"
    r"|(?:many )?thanks?(?: you)?\b(?! to\b)|i (?:really )?appreciate (?:the|your)\b|have (?:a|an) \w+ (?:day|evening"
    r"|week\w*|time)\b|wishing you\b|enjoy\b|happy [a-z]+ing\b|(?:sag|sagen sie|lass|melde?|melden sie|frag|fragen sie"
    r"|gib|geben sie) (?:mir|mich|dich|sich|einfach|gern)\b|(?:falls|wenn|sollte[nst]*|bei) (?:du|sie|noch|etwas"
    r"|weitere\w*|fragen)\b|zögern? sie\b|ich (?:stehe|helfe)\b|gerne? (?:geschehen|helfe|kann|erkläre|stehe"
    r"|unterstütze|beantworte)\b|n['\u2019]hésite[zs]?\b|je (?:reste|suis) à (?:votre|ta)\b|si (?:vous|tu|besoin)\b"
    r"|souhaite[zs]?-(?:vous|tu)\b|merci\b|si (?:necesitas?|tienes?|quieres|desea|hay|usted)\b|no dud(?:es|en?)\b"
    r"|quedo a (?:tu|su|vuestra)\b|gracias\b|avísame\b|(?:quieres|necesitas|deseas?)\b[^?]*\?|que tengas?\b|se hai\b"
    r"|fammi sapere\b|grazie\b|(?:i |ich |j['\u2019]|esp|sp)?(?:hop(?:e|ing)|hoffe|espère"
    r"|ero)\b(?=[^.!?]*?\b(?:help\w*|useful|clear\w*|clarif\w*|assist\w*|sense|looking for|enjoy|hilf\w*|nützlich"
    r"|weiter|aide\w*|utile|convien\w*|ayud\w*|útil|sirv\w*|aiut\w*)\b))",
    IGNORECASE,
)
"""What a sentence begins with that is said to the reader: thanks, a wish or an offer."""
_INTERJECTION: Final = lazy_pattern(
    r"(?:\W*(?:hi|hello|hey|dear user|greetings|welcome|sure|certainly|absolutely|of course|my pleasure|no problem"
    r"|got it|understood|alright|all right|okay|ok|cheers|gladly|perfect|great (?:question|work)|good (?:question|luck"
    r"|morning|day|evening)|thing|there|you['\u2019]re welcome|again|you|at all|everyone|best|kind|warm|regards|wishes"
    r"|hallo|guten tag|klar|gerne?|natürlich|sehr|selbstverständlich|mit freundlichen grüßen|viele grüße|viel erfolg"
    r"|viel spaß|bonjour|bien sûr|d['\u2019]accord|avec plaisir|cordialement|bonne (?:journée|chance|continuation)"
    r"|volontiers|hola|claro(?: que sí)?|por supuesto|con gusto|saludos|un saludo|desde luego|certo|ciao"
    r"|buona giornata|volentieri)\b\W*)+",
    IGNORECASE,
)
"""A greeting or a word of assent by itself."""
_WHETHER: Final = lazy_pattern(
    r"\b(?:look\w*|check\w*|see|decid\w+|determin\w+|find out|examin\w+|question is|establish\w*) (?:\w+ )?(?:at "
    r"|on )?whether\b(?: [^.?!;]*? (?:and|or) whether\b)?",
    IGNORECASE,
)
_POINTING: Final = lazy_pattern(
    r"(?:\A\W*|[.;:] |, |\b(?:and|but|so|that|then|because|since|i|we|you|please|let)\b (?:\w+ ){0,2}?)(?:it|its"
    r"|itself)\b|\b(?:both|all|everything|former|latter)\b|\b(?:ceci|cela|ces?|c['\u2019]est|das|dies|diese[rsmn]?|eso"
    r"|esto|estos|estas|questi|queste|questo)\b(?! \w+(?:ung|aufgabe)\b)|\b(?:this|these|those|such)\b(?! (?:question"
    r"|request|task|problem|procedure|prompt|table|letter|document|invoice|policy|case|order|email|text)s?\b)|(?:\A\W*"
    r"|[,;:] ?|\b(?:and|so|thus|hence|do) )that\b|(?<!number of )(?<!to )\b(?:(?:value|number|figure|result|answer"
    r"|output|step|working)s?|amounts?(?! to\b)|werte?|zahlen|betr\u00e4ge|ergebnisse?|valeurs?|chiffres|montants"
    r"|r\u00e9sultats?|valores|cifras|importes|resultados?|valori)\b(?! of\b)",
    IGNORECASE,
)
"""By what a sentence may point at a claim."""


def without_idioms(text: str) -> str:
    """A text without phrases that say nothing of a claim, though their words would."""
    return _WHETHER.sub(" ", _NOT_THE_CLAIM.sub(" ", text))


def alters(text: str, own: Container[str] = (), *, offered: bool = False) -> str:
    """The first word of a text that can change what a claim beside it means; empty where there is none.

    Args:
        text: the text.
        own: words of the task, which say what is worked out: its ``square`` or ``percentage`` is no remark on a claim.
        offered: whether it is an offer, which may say what would be.
    """
    plain = without_idioms(text)
    if (found := _ALTERS.search(plain)) is not None:
        return found[0]
    for word in _WORD.finditer(plain):
        lowered = word[0].lower().replace("\u2019", "'")
        lowered = lowered.removesuffix("'s") or lowered
        altering = lowered in _ALTERING or lowered.removesuffix("s") in _ALTERING or (lowered in _MODAL and not offered)
        if altering and lowered not in own:
            return word[0]
    return ""


def disowns(before: str, behind: str, own: frozenset[str]) -> str:
    """The first word by which a text that works out a claim once more may deny, doubt or pass it on; empty if none.

    Args:
        before: what stands before the calculation, where words of quantity say of which operands it is.
        behind: what stands behind its result, of which they would say something, as would a verb.
        own: the words of the task.
    """
    found = _REJECTING.search(f"{before} {behind}") or _SCALING.search(before) or _PREDICATE.search(behind)
    if found is not None:
        return found[0]
    told = own | _OF_THINGS
    return alters(_AGED.sub(" ", before), told | _OF_OPERANDS) or alters(_AGED.sub(" ", behind), told)


_TURNED: Final = lazy_pattern(
    r"(?:un|dis|mis|non|in(?:ac|co|va|su)|ir|im|anti|counter|pseudo|quasi|semi)[a-z]{3,}", IGNORECASE
)
_OPEN: Final = lazy_pattern(r"[0-9]|\b(?:verif|check|confirm|double-check)\w*", IGNORECASE)
"""Numbers, and what is still to be checked."""


def turns_round(word: str) -> bool:
    """Whether the beginning of a word makes it the opposite of another: ``disagrees``, ``unreliable``."""
    return _TURNED.match(word) is not None


def is_courtesy(sentence: str) -> bool:
    """Whether a sentence is said to the reader and not of the claim: a greeting, thanks, a wish or an offer."""
    if _INTERJECTION.fullmatch(sentence) is not None:
        return True
    said = _COURTESY.match(sentence)
    return said is not None and _OPEN.search(sentence) is None and not alters(sentence, offered=True)


def points(text: str) -> bool:
    """Whether a sentence may speak of a claim beside it."""
    return _POINTING.search(text) is not None
