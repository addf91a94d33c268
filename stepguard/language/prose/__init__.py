"""Running text: what sentences, labels and remarks say around a number, a claim or a formula.

``amounts`` are the numbers that a careful reader finds in a sentence, ``neighbours`` what makes them others. A claim
counts by the words in front of it (``understanding``) and those behind it (``following``): what is not understood is
named, never guessed. ``descriptions`` and the figures and operations that they state are held against a step's formula.
Nothing outside of this folder that reads values imports it.
"""
