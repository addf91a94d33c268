"""An invoice is audited: its lines are read, every amount is worked out again, and the totals are reconciled.

python examples/invoice_audit.py [MODEL]

No key is needed. The invoice has one line that was multiplied wrongly; its totals add up.
"""

from __future__ import annotations

import sys
from pathlib import Path

from stepguard import Guard, Procedure
from stepguard.testing import SimulatedModel, Slips

INVOICE = """\
Article        Quantity   Price    Amount
Toner 12A          3      49.90    149.70
Paper A4          20       4.35     87.00
Desk lamp          2      38.50     87.00

Net    323.70 EUR
Tax     61.50 EUR
Amount due  385.20 EUR
"""
LINES = [
    {"article": "Toner 12A", "quantity": 3, "price": "49.90", "amount": "149.70"},
    {"article": "Paper A4", "quantity": 20, "price": "4.35", "amount": "87.00"},
    {"article": "Desk lamp", "quantity": 2, "price": "38.50", "amount": "87.00"},
]
READ = {"lines": LINES, "net": "323.70 EUR", "tax": "61.50 EUR", "gross": "385.20 EUR"}


def main() -> None:
    """Audit it, and print what differs."""
    procedure = Procedure.load(Path(__file__).with_suffix(".procedure"))
    simulated = SimulatedModel(seed=6, slips=Slips(wrong_value=0.15, systematic=0.0), answers=READ)
    guard = Guard(sys.argv[1] if len(sys.argv) > 1 else simulated, seed=6)
    result = guard.run(procedure, {"invoice": INVOICE})
    print(f"{result.status}: {result.to_dict()['answer'] if result.problem is None else result.problem}")
    print(f"{result.completed} steps in {result.usage.calls} calls; as strong as {result.strength}")


if __name__ == "__main__":
    main()
