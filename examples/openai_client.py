"""A pipeline that talks to an OpenAI client, made to run guarded by one line: `stepguard.wrap(client)`.

python examples/openai_client.py

No key is needed: the client is a double that answers as a server would, and slips once. Put ``OpenAI()`` in its place
to ask a real model.
"""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

from stepguard import Procedure, guarded, wrap
from stepguard.errors import StepNotVerified
from stepguard.integrations.openai.client import result_of

INVOICE = Procedure.parse("""
name: invoice
inputs: price, quantity
subtotal = price * quantity
tax: decimal(2) = subtotal * 8.25 / 100
total: decimal(2) = subtotal + tax
""")
ORDER = {"price": "24.90", "quantity": 3}


def double(*replies: dict[str, str] | str) -> Any:
    """Something with ``chat.completions.create`` that gives these replies, the last one again and again."""
    left = list(replies)

    def create(*, messages: list[dict[str, str]], **_: object) -> dict[str, object]:
        reply = left.pop(0) if len(left) > 1 else left[0]
        content = reply if isinstance(reply, str) else json.dumps(reply)
        size = sum(len(message["content"]) for message in messages)
        return {
            "model": "a-double",
            "choices": [{"message": {"role": "assistant", "content": content}, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": size // 4, "completion_tokens": len(content) // 4},
        }

    return SimpleNamespace(chat=SimpleNamespace(completions=SimpleNamespace(create=create)))


def main() -> None:
    """The same calls as ever: one that names a procedure, one that does not, and one that cannot be verified."""
    slips = {"subtotal": "24.90 * 3 = 74.70", "tax": "74.70 * 8.25 / 100 = 6.17", "total": "74.70 + 6.17 = 80.87"}
    client = wrap(
        double(slips, {"tax": "74.70 * 8.25 / 100 = 6.16"}, {"total": "74.70 + 6.16 = 80.86"}, "Good morning."),
        on_call=lambda call: print(f"[{'guarded' if call.guarded else f'passed on: {call.reason}'}]"),
    )
    response = client.chat.completions.create(model="gpt-4.1-mini", procedure=INVOICE, inputs=ORDER)
    print(response.choices[0].message.content)
    print(response.stepguard.status, "after", response.stepguard.usage.calls, "calls")

    hello = client.chat.completions.create(model="gpt-4.1-mini", messages=[{"role": "user", "content": "Hello!"}])
    print("no result:", result_of(hello))

    stubborn = wrap(double(slips), repair=2)
    try:
        stubborn.chat.completions.create(model="gpt-4.1-mini", procedure=INVOICE, inputs=ORDER)
    except StepNotVerified as error:
        print("no answer:", error)

    replies = double({"net": "80.86 - 5 = 75.86"})

    @guarded("inputs: total, voucher\nnet: decimal(2) = total - voucher", returns="answer")
    def redeem(messages: list[dict[str, str]]) -> str:
        answer = replies.chat.completions.create(model="gpt-4.1-mini", messages=messages)
        return str(answer["choices"][0]["message"]["content"])

    print("to pay:", redeem(total="80.86", voucher=5))


if __name__ == "__main__":
    main()
