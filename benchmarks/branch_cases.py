"""Procedures with decisions and their cases, for ``branches.py``: what is to be done, inputs, and the right answers.

========  ==========================================================================================================
returns   a returns desk: windows, rates and postage in tables, exceptions as choices (``examples/returns_desk``)
claims    an expense claim: the items are read from a text, the rest is rules (``examples/expense_claim``)
doses     doses with units: a table of rates, a maximum, a strength, an interval by clearance
deadlines letters answered in time or late, by working days, with a fee for those that were late
========  ==========================================================================================================

The right answers come from plain Python in this file, which shares no code with the package.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path
from typing import Final

from stepguard import Procedure

__all__ = ["DESKS", "Case", "Desk"]

_EXAMPLES: Final = Path(__file__).parent.parent / "examples"
_CENT: Final = Decimal("0.01")


@dataclass(frozen=True)
class Case:
    """The inputs of one run, and the right answer as a number without its unit."""

    inputs: Mapping[str, object]
    answer: Decimal


@dataclass(frozen=True)
class Desk:
    """A procedure, its cases by seed and by how many things are on the list, and what its answer is called in words."""

    text: str
    make: Callable[[random.Random, int], Case]
    asked: str

    @property
    def procedure(self) -> Procedure:
        """What is to be run."""
        return Procedure.parse(self.text)

    def case(self, seed: int, size: int) -> Case:
        """The case of a seed."""
        return self.make(random.Random(f"branches:{seed}:{size}"), size)


def _days(chance: random.Random, limit: int, spread: int) -> int:
    """Every second one is on the last day or one day late."""
    return limit + chance.randint(0, 1) if chance.random() < 0.5 else chance.randint(1, limit + spread)


_WINDOWS: Final = {"book": 14, "clothing": 30, "electronics": 21, "furniture": 45}
_RATES: Final = {"unopened": 100, "opened": 80, "damaged": 50}
_POSTAGE: Final = {"small": 490, "medium": 990, "large": 2490}


def _returns(chance: random.Random, size: int) -> Case:
    paid = chance.randint(0, 50_000)
    total = Decimal(paid).scaleb(-2)
    made: list[dict[str, object]] = []
    for _ in range(size):
        item, condition, member = chance.choice([*_WINDOWS]), chance.choice([*_RATES]), chance.random() < 0.4
        window = _WINDOWS[item] + (10 if member else 0)
        days = _days(chance, window, 20)
        bought = date(2024, 1, 1) + timedelta(days=chance.randint(0, 700))
        weight, longest = Decimal(chance.randint(1, 300)).scaleb(-1), chance.randint(20, 160)
        price = Decimal(chance.randint(20_000, 90_000)).scaleb(-2)
        made.append({
            "item": item, "condition": condition, "member": member, "bought": bought, "price": price,
            "returned": bought + timedelta(days=days), "weight": weight, "longest": longest,
        })  # fmt: skip
        percent = 70 if (item, condition) == ("electronics", "opened") else _RATES[condition]
        percent -= 0 if days <= window else 30
        parcel = "large" if longest > 120 or weight > 20 else "small" if weight <= 2 else "medium"
        cents = _POSTAGE[parcel] // 2 if member else _POSTAGE[parcel]
        fee = Decimal(cents + (1500 if item == "furniture" else 0)).scaleb(-2)
        refund = price * percent / 100 - fee
        total += refund.quantize(_CENT, rounding=ROUND_HALF_UP)
    return Case({"returns": made, "paid": Decimal(paid).scaleb(-2)}, total)


_SPENT: Final = ("Hotel breakfast", "Taxi to the station", "Train, second class", "Dinner", "Parking", "Bus ticket")
_PEOPLE: Final = ("Ada Byron", "Paul Erdman", "Maria Keller", "Tom Brandt", "Ines Vogel")


def _claims(chance: random.Random, size: int) -> Case:
    """Cents differ between items, so that no two amounts are alike; the limit is above what can be claimed."""
    today = date(2026, 3, 1) + timedelta(days=chance.randint(0, 250))
    country = chance.choice(["DE", "FR", "PT"])
    daily = {"DE": Decimal(28), "FR": Decimal(35)}.get(country, Decimal(24))
    lines, total = [f"Applicant: {chance.choice(_PEOPLE)}"], Decimal(0)
    for what in chance.sample(_SPENT, size):
        age = _days(chance, 90, 60)
        amount = Decimal(chance.randint(600, 6500)).scaleb(-2)
        lines.append(f"{what:<20} {amount} EUR   {today - timedelta(days=age)}")
        total += min(amount, daily) if age <= 90 else 0
    inputs = {"claim": "\n".join(lines) + "\n", "country": country, "today": today, "limit": Decimal(1000)}
    return Case(inputs, total)


_DOSES: Final = """\
name: infusions

