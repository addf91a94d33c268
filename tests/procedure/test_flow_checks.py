"""What is wrong with a procedure on some way through it is found when it is made; what is right on every way is not."""

from __future__ import annotations

import re

import pytest

from stepguard import Procedure, Step
from stepguard.errors import ProcedureError
from stepguard.language.terms.lookup_tables import Table
from stepguard.procedure import ForEach, If

HEAD = """record Item:
  what: text
  price: money(EUR)
procedure twice:
  inputs: v: money(EUR), rate: percent = 19%
  w: money(EUR) = v * (1 + rate)
  answer: w
procedure all_twice:
  inputs: vs: list of money(EUR)
  for each v in vs:
    w: number = v * 2
procedure scaled:
  inputs: v
  w = v * 2
  answer: w
procedure several:
  inputs: vs: list of number
  w = sum of vs
table fee: zone: text, n: integer -> money(EUR)
  DE, up to 5: 1
  otherwise, otherwise: 2
inputs: x, n: integer, f: boolean, xs: list of number, items: list of Item, eur: money(EUR), usd: money(USD), day: date
"""

REFUSED = """
== 1: step 'a' reads 'b', which only a later step sets, or one of another block
a = b + 1
b = x
== 1: step 'a' reads its own value
a = a + 1
== 1: step 'a' reads 'xx', which is no input and set by no step: did you mean 'x'?
a = xx + 1
== 1: step 'a' reads 'quite_other', which is no input and set by no step.
a = quite_other + 1
== 1: did you mean 'true'?
a: boolean = True
== 1: did you mean 'false'?
a: boolean = f or FALSE
== 2: unreachable answer: no step sets 'bb' and it is no input
a = 1
answer: bb
== 1: step 'a' reads 'y'
a: text = "Say it." (reads y)
y = 1
== 1: step 'a' reads the table 'fee' in words: let a step look its row up
a: text = "Say it." (reads fee)
== 1: the table 'fee' in words: let a step look its row up before, such as `row = fee[...]`
a: text = "Say {fee} of it." (reads x)
== 1: the table 'fee' in words
a: text = "Say { fee[x] }."
== 1: the table 'fee' in words
a: text = ask person "Is {fee} right?"
== 1: the table 'fee' in words
a = x + 1  "what {fee} is"
== 1: item of the list 'xs' is told by one whole number, counted from 0, and 'eur' is money(EUR, 2, half_up)
a = xs[eur]
== 2: item of the list 'xs' is told by one whole number, counted from 0, and 'twice_of' is money(EUR
twice_of = eur * 2
a = xs[twice_of]
== 1: step 'a': '{x}' in '{x} more' would stand there as it is
a: text = "{x} more" if f else "less"
== 1: the condition of `if`: '{ x }' in '{ x }' would stand there as it is
if "a" == "{ x }":
  a = 1
== 1: '{x}' in 'c {x}' would stand there as it is
a: boolean = "b" in ["b", "c {x}"]
== 3: which is not set where no condition of the `if` holds, which has no `else` (`if` in line 23)
if f:
  a = 1
b = a
== 5: step 'c' reads 'a', which is not set in the `else` branch (`if` in line 23)
if f:
  a = 1
else:
  b = 1
c = a
== 7: step 'c' reads 'a', which is not set where `x > 1` holds (`if` in line 23)
if f:
  a = 1
else if x > 1:
  b = 1
else:
  a = 2
c = a
== 6: which is not set where no condition of the `if` holds, which has no `else` (`if` in line 24)
if f:
  if x > 1:
    a = 1
else:
  a = 2
c = a
== 4: which is not set where no condition of the `if` holds
for each y in xs:
  if f:
    a = y
b = sum of a
== 4: which is not set where no condition of the `if` holds
repeat at most 2 times until f:
  if f:
    a = 1
b = a
== 4: step 'b' reads 'a', which only a later step sets, or one of another block
if f:
  a = 1
else:
  b = a
== 3: step 'b' reads 'y', which is no input and set by no step
for each y in xs:
  a = y
b = y
== 1: the condition of `repeat` reads 'b'
repeat at most 2 times until b > 1:
  a = 1
== 1: step 'a' reads 'b'
a = call scaled(v=b)
b = 1
== 1: step 'a' reads 'b'
a: text = tool pay(amount=b)
b = 1
== 2: duplicate id: 'a' is already set above, and only `repeat` sets one again, once a round
a = 1
a = 2
== 1: duplicate id: 'x' is already set above
x = 1
== 1: 'fee' is a table, and no step can set it
fee = 1
== 2: duplicate id: 'a'
a = 1
a = call scaled(v=1)
== 5: duplicate id: 'a'
if f:
  a = 1
else:
  a = 2
a = 3
== 3: 'a' is already set above on some ways, not where no condition of the `if` holds
if f:
  a = 1
a = 3
== 3: duplicate id: 'a'
a = 1
if f:
  a = 2
== 2: duplicate id: 'x'
for each y in xs:
  x = 1
== 3: duplicate id: 'a'
for each y in xs:
  a = 1
a: list of number = xs
== 4: duplicate id: 'a'
for each y in xs:
  a: number = 1
for each y in xs:
  a: number = 2
== 1: 'x' has a value already: call the item of `for each` otherwise
for each x in xs:
  a = 1
== 1: 'fee' has a value already
for each fee in xs:
  a = 1
== 3: 'a' has a value already
if f:
  a = 1
for each a in xs:
  b = 1
== 2: duplicate id: 'y'
for each y in xs:
  y = 1
== 4: duplicate id: 'a'
a = 1
repeat at most 2 times until f:
  a = 2
  a = 3
== 6: 'b' is already set above on some ways
a = 1
repeat at most 2 times until f:
  if f:
    a = 2
    b = 2
  b = 3
== 5: duplicate id: 'a'
a = 1
repeat at most 2 times until f:
  if f:
    a = 2
  a = 3
== 5: duplicate id: 'a'
a = 1
repeat at most 2 times until f:
  repeat at most 2 times until f:
    a = 2
  a = 3
== 3: duplicate id: 'a'
repeat at most 2 times until f:
  a = 2
a = 3
== 4: duplicate id: 'a'
a = 1
repeat at most 2 times until f:
  for each y in xs:
    a = 2
== 4: duplicate id: 'x'
for each y in xs:
  b = 1
  repeat at most 2 times until f:
    x = 2
== 3: duplicate id: 'y'
for each y in xs:
  repeat at most 2 times until f:
    y = 2
== 3: 'a' is number and becomes text in a loop
a = 1
repeat at most 2 times until f:
  a: text = "b" if f else "c"
== 1: 'a' is number and text in different branches
if f:
  a = 1
else if x > 1:
  a = 2
else:
  a: text = "b" if f else "c"
== 1: 'a' is money(EUR, 2, half_up) and money(USD, 2, half_up) in different branches
if f:
  a: number = eur * 2
else:
  a: number = usd * 2
== 1: in different branches: convert one
if f:
  a: number = eur * 2
else if x > 1:
  a: number = 1
else:
  a: number = usd * 2
== 5: mixes currencies: 'a' is in EUR, and 'usd' is in USD
if f:
  a: number = eur * 2
else:
  a: number = 1
b = a + usd
== 2: mixes currencies: 'a' is in EUR, and 'usd' is in USD
a = eur * 2
b = a + usd
== 3: two currencies
for each y in items:
  a: number = y.price * 2
b = (sum of a) + usd
== 2: two currencies
a: list of number = [eur, 2]
b = (sum of a) + usd
== 2: two currencies
a: list of number = [eur * 2]
b = (sum of a) + usd
== 3: mixes currencies: 'a' is in EUR, and 'usd' is in USD
repeat at most 2 times until f:
  a: number = eur * 2
b = a + usd
== 4: two currencies
for each y in items:
  for each z in items:
    a: number = z.price * 2
b = a[0][0] + usd
== 2: 'b' mixes currencies
a = call twice(v=eur)
b = a + usd
== 2: two currencies: 'sum of a' is in EUR
a = call all_twice(vs=[eur])
b = (sum of a) + usd
== 2: 'b' mixes currencies
a = call scaled(v=eur)
b = a + usd
== 4: two currencies: 'r.n' is in EUR, 'usd' in USD
record Bare:
  n: number
r: Bare = {n: eur * 2}
b = r.n + usd
== 6: two currencies: 'a.s[0]' is in EUR, 'usd' in USD
procedure both:
  inputs: v
  s: list of number = [v * 2]
  answer: {s, v}
a = call both(v=eur)
b = a.s[0] + usd
== 4: step 'a': in both, step 'w' mixes currencies: 'v' is in EUR, and 'u' is in USD
procedure both:
  inputs: v, u
  w = v + u
a = call both(v=eur, u=usd)
== 1: the condition of `if` is a truth value, and 'x' is number: compare it
if x:
  a = 1
== 1: the condition of `if` is a truth value, and 'day' is date
if f:
  a = 1
else if day:
  a = 1
== 1: the condition of `repeat` is a truth value, and 'n' is integer
repeat at most 2 times until n:
  a = 1
== 1: `for each` goes through a list, and 'x' is number
for each y in x:
  a = 1
== 1: step 'a': 'day + day' adds 'day'
a = day + day
== 1: step 'a' is number, and its expression gives date: declare `a: date`.
a: number = day
== 1: declare `a: duration`, or divide it by `1 days`
a: number = day - day
== 1: step 'a' is date, and its expression gives duration: declare `a: duration`.
a: date = day - day
== 1: step 'a' is boolean, and its expression gives duration: declare `a: duration`
a: boolean = day - day
== 1: step 'a' is text, and its expression gives duration
a: text = day - day
== 1: step 'a': its expression gives a number, which is no text: texts are joined by a function
a: text = x * 3
== 1: step 'a' is number, and its expression gives list of number: declare `a: list of number`
a: number = xs
== 1: step 'a' is list of text, and its expression gives list of number
a: list of text = xs
== 1: step 'a' is money(EUR, 2, half_up), and its expression gives money(USD, 2, half_up)
a: money(EUR) = min(usd, 5 USD)
== 1: step 'a' is list of money(EUR, 2, half_up)
a: list of money(EUR) = [usd]
== 1: 'smal' is none of the options
a: one_of(big, small) = "smal"
== 2: 'smal' is none of the options
a: one_of(big, small) = "small"
b: boolean = a == "smal"
== 1: step 'a' gives twice 'v' as money(USD, 2, half_up), and it is money(EUR, 2, half_up) there
a = call twice(v=usd)
== 1: step 'a' gives scaled 'v' as date, and it is number there
a = call scaled(v=day)
== 1: step 'a' gives several 'vs' as list of date
a = call several(vs=[day])
== 1: step 'a': 'day + day' adds
a: text = tool pay(amount=day + day)
== 2: the answer: 'day + day' adds
a = 1
answer: day + day
== 1: is a table: say which row
a: number = fee
"""


