"""The paper's experiments, run again: claims, numbers, pictures and a page.

An experiment is a function from a :class:`Setting` to a :class:`Result`, entered with the
decorator :func:`experiment` in a module of its own that is imported here.  Nothing else in the
package imports this one.

>>> from calibrant.experiments import experiments
>>> "bernoulli" in experiments.names()
True
"""

from calibrant.experiments import adversary, bernoulli, diabetes, qa, theory
from calibrant.experiments.claims import Claim
from calibrant.experiments.experiment import Experiment, Result, Setting, experiment, experiments
from calibrant.experiments.reproduce import Chapter, failures, headline, in_order, reproduce, write

__all__ = [
    "Chapter",
    "Claim",
    "Experiment",
    "Result",
    "Setting",
    "adversary",
    "bernoulli",
    "diabetes",
    "experiment",
    "experiments",
    "failures",
    "headline",
    "in_order",
    "qa",
    "reproduce",
    "theory",
    "write",
]
