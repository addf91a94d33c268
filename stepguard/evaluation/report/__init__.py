"""What a benchmark found: figures, charts, ``results.json``, ``report.html`` and a chart as SVG."""
