"""How large a machine a fleet of streams needs: figures from stored measurements, and a simulation.

:func:`plan` estimates memory, cores and sizes on disk for so many keys, forecasts a second and so
late outcomes.  Each constant was measured by ``python -m benchmarks.capacity``, which writes the
file that :func:`measured` reads.  :func:`rush` plays arrivals in bursts and outcomes with a long
tail, event by event, and says how long forecasts wait and how many tickets are open at most.
"""

from calibrant.capacity.figures import Figures, measured
from calibrant.capacity.plans import Plan, plan
from calibrant.capacity.simulation import Rush, rush

__all__ = ["Figures", "Plan", "Rush", "measured", "plan", "rush"]
