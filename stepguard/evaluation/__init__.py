"""The bundled benchmark: how much accuracy does the guard win back, at what cost, and is anything silently wrong?

``families`` make instances with known truth, ``published`` reads those that others made, ``arms`` are the ways of
running them, ``runner`` runs all cells and keeps every raw reply, ``statistics`` and ``report`` turn outcomes into
intervals, a table and ``results.json``.
"""
