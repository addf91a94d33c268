"""An on-call runbook: restart a worker until its queue is short, three times at most, then close the ticket.

python examples/runbook.py [MODEL]

No key is needed. The tools here only pretend; each is called once for a step, with an idempotency key.
"""

from __future__ import annotations

import sys
from pathlib import Path

from stepguard import Guard, Procedure
from stepguard.procedure import Tool
from stepguard.testing import SimulatedModel

TICKET = """\
Severity: 2
Host: worker-17
The queue has been growing since 02:10.
"""


class Cluster:
    """Pretends to be what the tools act on: every restart halves the queue."""

    def __init__(self) -> None:
        self.queue = 300
        self.calls: list[str] = []

    def queue_length(self, host: str) -> int:
        """How long the queue of a host is."""
        return self.queue

    def restart(self, host: str, idempotency_key: str) -> bool:
        """Restart a worker."""
        self.calls.append(idempotency_key)
        self.queue //= 2
        return True

    def close_ticket(self, host: str, queue: int) -> str:
        """Close the ticket."""
        return f"closed: {host} is at {queue}"


def main() -> None:
    """Carry the runbook out."""
    cluster = Cluster()
    procedure = Procedure.load(Path(__file__).with_suffix(".procedure")).with_operations(
        functions={"queue_length": cluster.queue_length},
        tools={"restart": Tool(cluster.restart, retries=1), "close_ticket": cluster.close_ticket},
    )
    guard = Guard(sys.argv[1] if len(sys.argv) > 1 else SimulatedModel(answers={"host": "worker-17"}))
    result = guard.run(procedure, {"ticket": TICKET})
    for record in result.steps:
        print(f"  {record.occurrence!s:<22} {record.value}")
    print(f"{result.status}: {result.to_dict()['answer'] if result.problem is None else result.problem}")
    print(f"{len(cluster.calls)} restarts, {result.usage.calls} calls of the model")


if __name__ == "__main__":
    main()
