"""The words that are understood around a claim: those of grammar, arithmetic, answers, quantities and units."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from stepguard.language.currencies import CODES, WORDS
from stepguard.language.prose.vocabulary import QUANTITIES, VERBS, word_set
from stepguard.language.unit_names import factors_of

_GRAMMAR: Final = word_set(
    """
    a an the this that these those it its i we me my mine us our ours ourselves here there where which what how is
    are was were be been being am has have had having do does did done will shall can must going to of in on at by
    for from with into onto out up down everything over under above below around about between among within through
    along per via than times as and also too both while when whenever once after before until during since because x
    y z n j k so thus hence therefore then now again already still just simply only directly exactly first firstly
    second secondly third thirdly fourth fifth sixth seventh eighth ninth tenth next last lastly finally final each
    every all one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen
    seventeen eighteen nineteen twenty thirty forty fifty sixty seventy eighty ninety hundred thousand million st nd
    rd th i've i'm i'll ii iii iv vi vii viii ix them i'd we've we're we'll we'd let's it's that's here's there's
    what's
    """
)
NOUNS: Final = word_set(
    """
    step part line number value result answer solution output total variable figure term side calculation
    computation equation formula expression operation operand arithmetic math mathematics algebra order way time
    procedure process method approach task problem instruction reasoning explanation working breakdown overview
    summary conclusion recap detail json object markdown code block table row column list text field reply response
    token request power base parenthesis parentheses bracket box boxed tag integer decimal fraction digit place
    input point course short execution addition subtraction multiplication division rounding representation rule
    definition analysis function currency unit tool assistant item product nearest python javascript plaintext latex
    yaml whole rest half third quarter fourth twice thrice hand sequence submission
    """
)
_ADJECTIVES: Final = word_set(
    """
    equal more less fewer larger smaller greater lower higher longer shorter remaining whole new own same current
    corresponding respective intermediate individual overall altogether combined separate single additional extra
    simple easy straightforward exact necessary full complete net gross annual monthly weekly daily hourly flat
    fixed ready good great well ok okay alright yes sure hello hi thanks easily clearly obviously evidently quickly
    carefully accordingly together even odd true valid structured successful successfully forward
    """
)
_ELSEWHERE: Final = word_set(
    """
    der die das den dem des ein eine einen einem einer wir ich uns es hier ist sind werden also daher damit somit
    folglich nun jetzt dann zuerst zunächst danach anschließend schließlich zuletzt insgesamt und mit für von vom
    aus im ins zu zum zur auf bei durch mal plus daraus folgt folgenden beträgt ergibt erhalten erhält berechne
    berechnen berechnet berechnung multiplizieren addieren subtrahieren dividieren rechnen rechnung ergebnis
    ergebnisse schritt schritte wert werte antwort endergebnis gesamtbetrag summe betrag lösung formel erster
    zweiter dritter letzter le la les un une du de au aux nous je ce sont donc ainsi alors puis ensuite enfin
    d'abord c'est maintenant ici et avec pour par dans en à voici calcul calculs calculer calcule calculons
    multiplions ajoutons soustrayons divisons obtient obtenons donne vaut égal égale résultat résultats étape étapes
    valeur valeurs réponse formule somme montant el los las una del nosotros está aquí tienes así entonces luego
    después primero segundo tercero finalmente ahora por tanto lo y con que tenemos obtenemos calculamos calcular
    cálculo cálculos multiplicamos sumamos restamos dividimos resultado resultados paso pasos valor valores
    respuesta solución fórmula suma importe ecco quindi allora poi infine calcoliamo otteniamo risultato risultati
    passo valore risposta calcolo natürlich gerne objekt lautet lauten gewünschte abgeschlossen bien sûr objet final
    demandé d'accord claro supuesto están siguiente siguientes certo fertig produit passons pasamos producto questo
    questi prodotto passiamo sommiamo fatto listo voilà avons al ora este rufe werkzeug
    """
)
"""Words of grammar, calculation and answers in German, French, Spanish and Italian.

