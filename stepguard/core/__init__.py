"""Words that every room uses: claims and verdicts, usage and prices, what was seen of a model.

Beside them what knows nothing of procedures: calls that end in time, secrets in foreign text, objects found by name.
"""
