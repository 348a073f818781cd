"""Generated profile of a job of twelve seconds, with simple figures.

Two nodes, five steps and data loading.
"""

from pathlib import Path

from tests.unit.smdebug.profiler.profile_maker import START, ProfileMaker

START_US = int(START * 1e6)
STEP = "Step:ModeKeys.TRAIN"


def write_profiled_job(folder: Path) -> ProfileMaker:
    """Write it: a sample each half second, cpu0 at 10 % and cpu1 at 30 %, half of the time a GPU at 90 and at 0 %."""
    maker = ProfileMaker(folder)
    for half in range(24):
        for node in ("algo-1", "algo-2"):
            gpu = [90.0 if half % 2 else 0.0]
            maker.add_sample(half / 2, node, cpu=[10.0, 30.0], wait=[0.0, 0.0], gpu=gpu, memory=40.0 + half)
    events: list[tuple[str, float, float, dict[str, object]]] = []
    for step in range(5):
        begin = 2.0 + step
        args = {"step_num": str(step), "pid": 7}
        events += [
            (STEP, begin, 0.8, args),
            ("Forward", begin, 0.25, args),
            ("Backward(post-forward)", begin + 0.25, 0.5, args),
            ("DataLoaderIter", begin + 0.8, 0.1 if step != 3 else 0.2, {"num_workers": 2}),
        ]
    maker.add_events(events)
    maker.add_events([(STEP, 3.0, 0.6, {"step_num": "1", "pid": 8})], "1-algo-2")
    return maker
