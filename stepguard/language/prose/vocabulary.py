"""Words that may change whether, when or how often a formula applies, and words that say what is worked out.

The first are refused beside a formula wherever they stand (see `stepguard.language.prose.descriptions`); the second are
what a plain description in free text begins with.
"""

from __future__ import annotations

from typing import Final


def word_set(words: str) -> frozenset[str]:
    """The words of a text, set apart by white space."""
    return frozenset(words.split())


CONTROL: Final = word_set(
    """
    if iff unless when whenever while whilst until till otherwise else elif elsif elseif endif whether where
    wherever except excepting excepted provided providing assuming suppose supposing assume presuming barring lest
    failing only solely exclusively merely optionally maybe perhaps possibly probably either or nor neither
    alternatively alternately instead rather sometimes occasionally seldom rarely often frequently usually normally
    generally typically ordinarily conditionally depending depends repeat repeats repeatedly repeating reiterate
    iterate iterates iteratively recursively looping each every everyone everybody any anyone anybody anything
    whoever whichever whatever who whose whom again anew once foreach never not no none cannot dont doesnt didnt
    isnt arent wasnt wont cant shouldnt mustnt neednt skip skips skipping ignore ignores ignoring disregard omit
    omits omitting forget avoid refrain refuse reject prevent forbid waive cancel abort halt goto jump resume undo
    revert rollback redo retry postpone defer suspend disable pretend imagine temporarily provisionally tentatively
    hypothetically unlikely likely todo tbd fixme wenn falls sofern sobald solange ansonsten sonst ausser außer nur
    nie niemals nicht kein keine keinen keiner jede jeder jedes jeden jedem alle wiederhole wiederholen wiederholt
    nochmals nochmal erneut mal bis waehrend während vielleicht eventuell entweder oder statt stattdessen
    überspringe überspringen ueberspringe ueberspringen auslassen ignoriere ignorieren abbrechen einmal zweimal
    dreimal vorausgesetzt ob si sinon sauf excepté excepte chaque tant jusque jusqu lorsque lorsqu quand pendant
    seulement uniquement jamais pas aucun aucune ne répéter repeter répète repete répétez repetez fois encore soit
    ou plutôt plutot ignorer ignorez sauter omettre facultatif cuando mientras hasta cada todos todas salvo excepto
    solo sólo solamente únicamente unicamente nunca jamás jamas ningún ninguna repetir repite repita veces vez
    quizás quizá quiza opcionalmente contrario omitir omite ignorar ignora saltar se quando finché ogni altrimenti
    mai soltanto ripeti ripetere volte als indien tenzij anders alleen elke nooit niet herhaal om när når annars
    varje hvis ellers jeśli inaczej jeżeli każdy если когда иначе пока каждый каждого каждой каждое только никогда
    не повторить повтори повторите раз кроме якщо коли кожен кожного тільки ніколи ggf gegebenenfalls evtl
    mindestens höchstens toutes tous éventuellement eventuellement jusquà mentre ripetete hver hvert aldrig aldri
    ikke inte endast powtórz tylko nigdy opakuj pokud každý nikdy ako ponovi dacă repetă jos toista vain kui jei
    jika ulangi hanya setiap nếu lặp mỗi kung eğer tekrarla αν όταν κάθε μόνο ποτέ επανάλαβε אם רק כל إذا اذا كل فقط
    لا غير
    """
)
"""Refused beside a formula wherever they stand. German, French, Spanish and some of other languages come last."""

DOUBTFUL: Final = word_set(
    """
    exception exceptions optional alternative alternatives conditional condition conditions conditioned case
    dependent contingent subject eligible applicable necessary appropriate desired discretion repeated repetition
    repetitions iteration iterations loop loops skipped ignored omitted disregarded unneeded unwanted forbidden
    prohibited exempt exempted waived cancels cancelled canceled cancelling void voided stop stops stopped exit
    break continue delayed suspended disabled inactive deactivated obsolete deprecated outdated superseded
    abandoned withdrawn struck deleted unused commented draft wip wrong incorrect invalid erroneous hypothetical
    example examples scenario scenarios variant variants branch branches facultativo opcional optionnel
    """
)
"""Refused likewise, unless it is a name of the step: ``Points for the wrong answers: lost = wrong * 2``."""

