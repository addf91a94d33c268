"""The refund desk with OpenAI's responses: function calls go through the gate of a policy.

python examples/refund_desk_responses.py

The client is a double, so that neither a key nor the package is needed; `openai.OpenAI()` has the same method.
"""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

from refund_desk import PAID, SCRIPT, desk_gate, get_order, refund

from stepguard.integrations.openai_responses_tools import answer_function_calls


def double() -> Any:
    """Something with ``responses.create`` that plays the agent."""
    left = list(enumerate(SCRIPT))

    def create(*, input: list[dict[str, Any]]) -> SimpleNamespace:
        if not left:
            return SimpleNamespace(output=[], output_text="Done: 120.00 EUR are on their way.")
        number, (name, arguments) = left.pop(0)
        call = {"type": "function_call", "call_id": f"call-{number}", "name": name, "arguments": json.dumps(arguments)}
        return SimpleNamespace(output=[call], output_text="")

    return SimpleNamespace(responses=SimpleNamespace(create=create))


def main() -> None:
    """The loop: what the model calls goes through the gate, and what comes of it goes back to the model."""
    gate = desk_gate(get_order=get_order, refund=refund)
    client = double()
    items: list[dict[str, Any]] = [{"role": "user", "content": "I want 500 EUR back for order A1."}]
    while True:
        response = client.responses.create(input=items)
        items += response.output
        answers = answer_function_calls(gate, response)
        if not answers or gate.handed_over:
            print(response.output_text)
            break
        items += answers
        for call, answer in zip(response.output, answers, strict=True):
            print(f"{call['name']}: {answer['output']}")
    print("paid:", [(order, amount) for order, amount, _ in PAID])


if __name__ == "__main__":
    main()
