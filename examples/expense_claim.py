"""An expense claim: items read from a text, a daily allowance looked up, old ones left out, a large one approved.

python examples/expense_claim.py [MODEL]

No key is needed: without a model's name a simulated one answers, and slips now and then.
"""

from __future__ import annotations

import sys
from pathlib import Path

from stepguard import Guard, Procedure
from stepguard.testing import SimulatedModel, Slips

CLAIM = """\
Applicant: Ada Byron
Hotel breakfast      12.50 EUR   2026-10-02
Taxi to the station  31.80 EUR   2026-10-02
Train, second class  64.00 EUR   2026-05-11
Dinner               22.40 EUR   2026-10-03
"""
ITEMS = [
    {"what": "Hotel breakfast", "amount": "12.50 EUR", "spent": "2026-10-02"},
    {"what": "Taxi to the station", "amount": "31.80 EUR", "spent": "2026-10-02"},
    {"what": "Train, second class", "amount": "64.00 EUR", "spent": "2026-05-11"},
    {"what": "Dinner", "amount": "22.40 EUR", "spent": "2026-10-03"},
]


def main() -> None:
    """Settle the claim, and print what came of every step."""
    procedure = Procedure.load(Path(__file__).with_suffix(".procedure"))
    simulated = SimulatedModel(
        seed=2, slips=Slips(wrong_value=0.2, systematic=0.0), answers={"applicant": "Ada Byron", "items": ITEMS}
    )
    guard = Guard(sys.argv[1] if len(sys.argv) > 1 else simulated, seed=2, person=lambda step, values: True)
    inputs = {"claim": CLAIM, "country": "DE", "today": "2026-10-20", "limit": "60.00"}
    result = guard.run(procedure, inputs)

    for record in result.steps:
        caught = "".join(f"   caught: {deviation.kind}" for deviation in record.deviations)
        print(f"  {record.occurrence!s:<18} {str(record.value)[:50]:<50} {record.strength}{caught}")
    print(f"{result.status}: {result.to_dict()['answer'] if result.problem is None else result.problem}")
    print(f"{result.usage.calls} calls")


if __name__ == "__main__":
    main()
