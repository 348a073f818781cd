"""Downsampling of time series to minimum, mean and maximum bands."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

# A gap of this many usual distances between two points is shown as a gap.
_SILENCE = 8


@dataclass(frozen=True)
class Bands:
    """The minimum, mean and maximum of each part of an interval; parts in a gap without values have None.

    Attributes:
        times: times of the parts, in seconds since the epoch.
    """

    times: list[float]
    low: list[float | None]
    mean: list[float | None]
    high: list[float | None]


def reduce_to_bands(
    times: NDArray[np.float64], values: NDArray[np.float64], span: tuple[float, float], points: int
) -> Bands:
    """Divide an interval into at most `points` parts; if there are no more values than that, each is a part.

    Times need no order: after a clock was set back, its values are added to the parts of the new times.

    >>> reduce_to_bands(np.array([2.0, 0.0, 1.0]), np.array([5.0, 3.0, 9.0]), (0.0, 2.0), 2)
    Bands(times=[0.0, 1.5], low=[3.0, 5.0], mean=[3.0, 7.0], high=[3.0, 9.0])
    """
    order = np.argsort(times, kind="stable")
    times, values = times[order], values[order]
    if not times.size:
        return Bands([], [], [], [])
    begins = np.arange(times.size)
    if times.size > points:
        width = (span[1] - span[0]) / points or 1.0
        parts = np.clip(((times - span[0]) / width).astype(np.int64), 0, points - 1)
        begins = np.flatnonzero(np.diff(parts, prepend=-1))
    counts = np.diff(begins, append=times.size)
    middles = np.add.reduceat(times - span[0], begins) / counts + span[0]
    found = [np.minimum.reduceat(values, begins), np.add.reduceat(values, begins) / counts]
    found.append(np.maximum.reduceat(values, begins))
    # No line is drawn across a long gap.
    distances = np.diff(middles)
    silent = np.flatnonzero(distances > _SILENCE * np.median(distances)) if distances.size else distances.astype(int)
    at = np.insert(middles, silent + 1, middles[silent] + distances[silent] / 2)
    lines = [np.insert(line, silent + 1, np.nan) for line in found]
    low, mean, high = ([None if np.isnan(each) else float(each) for each in line] for line in lines)
    return Bands([float(time) for time in at], low, mean, high)
