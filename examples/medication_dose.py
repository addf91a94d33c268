"""A dose worked out step by step, where a wrong number must never be handed on.

python examples/medication_dose.py

No key is needed: the models are simulated. The first one slips and is caught. The second one gets the same step wrong
every time it is asked: the run abstains, names the step, and there is no volume to draw up. The figures are made up;
this is no medical advice.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path

from stepguard import Claim, Guard, Procedure, Result, Step
from stepguard.errors import StepNotVerified
from stepguard.language.values import Value
from stepguard.testing import Plant, SimulatedModel

PATIENT = {"weight_kg": "17.5", "mg_per_kg": 15, "most_mg": 500, "most_mg_per_kg_a_day": 60, "doses_a_day": 4,
           "mg_per_ml": 24}  # fmt: skip
MOST_ML = 15


def fits_the_syringe(step: Step, values: Mapping[str, Value], claim: Claim) -> bool:
    """A check of our own, beside the exact one: no volume beyond what the syringe holds."""
    volume = values[step.id]
    return isinstance(volume, Decimal) and volume <= MOST_ML


def load() -> Procedure:
    """The procedure beside this file, with our own check on its last step."""
    loaded = Procedure.load(Path(__file__).with_name("medication_dose.yaml"))
    *steps, last = loaded.steps
    checked = Step(last.id, last.expression, instruction=last.instruction, type=last.type, checks=[fits_the_syringe])
    return Procedure([*steps, checked], inputs=loaded.inputs, name=loaded.name)


def show(title: str, result: Result) -> None:
    """Print what was verified, what was caught, and what is handed on."""
    print(title)
    for record in result.steps:
        caught = f"   after {', '.join(each.kind for each in record.deviations)}" if record.deviations else ""
        print(f"  {record.occurrence.step:<10} = {record.value!s:>6}{caught}")
    try:
        result.raise_for_status()
        print(f"  draw up {result.answer} ml")
    except StepNotVerified as error:
        print(f"  NOTHING IS HANDED ON: {error}")


def main() -> None:
    """Run it twice: with a model that slips, and with one that insists on a wrong number."""
    procedure = load()
    with SimulatedModel(plants=[Plant("dose_mg", "wrong_value"), Plant("marks", "unfaithful_work")]) as slips:
        show("A model that slips:", Guard(slips).run(procedure, PATIENT))
    insists = SimulatedModel(plants=[Plant("marks", "wrong_value", times=20)])
    show("A model that insists:", Guard(insists).run(procedure, PATIENT))


if __name__ == "__main__":
    main()
