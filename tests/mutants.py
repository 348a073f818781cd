"""Mutation tests of the modules that matter most: `make mutants`.

Each module is changed in one place at a time, in a copy of the checkout, by mutmut; a change that no test notices
survives, and is listed with its diff. Lines that log are not changed.
"""

import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import chdir, suppress
from dataclasses import dataclass
from pathlib import Path

import click
import psutil

CHECKOUT = Path(__file__).parents[1]
COPIES = CHECKOUT / ".cache" / "mutants"
# Each test of each change begins in a process that has only imported the tests. The limit of time is that of a test;
# mutmut's own, a multiple of what all tests of the change take, is for what pytest's does not end.
SETTINGS = """\
[mutmut]
source_paths=
    {packages}
only_mutate=
    {paths}
do_not_mutate_patterns=
    ^\\s*logger\\.\\w+\\(
also_copy=
    {others}
process_isolation=forkserver
timeout_multiplier=60
pytest_add_cli_args=
    -q
    -p
    tests.mutant_tests
    --timeout={seconds}
    -m
    {marks}
pytest_add_cli_args_test_selection=
    {tests}
"""
PACKAGES = ("container_runtime", "emulator", "rules_images", "sdk_compat", "smdebug")
OTHERS = ("benchmarks", "docs", "docs_site", "examples", "smdebug_emulator.py", "README.md", "constraints.txt")


@dataclass(frozen=True)
class Subject:
    """What is changed, and the tests of `make test` that have to notice it, as paths relative to the checkout."""

    paths: tuple[str, ...]
    tests: tuple[str, ...]


JOBS, HOOKS = "tests/integration/emulator/jobs", "tests/unit/smdebug/pytorch"
# Of many tests that reach a module, those that are about it and take little time.
SUBJECTS = {
    "lifecycle": Subject(
        ("emulator/jobs/runs/job_run.py", "emulator/jobs/runs/attempt.py", "emulator/jobs/runs/training_attempt.py"),
        (
            "tests/unit/emulator/jobs/runs/test_job_run.py",
            "tests/unit/emulator/jobs/runs/test_attempt.py",
            *(
                f"{JOBS}/runs/test_{name}.py"
                for name in (
                    "training",
                    "container_specs",
                    "fast_file",
                    "many_hosts",
                    "metrics",
                    "pipes",
                    "profiler",
                    "spot",
                    "volume",
                    "warnings",
                )
            ),
        ),
    ),
    "recovery": Subject(
        ("emulator/jobs/runs/recovery.py",),
        (
            "tests/unit/emulator/jobs/runs/test_recovery.py",
            f"{JOBS}/runs/test_recovery.py",
            f"{JOBS}/runs/test_recovery_around_jobs.py",
            f"{JOBS}/runs/test_recovery_of_ended_jobs.py",
        ),
    ),
    "staging": Subject(
        ("emulator/jobs/staging/*.py",),
        (
            "tests/unit/emulator/jobs/staging",
            *(f"{JOBS}/runs/test_{name}.py" for name in ("fast_file", "pipes", "profiler", "rule", "warnings")),
        ),
    ),
    "uploads": Subject(
        ("emulator/jobs/uploads/*.py",),
        (
            "tests/unit/emulator/jobs/uploads",
            f"{JOBS}/uploads",
            f"{JOBS}/runs/test_training.py",
            f"{JOBS}/runs/test_many_hosts.py",
        ),
    ),
    "publisher": Subject(("emulator/events/publisher.py",), ("tests/integration/emulator/events",)),
    "signatures": Subject(
        ("emulator/security/signatures.py", "emulator/security/signed_forms.py"),
        ("tests/unit/emulator/security",),
    ),
    "recorder": Subject(
        ("smdebug/capture/recorder.py",),
        (
            "tests/unit/smdebug/capture",
            "tests/integration/smdebug/capture",
            "tests/unit/smdebug/xgboost",
            *(
                f"{HOOKS}/test_{name}.py"
                for name in ("hook", "steps", "hook_values", "failures", "own_hook_classes", "resume", "summaries")
            ),
        ),
    ),
    "saving_plan": Subject(
        ("smdebug/capture/saving_plan.py", "smdebug/config/*.py"),
        (
            "tests/unit/smdebug/capture",
            "tests/unit/smdebug/config",
            *(f"{HOOKS}/test_{name}.py" for name in ("hook", "hook_values", "reductions")),
        ),
    ),
    "step_writer": Subject(("smdebug/writing/step_writer.py",), ("tests/unit/smdebug/writing",)),
    "index_reader": Subject(
        ("smdebug/reading/index_reader.py", "smdebug/reading/index_templates.py"),
        tuple(f"tests/unit/smdebug/reading/test_{name}.py" for name in ("index_reader", "index_templates")),
    ),
    "record_format": Subject(
        ("smdebug/format/*.py",),
        (
            "tests/unit/smdebug/format",
            "tests/unit/smdebug/writing",
            "tests/unit/smdebug/compatibility",
            "tests/unit/smdebug/reading/test_tensor_reductions.py",
        ),
    ),
    "rules": Subject(
        ("smdebug/rules/builtin/*.py",),
        ("tests/unit/smdebug/rules/builtin", "tests/unit/smdebug/rules/test_stacks.py"),
    ),
}