UNSPACED: Final = word_set(
    """
    如果 若 假如 假设 当 否则 除非 每 重复 不 别 只 仅 直到 跳过 忽略 可选 或 もし 場合 とき でなければ ごと 繰り返
    しない だけ まで スキップ 無視 任意 만약 경우 아니면 마다 반복 않 만 까지 건너 毎 重複 会员 會員 会員 限
    请勿 請勿 勿 如 當 倘 以外 例えば 매월 매주 매일 매년 회원 절대 예를 크면 작으면 이면 으면 하면 되면 라면
    """
)
"""The same in scripts that write no blanks between words: refused wherever they stand in a word."""

NAMED_UNSPACED: Final = word_set(
    """
    合計 合计 小計 小计 総計 總計 总计 総額 總額 总额 計算 计算 算出 求 税 稅 金額 金额 価格 價格 价 単価 費 费 料金
    数量 數量 割引 折扣 差 和 積 积 商 利息 利率 残高 余额 餘額 平均 比率 面積 面积 体積 体积 距離 距离 速度 時間
    时间 重量 結果 结果 点数 得分 足す 加 減 减 引 掛け 乘 乗 除 割る 合わせ 합계 총 소계 계산 세금 세액 금액 가격
    평균 잔액 이자 할인 더하 더한 빼 뺀 곱 나누 나눈 구하 결과 수량 비율 점수 면적 요금 비용 차이
    """
)
"""Parts of words in such scripts by which a plain description says what is worked out."""

LEADING: Final = word_set(
    """
    for on in at with without under over above below beneath beyond during after before between within upon besides
    amid among throughout given granted considering should were had is are was does did do has have can could may might
    would because since although though as but yes true false you
    bei für fuer ohne mit nach vor ab unter über ueber pour avec sans chez après avant para con sin tras bajo al
    """
)
"""Refused where a description begins: it would be a clause that says when, or for what, the formula applies."""

BOUNDING: Final = word_set(
    "not no never but or either whichever over above below under beyond than least most exceed exceeds"
)
"""What a formula with ``min`` or ``max`` says itself."""

TESTING: Final = BOUNDING | word_set("if whether any is are was were has have does eligible applicable")
"""What a formula whose value is a truth value says itself."""

LOOSE: Final = word_set(
    """
    for with without in on at during after before under over above below beyond between within per since excluding
    including less throughout among towards against w
    """
)
"""Beside a verb that changes something they may say for what it is changed: what follows must be of the step."""

UNSURE: Final = word_set(
    """
    is are was were be been being has have had does did do done can could may might must should would will shall
    ought which but although though however yet because since so unlike despite under over above below beyond
    exceed exceeds exceeding exceeded some several many few most various all both others
    """
)
"""Words of clauses and of quantities that a plain description in free text goes without."""

DEFINITE: Final = word_set("order trip purchase invoice account project room house loan whole")
"""What there is one of: ``for the order`` concerns the whole of it."""

GROUPS: Final = word_set(
    """
    others member members customer customers client clients child children kid kids adult adults senior seniors student
    students pensioner pensioners guest guests visitor visitors employee employees vip vips resident residents
    patient patients weekend weekends weekday weekdays holiday holidays monday mondays tuesday tuesdays wednesday
    wednesdays thursday thursdays friday fridays saturday saturdays sunday sundays night nights evening evenings
    morning mornings winter summer spring autumn christmas today tonight tomorrow yesterday later someday
    """
)
"""Whom, and when, a change concerns: beside a verb that changes something they must be of the step."""

PERSONS: Final = word_set(
    """
    manager managers supervisor supervisors boss approval approvals approve approved approves consent permission
    signature signatures colleague colleagues authorisation authorization
    """
)
"""Free text that names them says that somebody does something, which no formula does, unless they are of the step."""

