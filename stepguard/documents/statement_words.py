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
    r"wrong|incorrect|false|invalid|not (?:be(?:en)? )?(?:right|correct|true|valid|due|payable|applicable|final|charged"
    r"|executed|processed|accepted|approved|confirmed|completed|applied|agreed)|no longer (?:valid|due|applicable)"
    r"|void(?:ed)?|cancell?ed|annulled|superseded|obsolete|outdated|withdrawn|waived|abolished|revoked|repealed"
    r"|declined|failed|postponed|discontinued|disallowed|crossed out|struck out|deleted|removed|expired|lapsed|rejected"
    r"|refused|disputed|falsch\w*|ung\u00fcltig\w*|storniert\w*|gestrichen\w*|annul[\u00e9e]e?s?|(?:anu|cance)lad[oa]s?"
    r"|annullat[oaie]|scadut[oa]|vencid[oa]"
)
_OLD: Final = (
    r"old|former|previous|prior|last (?:year|month|season|quarter)(?:['\u2019]s)?|alt(?:e[rsn]?)?|(?:bisherig|ehemalig"
    r"|fr\u00fcher|vorherig)e[rsn]?|ancien(?:ne)?s?|pr\u00e9c\u00e9dente?s?|anterior(?:es)?|antigu[oa]s?|vecchi[oa]"
    r"|precedente"
)
_GUESS: Final = (
    r"estimated?|approximate|provisional|preliminary|tentative|unverified|unconfirmed|proposed|expected|forecast"
    r"|projected|planned|budgeted|prognose|guess|estimation|sch\u00e4tzung|stima|estimaci\u00f3n|to be (?:verified"
    r"|checked|confirmed|agreed|determined)|(?:gesch\u00e4tzt|vorl\u00e4ufig|voraussichtlich)\w*|estim\u00e9e?s?"
    r"|provisoire|estimad[oa]|stimat[oa]|previst[oa]"
)
_EXAMPLE: Final = (
    r"draft|specimen|example|sample|hypothetical|typo|an? (?:typo|mistake|error|example)|error|sic|before|vorher|avant"
    r"|prima|antes|placeholder|dummy|entwurf|(?:muster|beispiel)(?:rechnung|vertrag|angebot)?|exemple|ejemplo|esempio"
)
_CHANGE: Final = (
    r"discount|rebate|deduction|reduction|refund|cashback|savings?|surcharge|(?:credit|debit) note|rabatt|nachlass"
    r"|erstattung|gutschrift|remise|r\u00e9duction|remboursement|descuento|reembolso|sconto|rimborso"
)
"""What an amount is by which another one changes, and not that one."""
CALLED: Final = f"{_VOID}|{_GUESS}|{_EXAMPLE}"
"""What says of an amount that nobody is to take it for one."""
_NAMED: Final = (
    "(?:total|sum|amount|price|fee|figure|value|invoice|bill|quote|entry|version|calculation|summe|betrag|preis|prix"
    "|montant|precio|rechnung)"
)
_LOWER: Final = "(?!(?:where|when|if|unless|until|on|by|for|to|in|at|after|with)\\b)(?-i:[a-z\u00df-\u00ff]+)"
LABEL: Final = lazy_pattern(  # VOID, Wrong total, old rent, Precio anterior, Example for a fee; with a colon, any noun
    rf"\W*(?:(?:the|an?|our|your) )?(?:(?:(?!(?:not|never|no|non|nicht)\b){_WORD}(?: [0-9]{{1,9}})?,? )?(?:since "
    rf"|later )?(?P<said>{_VOID}|{_OLD}|{_GUESS}|{_CHANGE})(?: {_NAMED}|(?: {_LOWER}){{1,2}}"
    rf"|(?: {_WORD}){{1,3}}(?=[^\w:]*:))?|(?:{_EXAMPLE})(?: {_NAMED})?|example(?: [0-9]{{1,2}}|(?: {_LOWER})+"
    rf"|(?: {_WORD})+(?=[^\w:]*:)))(?:\W*(?:{SIGN}|{CODE}))?\W*",
    re.IGNORECASE,
)
"""A whole part of a line by which what stands under it is none."""
_CHANGED: Final = (
    r"(?:switch|migrat|(?:up|down)grad|resched|(?:brought|put|pushed) (?:forward|back)|reduc|lower|rais|increas|decreas"
    r"|chang|discount|cut|rose|fell|fall|drop|rise|grew|mov|postpon|exten|shift|revis|adjust|correct|updat|amend|went"
    r"|down|up\b|stieg|sank|fiel|erh\u00f6ht|gesenkt|reduziert|verschoben|pass|augment|baiss|r\u00e9dui|sub[ei]|baja"
    r"|scende|aument)\w*"
)
CALLED_BEHIND: Final = lazy_pattern(
    r"[)\]]?,? (?:(?:which )?(?:is|was|are|were|could|has been|has(?= expired| lapsed)) |[(\[]|[-\u2013\u2014]+ )"
    rf"(?:now |since |already |only )?(?:(?!(?:not|never|no|un|if)\b){_WORD} )?(?:{CALLED}|{_OLD})\b(?! (?!(?:by|on"
    rf"|since|as|due|see)\b)[a-z0-9]|: ?{MONEY}[0-9])| [(\[](?:[^()\[\]\n]{{0,30}}, ?)?(?:{CALLED}"
    rf"|{_OLD})(?: {_NAMED})?[)\]]|,? (?:[-\u2013\u2014] )?or (?:maybe|perhaps|was it) {MONEY}[0-9]|,? was (?:discussed"
    rf"|considered)\b|[^\w\n|]{{1,20}}(?:since |now |already |later )?(?:{CALLED})"
    r"(?: (?:by|on|since|as)\b|[^\w\n|]{0,20}(?=\n|\||\Z)|(?=[;.,)\]]))|,? (?:does not apply|no longer applies)\b"
    rf"|[)\]]?(?: (?!and\b|or\b|but\b){_WORD}){{0,6}} (?:(?:is|was) (?:wrong|incorrect|false|not right"
    r"|an? (?:typo|mistake|error))|by mistake)\b|,? (?:is|are) no longer\b|,? would (?:be (?:due|payable|charged|owed"
    r"|added)|have been|apply)\b|,? (?:is|are|was|were) not (?:the|my|our|your|its) "
    rf"|[.;,!]? \(?(?:this|that|it|the above)(?: {_WORD})? (?:is|was) (?:wrong|incorrect|false|not right|a typo)\b"
    r"(?! to\b)"
    rf"|[.;,!]?(?: (?:[-\u2013\u2014(]|->))? ?(?:no|i mean|or rather|scratch that|make that|wait|actually|update|edit"
    rf"|wrong)[:,!]? (?:it is )?{MONEY}[0-9]"
    r"|(?:,? [^.;\n]{0,20}but|[;,.]) it should (?:be|read|say|have been) |[.;,!]? \(?(?:no, )?(?:sorry|correction"
    r"|erratum|korrektur|berichtigung|rectificatif)[:,][^.\n]{0,20}[0-9]"
    rf"|[.;,!]?\s(?:corrected|korrigierte[rs]?|berichtigte[rs]?) {_NAMED}\b[^.\n]{{0,12}}[0-9]| (?:off|cheaper|dearer"
    rf"|(?:more|less) than|{_CHANGE})\b(?! (?:card|of {MONEY}[0-9]))"
    r"|,? (?:is|are|was|were) (?:deducted|subtracted|refunded|knocked off|taken off)\b|,? (?:does|do|did) not exist\b"
    r"|,? (?:is|was) (?:untrue|a misprint)\b| (?:entf\u00e4llt|est supprim\u00e9e?|ya no se"
    r"|\u00e8 stat[ao] abolit[ao])\b"
    rf"| auf {MONEY}[0-9]|,? (?:please )?read {MONEY}[0-9]"
    r"|(?: until [^,.;\n]{1,20})?[,;]?\s?[(\[]?(?:but )?(?:it |which )?(?:(?:is|was|has been|were) )?(?:now|since then"
    r"|jetzt"
    rf"|down to|should (?:be|read)|(?:superseded|replaced) by|(?:{_CHANGED}) to)\b[^.\n]{{0,12}}[0-9]",
    re.IGNORECASE,
)
REPLACED: Final = lazy_pattern(
    rf"\s?(?:->|=>|[\u2192\u21d2])\s?{MONEY}[0-9][0-9.,]*(?:\s?(?:{SIGN}|{CODE}\b))?", re.IGNORECASE
)
CALLED_BEFORE: Final = lazy_pattern(
    r"(?:(?:(?:\A|[(,;\u2013\u2014-]\s?)(?:was|were|war)|used to \w+|vs\.?|compared (?:to|with)|(?:change"
    r"|replac(?:e[sd]?|ing)|supersed(?:e[sd]?|ing))(?![:,])|(?:formerly|previously|originally|until now|bisher"
    r"|fr\u00fcher|ehemals|vormals|zuvor|urspr\u00fcnglich|auparavant|anciennement|autrefois|initialement|antes|such as"
    r"|usually|normally|w(?:as|ere) still)(?: [^\W\d_]+){0,3}"
    rf"|\b{_CHANGED}(?: [^\W\d_]+){{0,2}} (?:from|by|von|um|de|da)"
    r"|(?P<never>(?:wrongly|incorrectly|mistakenly|falsely)(?: [^\W\d_]+){0,2}|no [^\W\d_]+ (?:of|on)|short of"
    r"|nowhere near|anything but|far from(?: being)?|(?:not|n['\u2019]t|never) (?:charged?|ha[dv]e?|ask for|require"
    r"|owed?|offer(?:ed)?|received?)(?: you)? an? [^\W\d_]+ of|(?:thought|believed|meant|supposed)(?: [^\W\d_]+){0,3}"
    rf"|read [^.\n]{{1,24}} for))[:,]?\s(?:the |an? )?[\"\u201c]?{MONEY}\Z"
    r"|(?<!\w)(?:e\. ?g\.?|eg[.,:]|for (?:example|instance|illustration)|z\. ?B\.|zum beispiel|p\. ?ex\.|par exemple"
    r"|por ejemplo|ad esempio)[^)|;]{0,40}\Z|\bas an example,? \Z|(?<!\w)(?P<then>(?:until|till|up to"
    r"|before) [^,.;]{1,40} (?:was|were) [^,.;]{0,20}\Z))",
    re.IGNORECASE,
)
"""What stands in front of an amount that nobody is to take for one; a question may ask for an old one or an example."""
_SPAN: Final = (
    r"(?:days?|weeks?|months?|years?|tagen?|wochen?|monaten?|jahren?|jours|semaines|mois|ans|d\u00edas|giorni)"
)
OFFSET: Final = lazy_pattern(
    rf"\b[^\W_]+ (?:[^\W\d_]+ )?{_SPAN} (?P<way>after|before|from|following|past|prior to|later than|ahead of|nach|vor"
    r"|ab|apr\u00e8s|avant|despu\u00e9s de|antes de|dopo|prima (?:di|del)|(?<=days )of|(?<=weeks )of"
    r"|(?<=months )of)(?: (?:the|dem|le|el|il))?(?: \w{2,9},?)? \Z",
    re.IGNORECASE,
)
"""In front of a date, what makes it the one that another is counted from."""
OFFSET_BEHIND: Final = lazy_pattern(
    rf",? ?(?P<way>plus|minus|[-+\u2212]) ?(?:[0-9]{{1,4}}|[^\W\d_]{{1,9}}) (?:[^\W\d_]+ )?{_SPAN}\b", re.IGNORECASE
)
_UNBROKEN: Final = r"(?:(?!\b(?:and|but|because|since|so|as|if|although)\b)[^.,;:!?()\n])*"
_LEAVING: Final = "(?:need|know|realise|forget|overlook|miss|mind|ignore|include|contain|cover|exceed|hesitate|worry)"
GOVERNED: Final = lazy_pattern(
    r"\b(?:(?:(?:never|nobody|no one|nothing|in no event|niemals|jamais|nunca)\b(?! (?:\w+ ){0,3}(?:more|less|fewer"
    r"|above|below|over|under|exceeds?|mehr|plus)\b)|(?P<not>(?:do|does|did|have|has|had|will|shall|can|could|is|are"
    r"|was|were)(?: not|n['\u2019]t)|cannot|won['\u2019]t) "
    rf"(?!{_LEAVING})(?!(?:\w+ ){{0,3}}(?:more|less|fewer|above|below|over|under|before|until|later|earlier)\b)"
    r"|not to (?!exceed|mention|forget)"
    rf"|(?:waiv|cancell?|withdr[ae]w|abolish|revok|delet|remov|refus|reject|declin)(?:e[sd]?|s|n|ing)? (?:the|your|our"
    rf"|this|that|to)\b"
    r"|(?:refuse|reject|decline)[sd]?(?:ed)? an?\b|w(?:as|ere) (?:to be|going to)\b|heard\b|rumou?rs?\b|some say\b"
    r"|call it\b|consider an?\b|my (?:understanding|guess|impression) is\b|(?:fairly|pretty|quite|almost) sure\b"
    r"|(?:would|could|might|w\u00fcrden?|k\u00f6nnten?|d\u00fcrften?|w\u00e4ren?)\b(?! (?:like|love|be (?:happy|glad"
    r"|pleased|grateful)|you)\b)(?!.*\bthat\b)|(?:was|were|been) told\b|whether\b|ob\b|(?:ask(?:s|ed)?|wonder(?:s|ed)?"
    r"|know|see|check|sure|unsure|unclear) (?:if|about)\b|not certain\b.*|from memory\b.*"
    r"|(?<!not )(?<!n['\u2019]t )(?:ignore|disregard|forget the|take back|wish|if only|(?<!no )doubt|(?:deny"
    r"|denie[ds]) that)\b|(?:false|wrong|incorrect|untrue|not (?:true|correct|right|the case)) that\b|(?:i|we|he|she"
    r"|they)(?: would| do| had|['\u2019]d)?(?: \w+ly)? (?:think|say|thought|believe|guess|suppos|assum|reckon|recall"
    r"|remember|suspect)\w*(?! in\b)|(?:it|that) (?:seems|appears|looks)\b|ich (?:glaube|denke|vermute|sch\u00e4tze),?"
    r"|je (?:crois|pense)|creo que|credo che|(?:perhaps|maybe|possibly|probably|presumably|allegedly|supposedly"
    r"|reportedly|likely|vielleicht|vermutlich|wahrscheinlich|angeblich|peut-\u00eatre|quiz\u00e1s?|forse|either"
    r"|voraussichtlich|probablemente|probabilmente|apparently|(?P<told>(?:expected|estimated|rumou?red|said) to"
    r"|hope[ds]? (?:for|to)|mentioned|demand(?:s|ed)|(?:we|i) (?:expect|estimate)))\b"
    rf"){_UNBROKEN}"
    r"|(?:suppose\b|imagin|pretend|hypothe|let (?:us|me) (?:assum|suppos)|let['\u2019]s say\b).*|(?:as far as|if|when"
    r"|to the best) [^,\n]{0,20}(?:remember|recall|know|knowledge|mistaken)\w*"
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
    r"|gew\u00fcnscht|vorhanden|n\u00f6tig|(?:it is |you have )?not (?:\w+ )?(?:yet|already)|noch nicht|nicht anders"
    r"|(?:you|there) (?:have|are) (?:any |further )?questions)\b)|unless(?! (?:otherwise|agreed|stated|noted|indicated"
    r"|specified))|on condition|(?:as|so) long as|assuming|supposing|provided (?:that|you|it|he|she|they|no)|(?:should"
    r"|had|were) (?:you|the|it|an?y?)\b|sofern|once (?:the|you|an?)\b|when(?:ever)?(?! (?:i|we|he|she|they|you have)\b)"
    r"|where (?:the|an?|you|payment)\b|cuando|quand|vorausgesetzt|\u00e0 condition)(?=\s)"
)
_SI: Final = r"(?-i:[Ss][ie])(?=\s)"
"""In Romance languages, where it may be a pronoun as well: only with a comma behind its clause."""
_CASE: Final = (
    r"(?:in (?:the )?case|in the event|subject to|depending on|en cas (?:de|d['\u2019]\w+)|en caso de|in caso di"
    r"|(?:up)?on (?:early |late )?(?:cancellation|termination|loss|default|breach|withdrawal)|im falle?"
    r"|bei (?:\w+er \w+|\w*(?:verzug|verlust|versp\u00e4tung|k\u00fcndigung|stornierung)))(?!\w)"
)
CONDITION: Final = f"(?:{_IF}|{_CASE}|{_SI})"
CONDITIONAL: Final = lazy_pattern(rf"\W*{CONDITION}", re.IGNORECASE)
CONDITION_BEFORE: Final = lazy_pattern(  # where a clause begins: behind another amount it is the condition of that one
    r"(?:\A\W*|[,(;:\[]\s*|\s[-\u2013\u2014]\s*|\b(?:and|but|or|und|aber|oder|et|ou|mais|[yoe]|pero)\s)"
    rf"(?:(?:only|but|except|then|nur) )*(?:(?P<case>{_CASE})|(?P<if>{_IF})|{_SI})",
    re.IGNORECASE,
)
CONDITION_ENDS: Final = lazy_pattern(r"[,:)](?! ?[0-9])|\bthen\b", re.IGNORECASE)
CONDITION_INSIDE: Final = lazy_pattern(  # the fee if you pay late is 90: there is no other verb in front
    r"\A(?:(?!\b(?:is|are|was|were|ships?|will|can|may|must|has|have)\b)[^,;:.0-9])*?"
    rf"(?<!\w)(?P<said>{CONDITION}[^,;:]*)\b(?:is|are|will be|shall be|costs?)\s(?:only )?{MONEY}\Z"
    rf"|(?<!\w)(?P<label>{CONDITION}[^;:]*): ?{MONEY}\Z",
    re.IGNORECASE,
)
CONDITION_BEHIND: Final = lazy_pattern(
    r"(?P<verb>(?: (?:is|are|will|shall|must|to|be|becomes?|apply|applies|due|payable|charged|added|owed|levied|extra"
    r"|f\u00e4llig|berechnet|each))+)?[)\]]?,? [(]?(?:only |but |except |nur )*(?!unless)"
    rf"(?P<said>{CONDITION}(?![^;|\n)]{{1,60}}[:=]\s?{MONEY}[0-9])[^;|\n]*)",  # none of the amount behind it
    re.IGNORECASE,
)
DEFINITE: Final = lazy_pattern(
    r"\b(?:the|your|our|its|their|this|that|de[rnm]|die|das|l[ea]|el|il) [^,;:.]{1,40}"
    rf"(?<! est)(?<! es)(?<! \u00e8)(?<! sera)(?<! ser\u00e1)(?<! sar\u00e0) (?:of|von|de|di) {MONEY}\Z",
    re.IGNORECASE,
)
"""The fee of an amount is there, whatever becomes of it on a condition."""
INDEFINITE: Final = lazy_pattern(r"\b(?:an?|une?|eine?[nrsm]?|un[ao]?|des)\s(?P<said>[^,;:.]{1,60})\Z", re.IGNORECASE)
"""A fee of an amount is there on a condition, and answers for both."""
_ELSE: Final = (
    "(?:(?P<same>in (?:which|that|such) case)|otherwise(?! (?:agreed|stated|noted))|else|sonst|andernfalls|ansonsten"
    "|sinon|de lo contrario|altrimenti)"
)
OTHERWISE_BEFORE: Final = lazy_pattern(rf"\b{_ELSE}\b[^.;0-9]*\Z", re.IGNORECASE)
OTHERWISE_BEHIND: Final = lazy_pattern(rf",? \(?{_ELSE}(?=\W{{0,3}}(?:[.;,)\n]|\Z))", re.IGNORECASE)
CONDITIONS: Final = lazy_pattern(rf"(?<!\w){CONDITION}[^,.;\n]*", re.IGNORECASE)
NEGATION: Final = r"(?:\b(?:not|no|non|never|without|unless|nicht|kein\w*|ohne|sans|pas|sin)|n['\u2019]t)\b"
EXCLUDED: Final = r"(?:\b(?:(?:are|is) not|non|without|ohne|sans|sin)|(?:are|is)n['\u2019]t)\b"
SUBJECT: Final = lazy_pattern(
    r"\b(?:if|should|when|where|wenn|falls|sofern|s[ie]) (?:the|your|this|de[rnm]|die|das|l[ea]|el|il) \w+(?= \w)",
    re.IGNORECASE,
)
"""What a condition is about: naming that names no condition."""
NEGATED: Final = lazy_pattern(NEGATION, re.IGNORECASE)
REFERENCE: Final = lazy_pattern(
    r"\b(?:(?:no|nr|num|ref|art|sec|p|pp|tel|fax|zip|id)\b\.?|n[\u00b0\u00ba]|\u00a7+|number|nummer|num[\u00e9e]ro"
    r"|reference|section|article|artikel|clause|page|seite|room|zimmer|phone|telefon|chapter|paragraph|table|figure"
    r"|appendix|annex|version|step|line)\s?[:#]?\s?\Z",
    re.IGNORECASE,
)
"""In front of a whole number, what makes it a reference, and no amount of money."""
STAMPED: Final = (
    "VOID|CANCELL?ED|SPECIMEN|INVALID|NOT VALID|DRAFT|SAMPLE|REVERSED|EXPIRED|WITHDRAWN|TRAINING MODE|UNG\u00dcLTIG"
    "|STORNIERT|ENTWURF|MUSTER|ANNUL\u00c9E?|ANULAD[OA]|ANNULLAT[OA]"
)
_PAPER: Final = (
    "(?:invoice|receipt|bill|quote|offer|copy|document|statement|contract|rechnung|quittung|angebot|beleg|vertrag"
    "|facture|re\u00e7u|devis|contrat|factura|recibo|fattura|ricevuta|contrato)"
)
STAMP: Final = lazy_pattern(
    rf"^[^\w\n]*(?:(?i:this|the) \w+ (?i:is) )?(?:(?i:{_PAPER})\W{{1,3}})?(?:{STAMPED})(?: (?i:{_PAPER}))?[^\w\n]*$"
    rf"|^[^\w\n]*(?i:status)[^\w\n]{{1,3}}(?i:{STAMPED}|expired|rejected|withdrawn)[^\w\n]*$|^[^\w\n]*(?i:(?:{STAMPED}"
    rf"|example|storno)[ -]?{_PAPER}|{_PAPER} (?:annul\u00e9e?|storniert))[^\w\n]*$|\b(?i:(?:this|diese[rs]?"
    rf"|cette?) (?:[^\W\d_]+ )?{_PAPER} (?:is|was|has been|ist|wurde|est|a \u00e9t\u00e9) (?:only |nur )?(?:an? |eine? "
    rf"|une? )?(?:{CALLED})\b"
    r"(?! (?:after|at|for|if|once|to|unless|until|when|where|with|without)\b)"
    rf"|this is (?:only )?an? (?:{CALLED}) {_PAPER}\b)|^[^\n0-9|]{{0,40}}\b(?i:{_PAPER})\b[^\n0-9|]{{0,20}}(?:[(\[]"
    rf"|[-\u2013\u2014] ?)(?i:{STAMPED})[^\w\n]*$",
    re.MULTILINE,
)
"""A line that says of the whole document that nothing in it holds."""