Those that may be another word of English are left out, such as names, persons and ``est``."""
_ACTIONS: Final = word_set(
    """
    be equal become give get yield make mean obtain compute calculate determine evaluate work derive know call write
    set define update round start begin continue proceed move go come arrive take use plug substitute apply keep
    carry execute perform complete finish do show provide present list contain summarize need want ask request
    require follow simplify sell buy pay spend earn save leave produce owe charge left sold bought paid spent given
    made gave got taken took kept found knew known written began begun came went done shown note remember recall see
    include exclude conclude instruct help please fill fulfil represent correspond refer run specify submit exceed
    reach generate invoke
    """
)
REMARKS: Final = word_set("correct right verified checked confirmed exact check checks checking verification proof")
"""What praises a claim behind it, or checks it."""
PRAISE: Final = word_set("valid success successful ok okay yes true right done good correct verified")
"""What heads a column that holds no values."""
COMPARING: Final = word_set(
    "deviation difference variance change delta offset residual remainder growth reduction ratio share percentage"
)
"""What heads a column that compares values, unless the procedure is about it."""
FAULTS: Final = word_set("wrong false error errors mistake mistakes warning warnings failed failure failures invalid")
"""What heads a column, or a key, under which "no" is praise."""
UNITS: Final = word_set("unit units currency scale magnitude multiplier base radix sign")
_NOTHING: Final = word_set("no none nothing null false 0 n/a na nil - \u2013 \u2014 keine aucune ninguno")
CONDITIONS: Final = word_set("when whenever once while until before after provided providing given")
RIGHTING: Final = word_set(
    "correct corrected right actual real true proper properly better really wrong false mistake meant intended richtig "
    "korrekt eigentlich bon juste vrai plut\u00f4t correcto verdadero mejor"
)
"""Words beside an equation that set one before it right."""
_WORKING: Final = word_set(
    """
    answer appear arise assist attach break build cause clarify combine compile consist consider construct convert
    copy cover deliver describe display elaborate ensure examine explain express extract fall find format gather go
    handle identify inspect interpret introduce involve itemize know lead list locate look match matter mention need
    organize outline parse pick place prepare present process quantify quote receive recommend relate respond
    restate retrieve return review scan search send share solve sort speak structure study supply support translate
    treat turn understand use view walk want welcome wrap goes fell found looks arose sent read tell request ask
    require help see seen leave leaving take taken base based reach come comes evaluate run
    """
)
"""What is done with a task or a document."""
_OF_GRAMMAR: Final = word_set(
    """
    be been being was were had up down out under over above below within along towards across back through same
    every each any because which who whose where there they their them they're he she his her you you're you've your
    yours i me my we us our ours both whether please simply directly completely entirely explicitly fully
    individually thoroughly basic easy clear brief kind much many themselves about around here now terms bis in am
    an nach über unter um sich wird wurde wurden war waren hat haben habe kann können dazu davon daran dabei deren
    dessen er sie ihr euch dir dich mir mich mein meine dein deine unser unsere wie auch noch bereits sowie jeweils
    rechne zeigt zeige lese liest steht stehen stammt kommt komme liegt liegen kostet setzt setzen zusammen
    zusammensetzt gedeckt enthält enthalten angegeben entnommen übernommen extrahiert extrahiere gelesen gefunden
    geprüft prüfe heißt bezahlen zahlen gefragt multipliziert addiert abgezogen ziehen nehme bekommt bleibt klar
    folgendes folgende folgender sur qui dont où il elle ils elles on cet cette se son sa ses leur leurs ma mon mes
    notre nos votre vos tes comme très été ont avez ai j'ai lu lue lus indique contient figure trouve coûte couvre
    couvert couverte acceptée accepté payer payée payable envoyée envoyé provient extrait extraits extraites copié
    examiné procédons multiplie multipliant ajoute ajoutant suivante suivantes suivants après sera doit su sus mi
    mis nuestro nuestra te uno cada esta como fue fueron hemos ha han lee contiene aparece cuesta cubre cubierto
    cubierta pagar pagarse debe enviada enviado extraídos extraído extraída copiado leído revisado revisar
    procedemos muestro muestra dentro continuación completo completa tras
    """
)
"""Words around them, in four languages, besides what is understood everywhere: none says anything of a claim."""
_OF_DOCUMENTS: Final = word_set(
    """
    approve approval assessment breakdown case claimant applicant client buyer seller clause column comment company
    content conversation customer data deadline decision description detail document email employee employer entry
    end evidence extraction fact field file finding header heading info information inquiry invoice justification
    key letter line list loss mail message middle month name object order outcome owner page paper paragraph pattern
    passage payload payroll payslip person policy prompt query question rationale reader receipt recipient record
    report row section sender sentence shop source specification state statement store summary supplier table task
    text thing title topic type user vendor word worker worksheet careful concise consistent convenient direct
    important main plain quick readable relevant respective similar simple single specific standard suitable useful
    various iso general neatly step-by-step one-by-one line-by-line payable limit angaben rechnung rechnungen brief
    tabelle zeile spalte menge versandkosten versand mitarbeiter lohn stundenlohn stunden steuern prüfung fall falls
    entscheidung police grenze schaden antrag kunde lieferant absender datum daten feld felder dokument aufgabe
    frage informationen kosten facture lettre tableau ligne colonne quantité frais livraison salaire heures
    fournisseur expéditeur données champ champs texte tâche dossier décision demande informations examen employé
    factura carta tabla fila columna monto cantidad envío salario horas cliente proveedor remitente fecha datos
    campo campos documento texto tarea póliza reclamación decisión límite empleado información
    """
)
"""Of what work and documents speak, besides what is understood everywhere."""
HEADS: Final = word_set(
    "id name nr mine computed calculated obtained actual got unit description round rounds item items index pass data "
    "iteration iterations loop repeat call"
)
"""Words in the head of a column or in a key of the writer's own, beside those that are understood everywhere."""
LABELS: Final = word_set("item items name names description product unit units step operation instruction formula")
"""What heads a column of names and descriptions."""
_EXCLUDED: Final = word_set(
    "sample mark marks people population error tolerance estimate check test withdraw copy correct "
    "compare cancel refund question odds replace bill grant seed"
)
"""Quantities and actions of procedures that say something else of a claim."""
OPERATIONS: Final = word_set(
    "add subtract multiply divide double triple halve sum convert compute calculate determine find derive figure "
    "evaluate work deduct compare comparing adding subtracting multiplying dividing doubling tripling"
)
CHANGING: Final = word_set(
    "half third fourth quarter square cube root multiple minus plus times percent percentage twice thrice double "
    "triple halve negative inverse reciprocal opposite about like than below under above exceed exceeds excluding "
    "exclude"
)
NO_LABEL: Final = word_set(
    "before input inputs will help hope problem task instruction request required requested wanted needed asked"
    " loss deficit debit"
)
"""What is none of the writer's own claims as a label by itself."""
ASKING: Final = word_set("is are was were does did do can must shall will has have had am")
_QUALIFYING: Final = word_set(
    """
    was were be being been had before until once only when while under above over below out down again must shall
    last more less fewer larger smaller greater lower higher longer shorter additional extra new same odd true per
    fixed short way about around between still up part hundred hundreds thousand thousands million tens
    """
)
"""Words that are understood in front of a claim, and say behind it when, how far or of what else it holds."""
_DOUBTING: Final = word_set(
    """
    gross net annual monthly weekly daily hourly flat every half third quarter fourth twice thrice own problem point
    base power root place field assistant user update change leave save spend ask want request require need help
    please include exclude contain represent correspond refer write read call take know see loss limit
    """
)
"""The same of words that say nothing of the kind where the procedure itself has them."""


