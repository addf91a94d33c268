"""The total of an invoice, with tax and rounding, worked out by a model one verified step at a time.

python examples/invoice.py

No key is needed: the model is simulated and gets about every third step wrong, so that the guard has work to do.
Put ``Guard("openai/gpt-4.1-mini")`` in its place to ask a real one.
"""

from __future__ import annotations

from pathlib import Path

from stepguard import Guard, Procedure
from stepguard.testing import SimulatedModel, Slips

ORDER = {"unit_price": "12.50", "quantity": 3, "discount": "10%", "shipping": "4.95", "tax_rate": "19%"}


def main() -> None:
    """Run the procedure beside this file and print how every step went."""
    procedure = Procedure.load(Path(__file__).with_name("invoice.txt"))
    model = SimulatedModel(seed=9, slips=Slips(wrong_value=0.3, systematic=0.0))
    result = Guard(model, segment=3, seed=9).run(procedure, ORDER)

    print(f"{procedure.name}, by a simulated model")
    for step, record in zip(procedure.steps, result.steps, strict=False):
        print(f"  {step.id:<10} = {record.value:>6}   {step.formula}")
        for deviation in record.deviations:
            print(f"  {'':<10}   caught: {deviation.kind}: {deviation.reason}")
    print(f"{result.status}: {result.answer if result.problem is None else result.problem}")
    print(f"{result.usage.calls} calls, {result.completed} of {result.total} steps")


if __name__ == "__main__":
    main()
