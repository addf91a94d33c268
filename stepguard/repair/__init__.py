"""Repair: what is tried next after a step was not accepted.

``policy`` is the protocol, ``ladder`` the policy that is the default, ``rungs`` its ways of asking again; ``rewriting``
and ``splitting`` make the stand-ins that are asked in the place of a step.
"""
