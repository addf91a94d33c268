"""A dilution series: for every concentration how much stock to take and how much solvent to add, with units.

python examples/dilution_series.py [MODEL]      (needs the extra: pip install "stepguard[units]")

No key is needed: without a model's name a simulated one answers.
"""

from __future__ import annotations

import sys
from pathlib import Path

from stepguard import Guard, Procedure
from stepguard.testing import SimulatedModel, Slips


def main() -> None:
    """Work the series out."""
    procedure = Procedure.load(Path(__file__).with_suffix(".procedure"))
    simulated = SimulatedModel(seed=3, slips=Slips(wrong_value=0.1, systematic=0.0))
    guard = Guard(sys.argv[1] if len(sys.argv) > 1 else simulated, seed=3)
    series = {"stock": "10 mg/ml", "wanted": ["5 mg/ml", "2 mg/ml", "500 ug/ml"], "volume": "4 ml"}
    result = guard.run(procedure, series)
    for record in result.steps:
        print(f"  {record.occurrence!s:<18} {record.value}")
    print(f"{result.status}: {result.to_dict()['answer'] if result.problem is None else result.problem}")


if __name__ == "__main__":
    main()
