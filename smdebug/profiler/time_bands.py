"""Downsampling of time series to minimum, mean and maximum bands."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

# A silence of so many usual distances between two points is shown as one.
_SILENCE = 8


@dataclass(frozen=True)
class Bands:
    """The lowest, mean and highest number of each part of a time; a part of which there is none is a silence: None.

    Attributes:
        times: of the parts, in seconds since the epoch.
    """

    times: list[float]
    low: list[float | None]
    mean: list[float | None]
    high: list[float | None]


def reduce_to_bands(
    times: NDArray[np.float64], values: NDArray[np.float64], span: tuple[float, float], points: int
) -> Bands:
    """Cut a time into so many parts, or into its own numbers where there are no more.

    Times need no order: a clock that was set back gives what it gave in the part that it came back to.

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
    # Where nothing was measured for long, no line is drawn.
    distances = np.diff(middles)
    silent = np.flatnonzero(distances > _SILENCE * np.median(distances)) if distances.size else distances.astype(int)
    at = np.insert(middles, silent + 1, middles[silent] + distances[silent] / 2)
    lines = [np.insert(line, silent + 1, np.nan) for line in found]
    low, mean, high = ([None if np.isnan(each) else float(each) for each in line] for line in lines)
    return Bands([float(time) for time in at], low, mean, high)
