"""Inspect AI: the bundled benchmark as its task, and a model provider."""
