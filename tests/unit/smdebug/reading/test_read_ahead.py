import numpy as np
import pytest

from smdebug.format.tensor_location import TensorLocation
from smdebug.reading.read_ahead import ReadAhead
from smdebug.trials import create_trial
from tests.unit.smdebug.object_storage import Storage
from tests.unit.smdebug.runs import RunMaker

RUN = "s3://runs/job"


class Recorder:
    """A tensor saved at every tenth step up to 1000."""

    def __init__(self, length: int = 100) -> None:
        self.length = length
        self.fetched: list[list[int]] = []
        self.ahead = ReadAhead()

    def locate(self, step: int) -> TensorLocation | None:
        return None if step == 70 else TensorLocation("t", f"e{step}", 0, self.length, None, None)

    def read(self, *steps: int) -> None:
        for step in steps:
            location = self.locate(step) or TensorLocation("t", "none", 0, 0, None, None)
            following = ((each, self.locate(each)) for each in range(0, 1000, 10) if each > step)
            if planned := self.ahead.plan(step, location, following):
                self.fetched.append([int(location.event_file_name[1:]) for location in planned])


def test_growing_parts_are_fetched_once_each() -> None:
    recorder = Recorder()
    recorder.read(*range(0, 1000, 10))
    assert [len(part) for part in recorder.fetched[:5]] == [3, 5, 12, 24, 48]
    fetched = [step for part in recorder.fetched for step in part]
    assert fetched == sorted(set(fetched)) == [step for step in range(20, 1000, 10) if step != 70]


def test_reads_here_and_there_fetch_nothing() -> None:
    recorder = Recorder()
    recorder.read(0, 10, 500, 510, 0, 0, 0, 990)
    assert recorder.fetched == []


def test_large_values_are_fetched_one_by_one() -> None:
    recorder = Recorder(length=20_000_000)
    recorder.read(0, 10, 20, 30)
    assert recorder.fetched == [[20], [30]]


@pytest.mark.slow
@pytest.mark.parametrize("way", ["loop", "values"])
def test_scan_on_s3_lists_nothing_and_reads_each_object_once(storage: Storage, way: str) -> None:
    run = RunMaker(RUN)
    for step in range(30):
        run.write_step(step, {"t": np.full(10, step)})
    run.end()
    tensor = create_trial(RUN).tensor("t")
    steps = tensor.steps()
    storage.requests.clear()
    values = [tensor.value(step) for step in steps] if way == "loop" else list(tensor.values().values())
    assert [value[0] for value in values] == steps
    assert storage.requests == {"GetObject": 30}
