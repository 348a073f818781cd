"""Pytest plugin of mutation tests: their order, and a record of who noticed.

The tests of a change run until one fails. So files come first whose tests have noticed many changes in little time.
"""

import json
import os
from collections import Counter
from collections.abc import Generator
from pathlib import Path

import pytest

# Both lie in the folder that pytest runs in: mutmut's measures, and the lines "change, test, time", tab separated.
# The last is there where the test's time was up.
MEASURED = "mutmut-stats.json"
NOTICED = "noticed.txt"


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    items[:] = order(items, config.rootpath)


def order(items: list[pytest.Item], folder: Path) -> list[pytest.Item]:
    """Order tests by seconds for each change that they have noticed; those of a file stay together."""
    measured, noticed = folder / MEASURED, folder / NOTICED
    seconds = json.loads(measured.read_text("utf-8"))["duration_by_test"] if measured.exists() else {}
    lines = noticed.read_text("utf-8").splitlines() if noticed.exists() else []
    times = Counter(line.split("\t")[1] for line in lines)
    costs = {item: seconds.get(item.nodeid, 0.0) / (1 + times[item.nodeid]) for item in items}
    best: dict[Path, float] = {}
    for item, cost in costs.items():
        best[item.path] = min(cost, best.get(item.path, cost))
    return sorted(items, key=lambda item: (best[item.path], str(item.path), costs[item]))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Record which test fails by which change."""
    report = yield
    change = os.environ.get("MUTANT_UNDER_TEST", "")
    if report.failed and "__mutmut_" in change:
        end = "\ttime" if "from pytest-timeout" in str(report.longrepr) else ""
        with (item.config.rootpath / NOTICED).open("a", encoding="utf-8") as file:
            file.write(f"{change}\t{item.nodeid}{end}\n")
    return report