@click.command(help=__doc__)
@click.argument("names", nargs=-1, type=click.Choice(list(SUBJECTS)))
@click.option("--workers", default=2, show_default=True, help="Changes that are tested at a time.")
@click.option("--sample", type=click.IntRange(min=1), help="Changes of a subject that are tested; without it, all.")
@click.option("--seed", type=int, help="Draws the sample of an earlier run again.")
@click.option("--seconds", default=60, show_default=True, help="Limit of each test's time.")
def main(names: tuple[str, ...], workers: int, sample: int | None, seed: int | None, seconds: int) -> None:
    """Test the named subjects, or all."""
    seed = random.randrange(10_000) if seed is None else seed
    for name in names or SUBJECTS:
        copy = copy_checkout(name, SUBJECTS[name], seconds)
        changes = list_changes(copy)
        chosen = draw(changes, sample, seed)
        states = run_tests(name, copy, chosen if len(chosen) < len(changes) else (), workers)
        states = {change: states[change] for change in chosen}
        if set(states.values()) <= {"not checked"}:
            raise click.ClickException(f"No change of {name} was checked: its tests fail in {copy} without one.")
        report = COPIES / f"{name}.txt"
        report.write_text("\n".join(show_survivors(copy, states)), encoding="utf-8")
        drawn = f" (drawn with --seed {seed})" if len(chosen) < len(changes) else ""
        click.echo(f"{name}: tested {len(chosen)} of {len(changes)} changes{drawn}. What no test noticed: {report};")
        click.echo(f"which test noticed which change: {copy / 'mutants' / 'noticed.txt'}.")
        click.echo(build_row(name, len(changes), states))


def list_changes(copy: Path) -> list[str]:
    """Return the names that mutmut gives to the changes of a copy."""
    from mutmut.configuration import reset_config
    from mutmut.mutation.file_mutation import mutate_file_contents
    from mutmut.utils.file_utils import walk_mutatable_files
    from mutmut.utils.format_utils import get_mutant_name

    with chdir(copy):
        reset_config()
        return [
            get_mutant_name(path, name)
            for path in walk_mutatable_files()
            for name in mutate_file_contents(str(path), path.read_text("utf-8")).mutant_names
        ]


def draw(changes: Sequence[str], sample: int | None, seed: int) -> list[str]:
    """Return as many of the changes, drawn by chance; all without a number, or where they are no more."""
    if sample is None or sample >= len(changes):
        return list(changes)
    return random.Random(seed).sample(sorted(changes), sample)


def run_tests(name: str, copy: Path, changes: Sequence[str], workers: int) -> dict[str, str]:
    """Have mutmut test the changes, all where none are named, and return what became of each of all."""
    mutmut = str(Path(sys.executable).with_name("mutmut"))
    # What the tests of a change leave when they are ended goes with this folder.
    with tempfile.TemporaryDirectory(prefix="mutants-", ignore_cleanup_errors=True) as folder:
        done = subprocess.run(
            [mutmut, "run", "--max-children", str(workers), *changes],
            cwd=copy,
            env={**os.environ, "TMPDIR": folder},
            check=False,
        )
        end_left_over(folder)
    if done.returncode not in (0, 1):
        raise click.ClickException(f"mutmut ended with {done.returncode} for {name}; its folder is {copy}.")
    results = [mutmut, "results", "--all", "true"]
    listed = subprocess.run(results, cwd=copy, check=True, capture_output=True, text=True).stdout
    return dict(line.strip().rsplit(": ", 1) for line in listed.splitlines() if ": " in line)


def end_left_over(folder: str) -> None:
    """Kill what the tests of changes left running: jobs of emulators that were killed, which nobody recovers."""
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if any(folder in text for text in (*process.cmdline(), *process.environ().values())):
                process.kill()


def show_survivors(copy: Path, states: Mapping[str, str]) -> list[str]:
    """Return what happened to each change that no test noticed, or only by its time, with its diff."""
    from mutmut.configuration import reset_config
    from mutmut.mutation.diff_apply import find_mutant, get_diff_for_mutant

    noticed = copy / "mutants" / "noticed.txt"
    lines = noticed.read_text("utf-8").splitlines() if noticed.exists() else []
    late = {line.split("\t")[0] for line in lines if line.endswith("\ttime")}
    shown = []
    with chdir(copy):
        reset_config()
        for change, state in states.items():
            if state != "killed" or change in late:
                why = "killed by a test's limit of time" if state == "killed" else state
                shown.append(f"{why}: {change}\n{get_diff_for_mutant(change, path=find_mutant(change).path)}")
    return shown


def build_row(name: str, changes: int, states: Mapping[str, str]) -> str:
    """Return the row of a subject in the table of `tests/README.md`, without its last column."""
    counts = Counter(states.values())
    missed = [counts.pop(state, 0) for state in ("survived", "no tests")]
    cells = (f"`{name}`", f"{len(states)} of {changes}", counts.total(), *missed)
    return f"| {' | '.join(map(str, cells))} |"


def list_tracked() -> list[str]:
    """List the files that git tracks, relative to the checkout."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=CHECKOUT, check=True, capture_output=True, text=True).stdout
    return [path for path in listed.split("\0") if path]


def copy_checkout(name: str, subject: Subject, seconds: int) -> Path:
    """Copy what git tracks, as it is in the working tree, and write mutmut's settings beside it."""
    copy = COPIES / name
    shutil.rmtree(copy, ignore_errors=True)
    copy.mkdir(parents=True)
    for path in list_tracked():
        if (CHECKOUT / path).is_file():
            (copy / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(CHECKOUT / path, copy / path)
    marks = ("nightly", "versions", "docker", "gpu")
    lists = {"packages": PACKAGES, "others": OTHERS, "paths": subject.paths, "tests": subject.tests}
    settings = SETTINGS.format(
        **{key: "\n    ".join(values) for key, values in lists.items()},
        marks=" and ".join(f"not {mark}" for mark in marks),
        seconds=seconds,
    )
    (copy / "setup.cfg").write_text(settings, encoding="utf-8")
    return copy


if __name__ == "__main__":
    main()
