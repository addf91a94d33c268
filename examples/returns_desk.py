"""A returns desk: windows, rates and postage in tables, exceptions as choices, every return on a list settled.

python examples/returns_desk.py [MODEL]

No key is needed: without a model's name a simulated one answers, and slips now and then. The same policy in words is
the family ``returns_desk`` of the benchmark: as words it is judgement, as tables and choices every step is provable.
"""

from __future__ import annotations

import sys
from pathlib import Path

from stepguard import Guard, Procedure
from stepguard.testing import SimulatedModel, Slips

RETURNS = [
    {
        "item": "electronics", "condition": "opened", "member": True, "bought": "2026-01-05",
        "returned": "2026-02-04", "price": "320.50", "weight": "1.5", "longest": 40,
    },
    {
        "item": "furniture", "condition": "damaged", "member": False, "bought": "2026-01-05",
        "returned": "2026-02-24", "price": "500.00", "weight": "25.0", "longest": 140,
    },
]  # fmt: skip


def main() -> None:
    """Settle two returns."""
    procedure = Procedure.load(Path(__file__).with_suffix(".procedure"))
    simulated = SimulatedModel(seed=5, slips=Slips(wrong_value=0.15, systematic=0.0))
    guard = Guard(sys.argv[1] if len(sys.argv) > 1 else simulated, seed=5)
    result = guard.run(procedure, {"returns": RETURNS, "paid": "100.00"})
    for record in result.steps:
        caught = "".join(f"   caught: {deviation.kind}" for deviation in record.deviations)
        print(f"  {record.occurrence!s:<20} {record.value!s:<20}{caught}")
    print(f"{result.status}: {result.to_dict()['answer'] if result.problem is None else result.problem}")


if __name__ == "__main__":
    main()
