"""How a host watches runs: hooks, events for logs, spans of OpenTelemetry."""