def sections(table: str) -> list[tuple[str, str]]:
    """What stands behind `==`, and the lines below it."""
    parts = (part.partition("\n") for part in table.removeprefix("\n== ").split("\n== "))
    return [(head, body) for head, _, body in parts]


@pytest.mark.parametrize(("head", "text"), sections(REFUSED))
def test_what_cannot_be_right_is_refused_with_its_line(head: str, text: str) -> None:
    """The message says the variable, the way on which it is missing, and the remedy; the error has its step."""
    line, _, says = head.partition(": ")
    with pytest.raises(ProcedureError) as refused:
        Procedure.parse(HEAD + text)
    assert says in f"{refused.value.message}."
    step = re.match(r"step '(\w+)'", refused.value.message)
    assert step is None or refused.value.step == step[1]
    assert refused.value.line == HEAD.count("\n") + int(line)


ACCEPTED = """
== number
if f:
  a = 1
else if x > 1:
  a = 2
else:
  a = 3
b = a
== number
a = 1
repeat at most 2 times until a > 1:
  a = a + 1
b = a
== number
repeat at most 2 times until x > 1:
  x = x + 1
b = x
== number
a = 1
repeat at most 2 times until a > 1:
  if f:
    a = a + 1
  else:
    a = a + 2
b = a
== number
a = 1
repeat at most 2 times until a > 1:
  if f:
    a = a + 1
b = a
== number
a = 1
repeat at most 2 times until f:
  b = 1
  repeat at most 2 times until f:
    a = 2
    b = b + 1
c = a
== number
a = 1
repeat at most 2 times until f:
  a = 2
repeat at most 2 times until f:
  a = 3
b = a
== number
for each y in xs:
  b = 1
  repeat at most 2 times until f:
    b = b + y
c = sum of b
== list of list of number
for each y in xs:
  for each w in xs:
    b = y * w
answer: b
== list of number
for each y in xs:
  a = 1
for each y in xs:
  b = 2
== number
if f:
  for each y in xs:
    a: number = 1
else:
  for each y in xs:
    a: number = 2
b = sum of a
== text
a: text = "{other}" if f else "x"
== number
if f:
  a: number = eur * 2
else:
  a: number = 1
b: number = a + eur
== number
if f:
  a: number = 1
else:
  a: number = eur * 2
b: number = a * 2
== money(EUR, 2, half_up)
a: money(EUR) = usd * x
== money(EUR, 2, half_up)
a: money(EUR) = usd * 2
== list of money(EUR, 2, half_up)
a: list of money(EUR) = [usd * 2]
== money(EUR, 2, half_up)
a = call twice(v=usd * 2)
== number
a = call scaled(v=eur * 2)
b: number = a * 2
== number
a = call several(vs=[1, 2])
== percent
a: percent = eur / (eur + 1)
== money(EUR, 2, half_up)
a: money(EUR) = fee["a", 3]
== one_of(big, small)
a: one_of(big, small) = "small"
== number
a: number = (day - day) / 1 day
== number
a = x * 0
== list of number
a: list of number = xs
b: list of number = a
== list of Item
a = 1
answer: {first: a, all: items}.all
"""


