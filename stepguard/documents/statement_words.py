"""The words by which a document says of an amount that it is not so: void, old, only thought, or on a condition."""

from __future__ import annotations

import re
from typing import Final

from stepguard.core.patterns import lazy_pattern
from stepguard.language.currencies import CODE, SIGN

MONEY: Final = rf"(?:(?:{SIGN}|(?:{CODE})\b)\s?)?"
"""The mark of a currency in front of a number, where there is one."""
_WORD: Final = r"[^\W\d_]+"
_VOID: Final = (
    r"wrong|incorrect|false|invalid|not (?:right|correct|true|valid|due|payable|applicable|final)"
    r"|no longer (?:valid|due|applicable)|void(?:ed)?|cancell?ed|annulled|superseded|obsolete|outdated"
    r"|withdrawn|waived|crossed out|struck out|deleted|removed|expired|lapsed|rejected|refused|disputed"
    r"|falsch\w*|ung\u00fcltig\w*|storniert\w*|gestrichen\w*|annul[\u00e9e]e?s?|(?:anu|cance)lad[oa]s?"
    r"|annullat[oaie]|scadut[oa]|vencid[oa]"
)
_OLD: Final = (
    r"old|former|previous|prior|last (?:year|month|quarter)['\u2019]s|alte[rsn]?|(?:bisherig|ehemalig|fr\u00fcher"
    r"|vorherig)e[rsn]?|ancien(?:ne)?s?|pr\u00e9c\u00e9dente?s?|anterior(?:es)?|antigu[oa]s?|vecchi[oa]|precedente"
)
_GUESS: Final = (
    r"estimated?|approximate|provisional|preliminary|tentative|unverified|unconfirmed|proposed|expected|forecast"
    r"|projected|guess|to be (?:verified|checked|confirmed|agreed|determined)|(?:gesch\u00e4tzt|vorl\u00e4ufig"
    r"|voraussichtlich)\w*|estim\u00e9e?s?|provisoire|estimad[oa]|stimat[oa]|previst[oa]"
)
_EXAMPLE: Final = (
    r"draft|specimen|example|sample|hypothetical|typo|an? (?:typo|mistake|error|example)|error|sic|correction"
    r"|placeholder|dummy|entwurf|muster|beispiel|exemple|ejemplo|esempio"
)
CALLED: Final = f"{_VOID}|{_GUESS}|{_EXAMPLE}"
"""What says of an amount that nobody is to take it for one."""
_NAMED: Final = (
    "(?:total|sum|amount|price|fee|figure|value|invoice|bill|quote|entry|version|calculation|summe|betrag|preis|prix"
    "|montant|precio|rechnung)"
)
_LOWER: Final = "(?!(?:where|when|if|unless|until|on|by|for|to|in|at|after|with)\\b)(?-i:[a-z\u00df-\u00ff]+)"
LABEL: Final = lazy_pattern(  # VOID, Wrong total, old rent, Precio anterior, Example for a fee; with a colon, any noun
    rf"\W*(?:(?:the|an?|our|your) )?(?:(?:(?!(?:not|never|no|non|nicht)\b){_WORD} )?(?P<said>{_VOID}|{_OLD}|{_GUESS})"
    rf"(?: {_NAMED}|(?: {_LOWER}){{1,2}}|(?: {_WORD}){{1,3}}(?=[^\w:]*:))?"
    rf"|(?P<example>{_EXAMPLE})(?: {_NAMED})?|example(?:(?: {_LOWER})+|(?: {_WORD})+(?=[^\w:]*:)))"
    rf"(?:\W*(?:{SIGN}|{CODE}))?\W*",
    re.IGNORECASE,
)
"""A whole part of a line by which what stands under it is none."""
_CHANGED: Final = (
    r"(?:reduc|lower|rais|increas|decreas|chang|discount|cut|rose|fell|fall|drop|rise|grew|mov|postpon|exten|shift"
    r"|revis|adjust|correct|updat|amend|went|down|up\b|stieg|sank|fiel|erh\u00f6ht|gesenkt|reduziert|verschoben"
    r"|pass|augment|baiss|r\u00e9dui|sub[ei]|baja|scende|aument)\w*"
)
CALLED_BEHIND: Final = lazy_pattern(
    r"[)\]]?,? (?:(?:which )?(?:is|was|are|were|has been|has(?= expired| lapsed)) |[(\[]|[-\u2013\u2014]+ )"
    rf"(?:now |since |already |only )?(?:(?!(?:not|never|no|un|if)\b){_WORD} )?(?:{CALLED}|{_OLD})\b"
    r"(?! (?!(?:by|on|since|as|due|see)\b)[a-z0-9])"
    rf"|[^\w\n|]{{1,20}}(?:since |now |already )?(?:{CALLED})"
    r"(?: (?:by|on|since|as)\b|[^\w\n|]{0,20}(?=\n|\||\Z)|(?=[;.,)\]]))|,? (?:does not apply|no longer applies)\b"
    rf"|[)\]]?(?: (?!and\b|or\b|but\b){_WORD}){{0,6}} (?:is|was) (?:wrong|incorrect|false|not right"
    r"|an? (?:typo|mistake|error))\b"
    r"|,? (?:is|are) no longer\b|,? would (?:be (?:due|payable|charged|owed|added)|have been|apply)\b"
    r"|,? (?:is|are|was|were) not (?:the|my|our|your|its) "
    r"|[.;,!]? (?:this|that|it) (?:is|was) (?:wrong|incorrect|false|not right|a typo)\b(?! to\b)"
    r"|[.;,!]? (?:no, )?(?:sorry|correction|erratum|korrektur|berichtigung|rectificatif)[:,][^.\n]{0,20}[0-9]"
    rf"|[.;,!]?\s(?:corrected|korrigierte[rs]?|berichtigte[rs]?) {_NAMED}\b[^.\n]{{0,12}}[0-9]"
    rf"| auf {MONEY}[0-9]|,? (?:please )?read {MONEY}[0-9]"
    r"|(?: until [^,.;\n]{1,20})?[,;]?\s?[(\[]?(?:but )?(?:it )?(?:(?:is|was|has been|were) )?(?:now|since then|jetzt"
    rf"|down to|should (?:be|read)|(?:superseded|replaced) by|(?:{_CHANGED}) to)\b[^.\n]{{0,12}}[0-9]",
    re.IGNORECASE,
)
REPLACED: Final = lazy_pattern(
    rf"\s?(?:->|=>|[\u2192\u21d2])\s?{MONEY}[0-9][0-9.,]*(?:\s?(?:{SIGN}|{CODE}\b))?", re.IGNORECASE
)
CALLED_BEFORE: Final = lazy_pattern(
    r"(?:(?:(?:\A|[(,;\u2013\u2014-]\s?)(?:was|were|war)|used to be"
    r"|(?:formerly|previously|originally|until now|bisher|fr\u00fcher|ehemals|vormals|zuvor|urspr\u00fcnglich"
    r"|auparavant|anciennement|autrefois|initialement|antes|such as)(?: [^\W\d_]+){0,3}"
    rf"|\b{_CHANGED}(?: [^\W\d_]+){{0,2}} (?:from|von|de|da)"
    r"|(?P<never>(?:wrongly|incorrectly|mistakenly|falsely)(?: [^\W\d_]+){0,2}|no [^\W\d_]+ of"
    r"|anything but|far from(?: being)?"
    r"|(?:not|n['\u2019]t|never) (?:charged?|ha[dv]e?|ask for|require|owed?|offer(?:ed)?|received?)(?: you)? an?"
    r" [^\W\d_]+ of"
    r"|(?:thought|believed|meant|supposed)(?: [^\W\d_]+){0,3}"
    rf"|read [^.\n]{{1,24}} for))[:,]?\s(?:the |an? )?{MONEY}\Z"
    r"|(?<!\w)(?:e\. ?g\.?|eg[.,:]|for (?:example|instance)|z\. ?B\.|zum beispiel|p\. ?ex\.|par exemple)[^)|;]{0,40}\Z"
    r"|(?<!\w)(?P<then>(?:until|till) [^,.;]{1,40} (?:was|were) [^,.;]{0,20}\Z))",
    re.IGNORECASE,
)
"""What stands in front of an amount that nobody is to take for one; a question may ask for an old one or an example."""
_UNBROKEN: Final = r"[^.,;:!?(\n]*"
GOVERNED: Final = lazy_pattern(
    r"\b(?:(?:(?:never|nobody|no one|niemals|jamais|nunca)\b"
    r"(?! (?:\w+ ){0,3}(?:more|less|fewer|above|below|over|under|exceeds?|mehr|plus)\b)"
    r"|(?:not|\w+n['\u2019]t) (?!forget|overlook|miss)(?:[^\W\d]+ ){0,3}that\b|whether\b|ob\b"
    r"|(?:ask(?:s|ed)?|wonder(?:s|ed)?|to know|to see|not sure|un(?:sure|clear)) (?:if|about)\b"
    r"|(?<!not )(?<!n['\u2019]t )(?:ignore|disregard|(?:deny|denie[ds]) that)\b"
    r"|(?:false|wrong|incorrect|untrue|not (?:true|correct|right|the case)) that\b"
    r"|(?:i|we|he|she|they)(?: would| do| had)? (?:think|thought|believe|guess|suppos|assum|reckon|recall|remember"
    r"|suspect)\w*(?! in\b)|(?:it|that) (?:seems|appears|looks)\b"
    r"|ich (?:glaube|denke|vermute|sch\u00e4tze)|je (?:crois|pense)|creo que|credo che"
    r"|(?:perhaps|maybe|possibly|probably|presumably|allegedly|supposedly|reportedly|likely|vielleicht|vermutlich"
    r"|wahrscheinlich|angeblich|peut-\u00eatre|quiz\u00e1s?|forse|voraussichtlich|expected to)\b"
    rf"){_UNBROKEN}"
    r"|(?:suppos|assum|imagin|pretend|hypothe|let['\u2019]s say\b).*"
    r"|(?:as far as|if|when|to the best) [^,\n]{0,20}(?:remember|recall|know|knowledge|mistaken)\w*"
    rf"(?: \w+)?,?{_UNBROKEN})\Z",
    re.IGNORECASE,
)
"""What in front of an amount, in its clause, says that it is no more than thought, asked, denied or to be ignored."""
ASKED: Final = lazy_pattern(
    r"(?:[^.!?\n|\t;:(\u2013\u2014\s]|\([^()\n]{0,40}\)|[.](?=[0-9])|[^\S\n\t](?![\s-])){0,160}\?(?!\w)"
)
"""Behind an amount, the rest of its sentence where that is a question."""
_IF: Final = (
    r"(?:(?:(?-i:[Ii]f|IF(?= [A-Z]{2}))|wenn|falls)(?! (?:any|applicable|needed|necessary|required|so|possible"
    r"|gew\u00fcnscht|vorhanden|n\u00f6tig|(?:it is |you have )?not (?:yet|already)|noch nicht"
    r"|(?:you|there) (?:have|are) (?:any |further )?questions)\b)"
    r"|unless(?! (?:otherwise|agreed|stated|noted|indicated|specified))|on condition|(?:as|so) long as|assuming"
    r"|supposing|provided (?:that|you|it|he|she|they|no)|(?:should|had|were) (?:you|the|it|an?y?)\b|sofern"
    r"|when(?:ever)?(?! (?:i|we|he|she|they)\b)|where (?:the|an?|you|payment)\b"
    r"|(?-i:[Ss][ie])|cuando|quand|vorausgesetzt|\u00e0 condition)(?=\s)"
)
_CASE: Final = (
    r"(?:in (?:the )?case|in the event|subject to|depending on|en cas (?:de|d['\u2019]\w+)|en caso de|in caso di"
    r"|im falle?|bei (?:\w+er \w+|\w*(?:verzug|verlust|versp\u00e4tung|k\u00fcndigung|stornierung)))(?!\w)"
)
CONDITION: Final = f"(?:{_IF}|{_CASE})"
CONDITIONAL: Final = lazy_pattern(rf"\W*{CONDITION}", re.IGNORECASE)
CONDITION_BEFORE: Final = lazy_pattern(  # where a clause begins: behind another amount it is the condition of that one
    r"(?:\A\W*|[,(;:\[]\s*|\s[-\u2013\u2014]\s*|\b(?:and|but|or|und|aber|oder|et|ou|mais|[yoe]|pero)\s)"
    rf"(?:(?:only|but|even|except|then|nur) )*(?:(?P<case>{_CASE})|{_IF})",
    re.IGNORECASE,
)
CONDITION_ENDS: Final = lazy_pattern(r"[,:)](?! ?[0-9])|\bthen\b", re.IGNORECASE)
CONDITION_INSIDE: Final = lazy_pattern(  # the fee if you pay late is 90: there is no other verb in front
    r"\A(?:(?!\b(?:is|are|was|were|ships?|will|can|may|must|has|have)\b)[^,;:.0-9])*?"
    rf"(?<!\w)(?P<said>{CONDITION}[^,;:]*)\b(?:is|are|will be|shall be|costs?)\s(?:only )?{MONEY}\Z",
    re.IGNORECASE,
)
CONDITION_BEHIND: Final = lazy_pattern(
    r"(?P<verb>(?: (?:is|are|will|shall|must|to|be|becomes?|apply|applies|due|payable|charged|added|owed|levied|extra"
    r"|f\u00e4llig|berechnet|each))+)?[)\]]?,? [(]?(?:only |but |even |except |nur )*(?!unless)"
    rf"(?P<said>{CONDITION}(?![^;|\n)]{{1,60}}[:=]\s?{MONEY}[0-9])[^;|\n]*)",  # none of the amount behind it
    re.IGNORECASE,
)
DEFINITE: Final = lazy_pattern(
    r"\b(?:the|your|our|its|their|this|that|de[rnm]|die|das|l[ea]|el|il) [^,;:.]{1,40}"
    rf"(?<! est)(?<! es)(?<! \u00e8) (?:of|von|de|di) {MONEY}\Z",
    re.IGNORECASE,
)
"""The fee of an amount is there, whatever becomes of it on a condition."""
INDEFINITE: Final = lazy_pattern(r"\b(?:an?|une?|eine?[nrsm]?|un[ao]?|des)\s(?P<said>[^,;:.]{1,60})\Z", re.IGNORECASE)
"""A fee of an amount is there on a condition, and answers for both."""
_ELSE: Final = (
    "(?:otherwise(?! (?:agreed|stated|noted))|else|sonst|andernfalls|ansonsten|sinon|de lo contrario|altrimenti)"
)
OTHERWISE_BEFORE: Final = lazy_pattern(rf"\b{_ELSE}\b[^.;0-9]*\Z", re.IGNORECASE)
OTHERWISE_BEHIND: Final = lazy_pattern(rf",? \(?{_ELSE}(?=\W{{0,3}}(?:[.;,)\n]|\Z))", re.IGNORECASE)
CONDITIONS: Final = lazy_pattern(rf"(?<!\w){CONDITION}[^,.;\n]*", re.IGNORECASE)
NEGATION: Final = r"(?:\b(?:not|no|non|never|without|unless|nicht|kein\w*|ohne|sans|pas|sin)|n['\u2019]t)\b"
NEGATED: Final = lazy_pattern(NEGATION, re.IGNORECASE)
REFERENCE: Final = lazy_pattern(
    r"\b(?:(?:no|nr|num|ref|art|sec|p|pp|tel|fax|zip|id)\b\.?|n[\u00b0\u00ba]|\u00a7+|number|nummer|num[\u00e9e]ro|reference|section"
    r"|article|artikel|clause|page|seite|room|zimmer|phone|telefon|chapter|paragraph|table|figure|appendix|annex"
    r"|version|step|line)\s?[:#]?\s?\Z",
    re.IGNORECASE,
)
"""In front of a whole number, what makes it a reference, and no amount of money."""
STAMPED: Final = (
    "VOID|CANCELL?ED|SPECIMEN|INVALID|NOT VALID|DRAFT|SAMPLE|REVERSED"
    "|TRAINING MODE|UNG\u00dcLTIG|STORNIERT|ENTWURF|MUSTER|ANNUL\u00c9E?|ANULAD[OA]|ANNULLAT[OA]"
)
_PAPER: Final = (
    "(?:invoice|receipt|bill|quote|offer|copy|document|statement|contract|rechnung|quittung|angebot|beleg|vertrag"
    "|facture|re\u00e7u|devis|contrat|factura|recibo|fattura|ricevuta|contrato)"
)
STAMP: Final = lazy_pattern(
    rf"^[^\w\n]*(?:(?i:this|the) \w+ (?i:is) )?(?:(?i:{_PAPER})\W{{1,3}})?(?:{STAMPED})(?: (?i:{_PAPER}))?[^\w\n]*$"
    rf"|^[^\w\n]*(?i:(?:{STAMPED}|example|storno)[ -]?{_PAPER}|{_PAPER} (?:annul\u00e9e?|storniert))[^\w\n]*$"
    rf"|\b(?i:(?:this|diese[rs]?|cette?) (?:[^\W\d_]+ )?{_PAPER} (?:is|was|has been|ist|wurde|est|a \u00e9t\u00e9)"
    rf" (?:only |nur )?(?:an? |eine? |une? )?(?:{CALLED})\b"
    r"(?! (?:after|at|for|if|once|to|unless|until|when|where|with|without)\b)"
    rf"|this is (?:only )?an? (?:{CALLED}) {_PAPER}\b)"
    rf"|^[^\n0-9|]{{0,40}}\b(?i:{_PAPER})\b[^\n0-9|]{{0,20}}(?:[(\[]|[-\u2013\u2014] ?)(?i:{STAMPED})[^\w\n]*$",
    re.MULTILINE,
)
"""A line that says of the whole document that nothing in it holds."""
