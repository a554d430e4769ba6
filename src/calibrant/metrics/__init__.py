"""How good forecasts were: calibration, accuracy, ranking and regret.

Functions take arrays (forecasts, outcomes); those over exact values also take
:class:`Cells`.  Classes follow a stream in constant memory.

>>> from calibrant.metrics import BucketedCells, calibration_error
>>> calibration_error([0.3, 0.3, 0.3, 0.3], [1, 0, 1, 0])
0.2
>>> following = BucketedCells(buckets=10)
>>> following.update(0.3, 1)
>>> following.calibration_error()
0.7
"""

from calibrant.metrics.buckets import (
    Buckets,
    CalibrationCurve,
    WindowedError,
    as_buckets,
    binned_calibration_error,
    binomial_band,
    calibration_curve,
    windowed_calibration_error,
)
from calibrant.metrics.calibration import (
    atb,
    auc,
    calibration_error,
    mixture_calibration_error,
    rho,
    smooth_calibration_error,
    v_calibration,
)
from calibrant.metrics.cells import Cells, as_cells, mixture_cells
from calibrant.metrics.murphy import Decomposition, brier, decomposition
from calibrant.metrics.regret import (
    external_regret,
    internal_regret,
    mean_loss,
    proper_swap_regret,
    squared_swap_regret,
    swap_regret,
)
from calibrant.metrics.streaming import (
    BucketedCells,
    EqualMass,
    ExactCells,
    ExpectedCells,
    MeanLoss,
    StreamingATB,
    StreamingAUC,
    StreamingSmooth,
    Windowed,
    WorstBlock,
)

__all__ = [
    "BucketedCells", "Buckets", "CalibrationCurve", "Cells", "Decomposition", "EqualMass",
    "ExactCells", "ExpectedCells", "MeanLoss", "StreamingATB", "StreamingAUC", "StreamingSmooth",
    "Windowed", "WindowedError", "WorstBlock", "as_buckets", "as_cells", "atb", "auc",
    "binned_calibration_error", "binomial_band", "brier", "calibration_curve", "calibration_error",
    "decomposition", "external_regret", "internal_regret", "mean_loss", "mixture_calibration_error",
    "mixture_cells", "proper_swap_regret", "rho", "smooth_calibration_error", "squared_swap_regret",
    "swap_regret", "v_calibration", "windowed_calibration_error",
]  # fmt: skip
