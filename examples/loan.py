"""A loan paid off over 20 months: 40 steps that build on each other, with the guard and without it.

python examples/loan.py

No key is needed: the same simulated model, which gets about one step in thirty wrong, carries out the 40 steps twice.
Unguarded it ends on a plausible wrong balance and does not know; guarded it ends on the right one, and says which
steps it had to ask again.
"""

from __future__ import annotations

from stepguard import Guard, Input, Procedure, Step
from stepguard.testing import SimulatedModel, Slips

MONTHS = 20
LOAN = {"loan": "12000.00", "monthly_rate": "0.45%", "payment": "628.70"}


def schedule() -> Procedure:
    """For every month its interest, rounded to cents, and the balance after the payment."""
    steps: list[Step] = []
    balance = "loan"
    for month in range(1, MONTHS + 1):
        steps.append(Step(f"interest_{month}", f"{balance} * monthly_rate", type="money(EUR)"))
        steps.append(Step(f"balance_{month}", f"{balance} + interest_{month} - payment", type="money(EUR)"))
        balance = f"balance_{month}"
    inputs = [Input("loan", "money(EUR)"), Input("monthly_rate", "percent"), Input("payment", "money(EUR)")]
    return Procedure(steps, inputs=inputs, name="loan")


def main() -> None:
    """Carry it out unguarded and guarded, and compare."""
    procedure = schedule()
    model = SimulatedModel(seed=8, slips=Slips(wrong_value=0.03, wrong_operand=0.01, systematic=0.0))

    unguarded = Guard(model, observe=True, seed=8).run(procedure, LOAN)
    wrong = [record.occurrence.step for record in unguarded.steps if record.deviations]
    print(f"unguarded: {unguarded.answer} EUR left, {unguarded.usage.calls} calls; nobody says that it went wrong")
    print(f"           at {', '.join(wrong)}")

    guarded = Guard(model, seed=8).run(procedure, LOAN)
    asked_again = {record.occurrence.step: record.tries for record in guarded.steps if record.tries > 1}
    print(f"guarded:   {guarded.answer} EUR left, {guarded.usage.calls} calls, {guarded.status}")
    print(f"           asked again: {', '.join(asked_again)}")


if __name__ == "__main__":
    main()
