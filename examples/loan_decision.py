"""A loan decision: a rate by purpose and score, an exception for loyal customers, an officer for what is borderline.

python examples/loan_decision.py [MODEL]

No key is needed. The second application is decided by nobody at first: the run waits, and goes on when the officer has
answered.
"""

from __future__ import annotations

import sys
from datetime import timedelta
from pathlib import Path

from stepguard import Guard, Procedure
from stepguard.testing import SimulatedModel, Slips

GOOD = {
    "amount": "9000.00", "months": 36, "income": "3200.00", "score": 710,
    "customer_for": timedelta(days=2400), "purpose": "car",
}  # fmt: skip
BORDERLINE = GOOD | {"score": 480, "months": 48}


def main() -> None:
    """Decide two applications."""
    procedure = Procedure.load(Path(__file__).with_suffix(".procedure"))
    simulated = SimulatedModel(seed=2, slips=Slips(wrong_value=0.15, systematic=0.0))
    guard = Guard(sys.argv[1] if len(sys.argv) > 1 else simulated, seed=2)
    for name, application in (("good", GOOD), ("borderline", BORDERLINE)):
        run = guard.start(procedure, application)
        result = guard.drive(run)
        if result.status == "waiting":
            assert result.problem is not None
            print(f"{name}: waits for an officer: {result.problem.reason}")
            run.answer(str(result.problem.occurrence), value=True)
            result = guard.drive(run)
        print(f"{name}: {result.status}: {result.to_dict()['answer'] if result.problem is None else result.problem}")


if __name__ == "__main__":
    main()
