"""Batches in files: rows from CSV, JSONL or a DataFrame, results to CSV or JSONL, resumed after a kill."""

from __future__ import annotations

from stepguard.batches.ray import map_dataset
from stepguard.batches.records import to_frame
from stepguard.batches.rows import count_rows, read_rows
from stepguard.batches.running import BatchSummary, CostLimit, run_batch

__all__ = ["BatchSummary", "CostLimit", "count_rows", "map_dataset", "read_rows", "run_batch", "to_frame"]
