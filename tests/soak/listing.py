"""Soak: lists of 10,000 jobs. Goals: a page of 100 under 50 ms, a cheap Create.

The page may be in any order; a Create takes at most twice moto_server's time.
"""

import re

from benchmarks.service import service
from tests.soak.course import Course

LONG, SHORT = 1, 0
RUNTIMES = ("process",)
_PAGE_MS, _TIMES_MOTO = 50, 2


def run(course: Course) -> None:
    """Measure both as ``python -m benchmarks service`` does."""
    for seed, _ in course.draw_rounds():
        pages = [re.search(r"by (\w+) +(\w+) +median +(\d+) ms", line) for line in service.measure_pages()]
        medians = {f"{match[1]} {match[2]}": int(match[3]) for match in pages if match}
        course.figures["a page of 100 of 10,000"] = ", ".join(f"{each} {ms} ms" for each, ms in medians.items())
        if len(medians) != 6 or max(medians.values()) >= _PAGE_MS:
            course.fail(seed, f"pages took {medians}, not all below {_PAGE_MS} ms")
        text = "\n".join(service.measure_requests())
        moto, ours = (int(match) for match in re.findall(r"Create p50 +(\d+) ms", text))
        course.figures["Create p50"] = f"{ours} ms, moto_server {moto} ms"
        if ours > _TIMES_MOTO * moto:
            course.fail(seed, f"Create p50 is {ours} ms, moto_server's {moto} ms")
