"""Runs on many machines: `Jobs` queues them, a `Worker` on each machine carries them out (extra ``dbos``).

::

    guard = Guard("openai/gpt-4.1-mini", ledger="postgresql://stepguard@db/work")
    Worker(guard, [refund], runs=8, rate=(60, 60.0)).serve()          # on each machine, or ``stepguard worker``

    with Jobs("postgresql://stepguard@db/work") as jobs:              # anywhere, or ``stepguard enqueue``
        jobs.enqueue(refund, {"price": 70, "fee": 8}, run_id="refund 17", priority=2)

Queues, priorities and limits of runs are DBOS's. One of its workflows drives one run from where the ledger says that it
stands, to its end or until it waits for a person; no worker is held then, and when the answer comes, by whatever way,
the next workflow of the run is queued. Its workflows hold the name of a run and nothing else: inputs, values and
answers are in the ledger alone.

Every worker holds a lock in the ledger that is free when its process is gone. Of a run that DBOS knows to be under way
on a worker whose lock is free, the next workflow is queued. Model calls are counted in the ledger, over all workers.
"""

from __future__ import annotations

from stepguard.integrations.dbos.jobs import Jobs, QueuedRun
from stepguard.integrations.dbos.worker import Worker

__all__ = ["Jobs", "QueuedRun", "Worker"]
