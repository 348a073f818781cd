"""Comparison of runs that upstream 1.0.34 and ours leave of one script."""

import json
import math
import os
import re
import subprocess
import warnings
from collections.abc import Iterable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from tests.interop import scenario_program

HERE = Path(__file__).parent
CHECKOUT = HERE.parents[1]
PROGRAM = HERE / "scenario_program.py"
# Of what another numpy or another order of adding rounds otherwise.
RELATIVE, ABSOLUTE = 1e-4, 1e-6
NOTHING = "(?!)"
ENVIRONMENT = {
    "PATH": os.defpath,
    "TF_CPP_MIN_LOG_LEVEL": "3",
    "SMDEBUG_LOG_LEVEL": "off",
    # Small models are faster without threads, above all on a busy machine.
    "OMP_NUM_THREADS": "1",
}


class ScenarioRuns(NamedTuple):
    """What both libraries have done and read.

    Attributes:
        written: what each script did, by writer and script.
        read: what is read, by reader, writer and script.
    """

    written: dict[str, dict[str, Any]]
    read: dict[str, dict[str, dict[str, Any]]]


def run_scenarios(
    module: str,
    chosen: Iterable[str],
    python: Path,
    original: Path | None,
    folder: Path,
    python_of_original: Path | None = None,
    *,
    writes_here: bool = False,
) -> ScenarioRuns:
    """Run scripts of a module with both libraries, and read all runs with both.

    Args:
        module: name of the module with the scripts, beside this one.
        chosen: names of the scripts.
        python: interpreter with the framework.
        original: folder with the real smdebug; None if the interpreter has it installed.
        folder: an empty folder for the runs.
        python_of_original: interpreter for upstream, if it does not work with the framework of ``python``.
        writes_here: run the scripts with ours in this process, which has imported the framework.
    """
    pythons = {"original": python_of_original or python, "ours": python}
    paths = {"original": str(original or ""), "ours": str(CHECKOUT)}
    written, read = {}, {}
    for writer in paths:
        (folder / writer).mkdir()
    folders = [folder / writer for writer in paths]
    if writes_here:
        with warnings.catch_warnings(action="ignore"):
            scenario_program.write(import_module(f"tests.interop.{module}"), folder / "ours", list(chosen))
    else:
        run_program(pythons["ours"], paths["ours"], "write", module, folder / "ours", *chosen)
    # Upstream reads in the process in which it has written: it imports the framework for either.
    printed = {
        "original": run_program(pythons["original"], paths["original"], "write_and_read", module, *folders, *chosen),
        "ours": run_program(pythons["ours"], paths["ours"], "read", module, *folders),
    }
    for reader in paths:
        written[reader] = json.loads((folder / reader / "written.json").read_text())
        answers = printed[reader].splitlines()[-len(paths) :]
        read[reader] = {writer: json.loads(answer) for writer, answer in zip(paths, answers, strict=True)}
    return ScenarioRuns(written, read)


def run_program(python: Path, path: str, *arguments: str | Path) -> str:
    done = subprocess.run(
        [str(python), str(PROGRAM), *map(str, arguments)],
        env={**ENVIRONMENT, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return done.stdout


def find_differences(runs: ScenarioRuns, scenario: str, hidden: str = NOTHING) -> list[str]:
    """Return what differs between upstream's run of a script and ours, each as a path and two values.

    Upstream writes its collections file once, after the first step, so that names which come later are missing
    from it, and settings which it has not used are null. Names that match `hidden` may be in our run alone; built-in
    collections, which are to select them, then have regexes of their own.
    """
    pattern, has_same_regexes = re.compile(hidden), hidden == NOTHING
    original, ours = (runs.written[writer][scenario] for writer in ("original", "ours"))
    found = []
    for path, expected, actual in walk(original, ours, pattern):
        is_collections_file = path.startswith("/files/collections/")
        # Of a tensor in several collections, upstream shows the histogram of one of them, whichever comes first.
        if path.startswith("/files/boards/") and set(expected or ()) <= set(actual or ()):
            continue
        if is_collections_file and path.endswith("/tensor_names") and set(expected or ()) <= set(actual or ()):
            continue
        if is_collections_file and expected is None and "_config" in path:
            continue
        if is_collections_file and path.endswith(("/tensor_names", "/include_regex")) and not has_same_regexes:
            continue
        found.append(f"{path}: {expected} != {actual}")
    for reader, by_writer in runs.read.items():
        original, ours = (by_writer[writer].get(scenario) for writer in ("original", "ours"))
        for path, expected, actual in walk(original, ours, pattern):
            is_listing = path.startswith(("/collections/", "/answers/trial.tensor_names(collection="))
            if "include_regex" in path and not has_same_regexes:
                continue
            if is_listing and isinstance(expected, list) and set(expected) <= set(actual or ()):
                continue
            found.append(f"read by {reader} {path}: {expected} != {actual}")
    return found


def check_scenario(runs: ScenarioRuns, scenario: str, different: Mapping[str, str]) -> None:
    """Check that a scenario leaves the same run, or, if it is listed as different, still leaves another one."""
    differences = find_differences(runs, scenario)
    if scenario in different:
        assert differences, "It has become the same: take it off the list."
    else:
        assert differences == []


ABSENT = "<absent>"


def walk(expected: Any, actual: Any, hidden: re.Pattern[str], path: str = "") -> list[tuple[str, Any, Any]]:
    """Return path and values of everything that differs, but for rounding and names of ours that are hidden."""
    if isinstance(expected, dict) and isinstance(actual, dict):
        if "sha256" in expected and "sha256" in actual and are_close(expected["values"], actual["values"]):
            expected, actual = ({**each, "sha256": "", "values": []} for each in (expected, actual))
        more = [key for key in actual if key not in expected and not hidden.search(key)]
        return [
            difference
            for key in [*expected, *more]
            for difference in walk(expected.get(key, ABSENT), actual.get(key, ABSENT), hidden, f"{path}/{key}")
        ]
    if isinstance(expected, list) and isinstance(actual, list):
        actual = [each for each in actual if each in expected or not (isinstance(each, str) and hidden.search(each))]
    return [] if expected == actual or are_close([expected], [actual]) else [(path, expected, actual)]


def are_close(expected: list[Any], actual: list[Any]) -> bool:
    try:
        pairs = list(zip(map(float, expected), map(float, actual), strict=True))
    except (TypeError, ValueError):
        return expected == actual
    return all(
        math.isclose(a, b, rel_tol=RELATIVE, abs_tol=ABSOLUTE) or (math.isnan(a) and math.isnan(b)) for a, b in pairs
    )
