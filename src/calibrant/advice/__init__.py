"""Learning with expert advice: keep the regret small against any sequence of losses.

Each round a rule announces weights over its experts, then the losses of all of them
are seen, each in [0, ``loss_bound``].  No assumption is made about how they arise, and
every bound holds for every sequence of losses, not only on average.

===========================  ========  ==========================================
rule                         regret    idea
===========================  ========  ==========================================
:class:`ExponentialWeights`  external  weights fall exponentially with the loss
:class:`InternalRegret`      internal  exponential weights over all swaps i -> j
:class:`RegretMatching`      internal  swap at a rate that grows with its regret
:class:`SwapRegret`          swap      one copy of exponential weights per expert
===========================  ========  ==========================================

A rule is a frozen dataclass whose methods are pure: ``start()`` gives a state,
``weights(state)`` what to play, ``update(state, losses)`` the next state.
:class:`OnlineExperts` holds the state for you and keeps the running regrets.

NumPy's exp and log are used here, for they are clear and fast on arrays; so two
platforms may differ in the last digits of a state.  States that must be equal to the
bit are those of the calibrators, whose kernels use :mod:`calibrant.kernels.portable`.
"""

from __future__ import annotations

from calibrant.advice.regret import (
    OnlineExperts,
    external_regret,
    internal_regret,
    mix,
    pair_regrets,
    substitute,
    swap_regret,
)
from calibrant.advice.rule import Rule, State
from calibrant.advice.rules import (
    ExponentialWeights,
    InternalRegret,
    RegretMatching,
    SwapRegret,
    stationary_law,
    stationary_law_of_logs,
)

__all__ = [
    "ExponentialWeights",
    "InternalRegret",
    "OnlineExperts",
    "RegretMatching",
    "Rule",
    "State",
    "SwapRegret",
    "external_regret",
    "internal_regret",
    "mix",
    "pair_regrets",
    "stationary_law",
    "stationary_law_of_logs",
    "substitute",
    "swap_regret",
]
