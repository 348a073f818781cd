"""Short soak tests: a few rounds of each part of ``make soak``."""

from pathlib import Path
from typing import Any

import pytest

from tests.soak import engine_restarts
from tests.soak.__main__ import list_parts, list_starts
from tests.soak.course import Course

pytestmark = pytest.mark.nightly

_BACK_ENDS = {"process": (), "docker": (pytest.mark.docker,), "swarm": (pytest.mark.docker,)}
# SHORT is 0 of what is measured, and of what another test does.
_CASES = [
    pytest.param(module, runtime, starts, id=f"{name}-{runtime}-{starts}", marks=_BACK_ENDS[runtime])
    for name, module in list_parts().items()
    for runtime in module.RUNTIMES
    for starts in list_starts(module)
    # The others are the same there but for what a container is, which their own tests look at.
    if module.SHORT and (runtime == "process" or name in ("kills", "engine_restarts"))
]


@pytest.mark.parametrize(("module", "runtime", "starts"), _CASES)
def test_a_short_course_is_right(
    request: pytest.FixtureRequest, module: Any, runtime: str, starts: str, tmp_path: Path
) -> None:
    if module is engine_restarts:
        request.getfixturevalue("granted_namespaces")
    course = Course(runtime, module.SHORT, 1, tmp_path, starts=starts)
    module.run(course)
    assert course.done == module.SHORT
    assert not course.failures, "\n".join(f"{each.seed}: {each.text}" for each in course.failures)
