"""Mutation tests of the modules that matter most: `make mutants`.

Each module is changed in one place at a time, in a copy of the checkout, by mutmut; a change that no test notices
survives, and is listed with its diff.
"""

import shutil
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import click

CHECKOUT = Path(__file__).parents[1]
COPIES = CHECKOUT / ".cache" / "mutants"
SETTINGS = """\
[mutmut]
source_paths=
    {packages}
only_mutate=
    {paths}
also_copy=
    {others}
pytest_add_cli_args=
    -q
    -m
    not nightly and not versions and not docker and not gpu
pytest_add_cli_args_test_selection=
    {tests}
"""
PACKAGES = ("container_runtime", "emulator", "rules_images", "sdk_compat", "smdebug")
OTHERS = ("benchmarks", "docs", "docs_site", "examples", "smdebug_emulator.py", "README.md", "constraints.txt")


@dataclass(frozen=True)
class Subject:
    """What is changed, and the tests that have to notice it; all are paths relative to the checkout."""

    paths: tuple[str, ...]
    tests: tuple[str, ...]


JOBS = ("tests/unit/emulator/jobs", "tests/integration/emulator/jobs")
SUBJECTS = {
    "lifecycle": Subject(
        ("emulator/jobs/runs/job_run.py", "emulator/jobs/runs/attempt.py", "emulator/jobs/runs/training_attempt.py"),
        ("tests/integration/emulator/jobs/runs",),
    ),
    "recovery": Subject(("emulator/jobs/runs/recovery.py",), ("tests/integration/emulator/jobs/runs",)),
    "staging": Subject(("emulator/jobs/staging/*.py",), JOBS),
    "uploads": Subject(("emulator/jobs/uploads/*.py",), JOBS),
    "publisher": Subject(
        ("emulator/events/publisher.py",), ("tests/unit/emulator/events", "tests/integration/emulator/events")
    ),
    "signatures": Subject(
        ("emulator/security/signatures.py", "emulator/security/signed_forms.py"),
        ("tests/unit/emulator/security",),
    ),
    "recorder": Subject(
        ("smdebug/capture/recorder.py",),
        ("tests/unit/smdebug/capture", "tests/unit/smdebug/pytorch", "tests/unit/smdebug/xgboost"),
    ),
    "saving_plan": Subject(
        ("smdebug/capture/saving_plan.py", "smdebug/config/*.py"),
        ("tests/unit/smdebug/capture", "tests/unit/smdebug/config", "tests/unit/smdebug/pytorch"),
    ),
    "step_writer": Subject(
        ("smdebug/writing/step_writer.py",),
        ("tests/unit/smdebug/writing", "tests/unit/smdebug/core", "tests/unit/smdebug/pytorch"),
    ),
    "index_reader": Subject(
        ("smdebug/reading/index_reader.py", "smdebug/reading/index_templates.py"),
        ("tests/unit/smdebug/reading", "tests/unit/smdebug/trials"),
    ),
    "record_format": Subject(
        ("smdebug/format/*.py",),
        ("tests/unit/smdebug/format", "tests/unit/smdebug/reading"),
    ),
    "rules": Subject(("smdebug/rules/builtin/*.py",), ("tests/unit/smdebug/rules",)),
}


@click.command(help=__doc__)
@click.argument("names", nargs=-1, type=click.Choice(list(SUBJECTS)))
@click.option("--workers", default=2, show_default=True, help="Changes that are tested at a time.")
def main(names: tuple[str, ...], workers: int) -> None:
    """Test the named subjects, or all."""
    for name in names or SUBJECTS:
        copy = copy_checkout(name, SUBJECTS[name])
        mutmut = str(Path(sys.executable).with_name("mutmut"))
        done = subprocess.run([mutmut, "run", "--max-children", str(workers)], cwd=copy, check=False)
        if done.returncode not in (0, 1):
            raise click.ClickException(f"mutmut ended with {done.returncode} for {name}; its folder is {copy}.")
        listed = subprocess.run(
            [mutmut, "results", "--all", "true"], cwd=copy, check=True, capture_output=True, text=True
        ).stdout
        states = read_states(listed)
        if set(states.values()) <= {"not checked"}:
            raise click.ClickException(f"No change of {name} was checked: its tests fail in {copy} without one.")
        survivors = [mutant for mutant, state in states.items() if state in ("survived", "no tests")]
        report = COPIES / f"{name}.txt"
        with report.open("w", encoding="utf-8") as file:
            for mutant in survivors:
                shown = subprocess.run([mutmut, "show", mutant], cwd=copy, check=True, capture_output=True, text=True)
                file.write(f"{states[mutant]}: {shown.stdout}\n")
        counts = ", ".join(f"{count} {state}" for state, count in sorted(Counter(states.values()).items()))
        click.echo(f"{name}: {len(states)} changes: {counts}. What no test noticed is in {report}.")


def read_states(listed: str) -> dict[str, str]:
    """Return what became of each change, of mutmut's list of them."""
    return dict(line.strip().rsplit(": ", 1) for line in listed.splitlines() if ": " in line)


def copy_checkout(name: str, subject: Subject) -> Path:
    """Copy what git tracks, as it is in the working tree, and write mutmut's settings beside it."""
    copy = COPIES / name
    shutil.rmtree(copy, ignore_errors=True)
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=CHECKOUT, check=True, capture_output=True, text=True).stdout
    for path in filter(None, listed.split("\0")):
        if (CHECKOUT / path).is_file():
            (copy / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(CHECKOUT / path, copy / path)
    settings = {"packages": PACKAGES, "others": OTHERS, "paths": subject.paths, "tests": subject.tests}
    indented = {key: "\n    ".join(values) for key, values in settings.items()}
    (copy / "setup.cfg").write_text(SETTINGS.format(**indented), encoding="utf-8")
    return copy


if __name__ == "__main__":
    main()