def is_understood(word: str, own: frozenset[str]) -> bool:
    """Whether a word is understood in front of a claim; `own` are the words of the procedure, in small letters."""
    lowered = word.lower().replace("\u2019", "'")
    if lowered in own or lowered in _UNDERSTOOD or word in CODES:
        return True
    if any(base in _INFLECTED or base in own for base in _bases(lowered)):
        return lowered not in _EXCLUDED
    if lowered.startswith(("l'", "d'")):
        return is_understood(word[2:], own)
    if lowered.endswith("'s") or lowered.endswith("s'"):
        return is_understood(word[:-2], own) and lowered[:-2] not in NOUNS
    return word.islower() and len(word) > 1 and factors_of(word) is not None


def changes_nothing(word: str, own: frozenset[str]) -> bool:
    """Whether a word is understood behind a claim, too, where some words would say when or of what it holds."""
    lowered = word.lower()
    forms = {lowered, *_bases(lowered)}
    # In this order: a word that qualifies does so in every procedure, one that only may does not in its own.
    if lowered in _QUALIFYING or not forms.isdisjoint(_EXCLUDED):
        return False
    if not forms.isdisjoint(own):
        return True
    if not forms.isdisjoint(_DOUBTING):
        return False
    return not forms.isdisjoint(_STEADY) or (forms.isdisjoint(VERBS) and is_understood(word, own))


def is_own(word: str, own: frozenset[str]) -> bool:
    """Whether a word, or what it is a form of, is one of the procedure's."""
    return not own.isdisjoint((word.lower(), *_bases(word.lower())))


