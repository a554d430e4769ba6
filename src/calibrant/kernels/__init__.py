"""The algorithms as plain functions over flat state.

The state of a recalibrator is one buffer of 64-bit words, seen through two views:
``words`` reads a word as a signed integer, ``reals`` reads the same word as a
double.  Every word is only ever used through one of the two, so a state is equal
to another exactly when its words are.

Every function here is ordinary Python on indexable views and plain numbers.  The
one-step calls run it as it stands on a ``memoryview``; batches run *the same
function objects* compiled by Numba on the NumPy array behind it
(:mod:`calibrant.kernels.compile`).  The arithmetic is restricted to what both
do alike: integers below 2**63, additions, multiplications, divisions and square
roots of doubles, and the exp and log of :mod:`calibrant.kernels.portable`.

:mod:`~calibrant.kernels.layout` says which word means what,
:mod:`~calibrant.kernels.two_point` holds the one rule that most calibrators are,
and :mod:`~calibrant.kernels.rounds` plays rounds with it.
"""