@pytest.mark.parametrize(("kind", "text"), sections(ACCEPTED))
def test_what_is_right_on_every_way_is_a_procedure(kind: str, text: str) -> None:
    """And its answer has the type that it has on all of them."""
    assert str(Procedure.parse(HEAD + text).answer_type) == kind


def test_a_table_and_an_input_have_two_names() -> None:
    """A reader could not say which of them is meant."""
    fee = Table("fee", {"zone": "text"}, "number", {"a": 1})
    with pytest.raises(ProcedureError, match="'fee' is an input and a table: call one of them otherwise"):
        Procedure([Step("a", "fee + 1")], inputs=["fee"], tables=[fee])
    assert Procedure([Step("a", "fees + 1")], inputs=["fees"], tables=[fee]).answer == "a"


def test_a_procedure_that_is_no_text_has_no_lines() -> None:
    """The way on which a variable is missing is named without them."""
    with pytest.raises(ProcedureError) as refused:
        Procedure([If([("x > 1", [Step("a", "1")])]), Step("b", "a")], inputs=["x"])
    assert str(refused.value) == (
        "step 'b' reads 'a', which is not set where no condition of the `if` holds, which has no `else`: "
        "set it there, too"
    )
    assert refused.value.line is None
    with pytest.raises(ProcedureError, match="`for each` goes through a list, and 'x' is number"):
        Procedure([ForEach("y", "x", [Step("a", "1")])], inputs=["x"])


def test_calls_in_calls_are_checked_once_for_each_currency() -> None:
    """Forty procedures that call each other twice are no trillion of checks, and the amount is in euros at the end."""
    inner = "procedure p0:\n  inputs: v\n  w = v * 2\n"
    for number in range(1, 40):
        twice = "".join(f"  {each} = call p{number - 1}(v=v)\n" for each in "ab")
        inner += f"procedure p{number}:\n  inputs: v\n{twice}  w = a + b\n"
    with pytest.raises(ProcedureError, match="'y' mixes currencies: 'x' is in EUR"):
        Procedure.parse(f"inputs: e: money(EUR), u: money(USD)\n{inner}x = call p39(v=e)\ny = x + u")