def is_of_work(word: str, *, documents: bool) -> bool:
    """Whether a word tells of work on a task: ``extracted``; with its `documents`, also ``deadlines``."""
    forms = {word.lower().replace("\u2019", "'"), *_bases(word.lower().removesuffix("'s"))}
    return not forms.isdisjoint(_OF_WORK) or (documents and not forms.isdisjoint(_OF_DOCUMENTS))


def is_nothing(text: str) -> bool:
    """Whether a cell or an entry says that there is nothing to say."""
    return not text.strip() or text.strip().lower().rstrip(".") in _NOTHING


def is_verb(word: str) -> bool:
    """Whether a word may be the verb of a sentence that tells what happens: ``has``, ``sells``, ``paid``."""
    lowered = word.lower()
    return lowered in _FINITE or lowered in _DOING or any(base in _DOING for base in _bases(lowered))


def may_act(word: str) -> bool:
    """Whether a word may be the verb of a sentence about work, in any of the languages that are understood."""
    return is_verb(word) or is_finite(word) or not _WORKING.isdisjoint((word.lower(), *_bases(word.lower())))


def is_finite(word: str) -> bool:
    """Whether a word is the verb of a sentence for certain."""
    return word.lower() in _FINITE | _FINITE_ELSEWHERE


def _bases(word: str) -> Iterator[str]:
    """What a word may be a form of."""
    for end, instead in (("s", ""), ("es", ""), ("ies", "y"), ("d", ""), ("ed", ""), ("ied", "y"), ("ing", ""),
                         ("ing", "e"), ("n", ""), ("ly", "")):  # fmt: skip
        base = word.removesuffix(end) + instead
        if word.endswith(end) and len(base) > 2:
            yield base
            if not instead and base[-1] == base[-2:-1]:
                yield base[:-1]


POINTING_BACK: Final = word_set(
    """
    it its itself it's this that that's these those which such who whom whose here there former latter other others
    another same one ones else i i'm i've me my mine myself you your yours everyone everybody someone somebody
    anyone nobody everything nothing something above below earlier previous previously last yesterday today ago old
    until if only been not no never none neither nor without unless should would could might may must cannot rather
    instead step steps line value result answer figure claim working calculation computation solution statement
    reply text digit digits sign mistake mistakes error errors typo typos slip slips fault faults flaw flaws doubt
    doubts true false problem problems issue issues objection objections complaint complaints caveat caveats bug
    bugs wrong incorrect sense operand operands input inputs factor factors
    """
)
"""Words of a sentence that may speak of what stands before it, or date, deny or doubt it."""
MEASURES: Final = (
    QUANTITIES - _EXCLUDED - word_set("result results answer answers step steps value values output work term")
)
"""What a label may say of anything: ``Number of books``."""
_UNDERSTOOD: Final = (
    _GRAMMAR | NOUNS | _ADJECTIVES | _ACTIONS | QUANTITIES | VERBS | _ELSEWHERE | set(WORDS)
) - _EXCLUDED
_INFLECTED: Final = (NOUNS | _ACTIONS | QUANTITIES | VERBS) - _EXCLUDED
_STEADY: Final = _GRAMMAR | NOUNS | _ADJECTIVES | _ACTIONS | QUANTITIES | OPERATIONS | _ELSEWHERE
_OF_WORK: Final = _WORKING | _OF_GRAMMAR
_DOING: Final = _ACTIONS | VERBS
_FINITE: Final = word_set("is are was were has have had will")
_FINITE_ELSEWHERE: Final = word_set(
    """
    here's i've we've there's that's i'll we'll isn't aren't wasn't weren't ist sind wird werden hat habe haben steht
    stehen liest zeigt stammt kommt komme enthält kostet beträgt ergibt lautet rechne rechnen berechne berechnen
    multiplizieren addieren subtrahieren dividieren erhält erhalten setzt est sont ont vaut donne contient indique
    provient coûte couvre multiplions ajoutons soustrayons divisons calculons obtient obtenons procédons es son está
    están hay tiene fue contiene aparece cuesta cubre muestro muestra multiplicamos sumamos restamos dividimos
    calculamos obtenemos tenemos procedemos
    """
)
BEING: Final = word_set(
    "is are was were be been being isn't aren't wasn't weren't it's that's there's ist sind war waren wird werden wurde"
    " est sont était être es son fue era está están"
)
"""Words by which a sentence says what something is."""
LEADING: Final = word_set(
    "the a an this that these those each every your my our their its his her of for to by in on no any"
)
"""Behind which a word is no verb of a sentence."""
