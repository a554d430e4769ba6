"""Slow, obvious versions of what a summary follows in one pass."""

from __future__ import annotations

import math

from naive_metrics import calibration_error


def log_loss(forecasts, outcomes, least):
    total, clipped = 0.0, 0
    for forecast, outcome in zip(forecasts, outcomes, strict=True):
        given = forecast if outcome else 1.0 - forecast
        clipped += given < least
        total -= math.log(max(given, least))
    return total / len(outcomes), clipped


def brier(forecasts, outcomes):
    return math.fsum((f - y) ** 2 for f, y in zip(forecasts, outcomes, strict=True)) / len(outcomes)


def binned(forecasts, outcomes, power, buckets=20):
    held = {}
    for forecast, outcome in zip(forecasts, outcomes, strict=True):
        bucket = max(j for j in range(buckets) if j / buckets <= forecast)
        held.setdefault(bucket, []).append((forecast, outcome))
    total = 0.0
    for rows in held.values():
        said = math.fsum(f for f, _ in rows) / len(rows)
        meant = sum(y for _, y in rows) / len(rows)
        total += len(rows) * abs(said - meant) ** power
    return total / len(outcomes)


def running(raw, drawn, mean, outcomes):
    """Return one point of the trace."""
    return [
        brier(raw, outcomes),
        brier(drawn, outcomes),
        brier(mean, outcomes),
        calibration_error(drawn, outcomes, 1),
        binned(raw, outcomes, 2),
        calibration_error(drawn, outcomes, 2),
        binned(mean, outcomes, 2),
    ]


def strides(rounds, points):
    """Return how far apart the points of a trace are: never as many as ``points``."""
    stride = 1
    while rounds // stride >= points:
        stride *= 2
    return stride


def windows(forecasts, outcomes, window):
    starts = range(0, len(outcomes) - window + 1, window)
    cuts = [slice(start, start + window) for start in starts]
    return [binned(forecasts[cut], outcomes[cut], 2) for cut in cuts]