JOINING: Final = word_set(
    """
    of to from by and or plus minus times than per off into onto as up down out back all both half twice thrice
    """
)
"""What may stand in front of a determiner beside verbs, quantities and prepositions: `half the fee`."""

SEQUENCE: Final = word_set("first firstly second secondly third next then now finally lastly last also please")
"""What may stand in front of a description."""

DETERMINERS: Final = word_set("the this that these its our their his her your my what how a an der die das le la el")

NAMING: Final = word_set(
    """
    work compute calculate determine find get derive figure obtain evaluate convert express see check test decide
    show state name read count measure estimate sum total average berechne bestimme ermittle calcule calculer
    calculez calcula calcular calcola halla hallar
    """
)
"""Verbs whose object is the value itself: whatever stands beside it says which value that is."""

VERBS: Final = NAMING | word_set(
    """
    add subtract take give set use let write record note know look call multiply divide double triple quadruple
    halve square cube raise lower round truncate negate invert convert apply deduct remove withdraw deposit pay
    charge bill credit debit reduce increase decrease discount tax scale shift split share combine join put bring
    turn make reserve refund return keep hold cap limit bound clip clamp floor cut drop mix fill draw pour pack buy
    sell spend earn save lend borrow owe transfer move carry start begin end finish copy repay grant award allow
    assign allot allocate distribute spread prorate annualize annualise compound accrue amortize amortise depreciate
    rescale normalize normalise weigh weight time subtotal net gross mark adjust correct update change enter insert
    plug substitute simplify expand factor solve sort order compare match append increment decrement accumulate
    collect gather merge express rewrite translate addiere subtrahiere multipliziere dividiere teile ziehe rechne
    nimm runde verdopple halbiere ajoute ajouter ajoutez additionne soustrais multiplie multipliez divise divisez
    prends suma sumar resta restar multiplica multiplicar dividir somma aggiungi sottrai moltiplica dividi bereken
    oblicz вычислить вычисли сложить beräkna hesapla
    """
)

QUANTITIES: Final = word_set(
    """
    total subtotal sum amount price cost costs fee fees tax taxes vat duty rate balance interest payment payments
    number count average mean median difference product quotient ratio share percentage percent value values result
    results answer discount margin markup profit loss revenue income turnover earnings salary wage wages pay bonus
    commission bill tip gratuity premium deposit principal capital loan debt mortgage instalment installment
    instalments rent budget expense expenses spending savings dividend yield return refund rebate allowance
    deduction surcharge shipping postage handling delivery freight insurance subscription quantity units unit items
    pieces boxes pages tickets seats rooms area volume length width height depth breadth perimeter circumference
    radius diameter distance speed velocity acceleration force energy power work heat mass weight density pressure
    temperature current voltage resistance frequency wavelength momentum torque concentration dose dosage time
    duration hours minutes seconds days weeks months years age score scores points mark marks grade grades sample
    variance deviation error tolerance factor multiple exponent root square cube half third quarter remainder growth
    reduction offset index level limit maximum minimum largest smallest threshold capacity load stock inventory
    supply demand output input step steps intermediate headcount population people mileage consumption usage
    efficiency slope gradient intercept angle coordinate sides coefficient constant term numerator denominator
    probability odds expectation calories protein sugar salt flour water fuel wood paint summe gesamtsumme
    zwischensumme gesamt betrag preis kosten steuer zinsen saldo rabatt anzahl ergebnis somme prix montant taxe taux
    solde remise résultat resultat precio importe impuesto descuento resultado totale prezzo somma importo
    bruttobetrag nettobetrag mehrwertsteuer iva tva bmi totaal som btw suma kwota сумма итог итого сума toplam
    المجموع summa belopp
    """
)
"""Nouns that name a value."""

PLAIN_ADVERBS: Final = word_set(
    """
    exactly simply directly correctly approximately roughly carefully equally properly separately jointly partly
    fully finally initially currently previously originally newly nearly firstly secondly thirdly lastly together
    respectively nightly monthly weekly daily yearly hourly quarterly early family assembly apply multiply supply
    reply july italy
    """
)