record Patient:
  weight: quantity(kg)
  adult: boolean
  clearance: integer
  drug: one_of(ardomycin, belocillin, carvoxime)

inputs:
  patients: list of Patient

table per_kg: drug -> quantity(mg/kg)
  ardomycin: 15 mg/kg
  belocillin: 40 mg/kg
  carvoxime: 8 mg/kg

table most: drug -> quantity(mg)
  ardomycin: 1200 mg
  belocillin: 3000 mg
  carvoxime: 600 mg

table strength: drug -> quantity(mg/ml)
  ardomycin: 50 mg/ml
  belocillin: 100 mg/ml
  carvoxime: 20 mg/ml

table hours: clearance: integer -> integer
  60 to 200: 8
  30 to 59: 12
  0 to 29: 24

for each p in patients:
  full: quantity(mg) = p.weight * per_kg[p.drug]
  wanted: quantity(mg) = full if p.adult else full * 80%
  dose: quantity(mg) = min(wanted, most[p.drug])
  volume: quantity(ml) = dose / strength[p.drug]
  times: integer = 24 / hours[p.clearance]
  daily: quantity(ml) = volume * times
total: quantity(ml) = sum of daily
answer: total
"""
_DRUGS: Final = {"ardomycin": (15, 1200, 50), "belocillin": (40, 3000, 100), "carvoxime": (8, 600, 20)}


def _doses(chance: random.Random, size: int) -> Case:
    patients: list[dict[str, object]] = []
    total = Decimal(0)
    for _ in range(size):
        drug, adult = chance.choice([*_DRUGS]), chance.random() < 0.6
        weight = Decimal(chance.randint(400, 1100) if adult else chance.randint(120, 450)).scaleb(-1)
        clearance = chance.choice([chance.randint(10, 130), 29, 30, 59, 60])
        patients.append({"weight": f"{weight} kg", "adult": adult, "clearance": clearance, "drug": drug})
        rate, most, strength = _DRUGS[drug]
        dose = min(weight * rate * (10 if adult else 8) / 10, Decimal(most))
        total += dose / strength * (3 if clearance >= 60 else 2 if clearance >= 30 else 1)
    return Case({"patients": patients}, total)


_DEADLINES: Final = """\
name: deadlines

record Letter:
  kind: one_of(appeal, claim, notice)
  urgent: boolean
  received: date
  answered: date

inputs:
  letters: list of Letter

table allowed: kind -> integer
  appeal: 20
  claim: 10
  notice: 5

for each l in letters:
  days: integer = allowed[l.kind] - (3 if l.urgent else 0)
  due: date = l.received + days * 1 working days
  if l.answered > due:
    over: duration = l.answered - due
    fee: money(EUR) = min(over / 1 days * 2.50, 60)
  else:
    fee: money(EUR) = 0 * 1
total: money(EUR) = sum of fee
answer: total
"""
_ALLOWED: Final = {"appeal": 20, "claim": 10, "notice": 5}


def _deadlines(chance: random.Random, size: int) -> Case:
    letters: list[dict[str, object]] = []
    total = Decimal(0)
    for _ in range(size):
        kind, urgent = chance.choice([*_ALLOWED]), chance.random() < 0.3
        received = due = date(2026, 1, 5) + timedelta(days=chance.randint(0, 600))
        for _ in range(_ALLOWED[kind] - (3 if urgent else 0)):
            due += timedelta(days=1)
            while due.weekday() > 4:
                due += timedelta(days=1)
        answered = received + timedelta(days=_days(chance, (due - received).days, 20))
        letters.append({"kind": kind, "urgent": urgent, "received": received, "answered": answered})
        total += min(Decimal("2.50") * max((answered - due).days, 0), Decimal(60))
    return Case({"letters": letters}, total)


def _read(name: str) -> str:
    return (_EXAMPLES / f"{name}.procedure").read_text(encoding="utf-8")


DESKS: Final[Mapping[str, Desk]] = {
    "returns": Desk(_read("returns_desk"), _returns, "total"),
    "claims": Desk(_read("expense_claim"), _claims, "total"),
    "doses": Desk(_DOSES, _doses, "total in ml"),
    "deadlines": Desk(_DEADLINES, _deadlines, "total"),
}
"""Name -> what is decided there."""
