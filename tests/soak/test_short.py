"""Each part of the soak with a few rounds: what ``make soak`` runs hundreds of."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.soak.__main__ import list_parts
from tests.soak.course import Course

if TYPE_CHECKING:
    from pathlib import Path

_BACK_ENDS = {"process": (), "docker": (pytest.mark.docker,)}
# A part that has a test of its own elsewhere says 0.
_CASES = [
    pytest.param(module, runtime, id=f"{name}-{runtime}", marks=_BACK_ENDS[runtime])
    for name, module in list_parts().items()
    for runtime in module.RUNTIMES
    if module.SHORT
]


@pytest.mark.parametrize(("module", "runtime"), _CASES)
def test_a_short_course_is_right(module: Any, runtime: str, tmp_path: Path) -> None:
    course = Course(runtime, module.SHORT, 1, tmp_path)
    module.run(course)
    assert course.done == module.SHORT
    assert not course.failures, "\n".join(f"{each.seed}: {each.text}" for each in course.failures)
