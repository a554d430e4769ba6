"""Transforms of the raw forecast as plain functions over flat state.

A transform's state is a run of 64-bit words that starts at ``at``: its parameters first, then
what it remembers, then its *notes*, which are not part of the state.  Two functions work on it:

``predict(words, reals, at, raw)``
    The forecast for ``raw`` in the present state, in [0, 1].  It changes nothing but notes.
``learn(words, reals, at, raw, told, outcome)``
    Learn the outcome of the forecast ``told``, which ``predict`` gave for ``raw`` in this very
    state, with the notes that it left.  (For a late outcome, ``predict`` is called again first.)

As in :mod:`calibrant.kernels`, integers are read through ``words`` and reals through ``reals``,
and the same functions run plain on a list and compiled on an array.
"""
