"""What a host is told of runs: hooks, events for logs, spans of OpenTelemetry."""
