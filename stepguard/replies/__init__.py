"""Replies: from a completion to one claim a step, strictly and without a guess.

``text`` finds the one JSON object, ``formats`` says how a step is written in it, ``reading`` makes claims of it, and
``partial`` reads what has come so far of a reply that is still being written.
"""
