"""Procedures in chat messages, and results as chat completions: what all drop-ins for chat models share."""
