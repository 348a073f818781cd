"""The command `python -m smdebug.trials PATH`, which describes a run."""

import argparse
import json
import os
import sys
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from smdebug.analysis.plots import ReductionRequired, plot
from smdebug.exceptions import SMDebugError, SMDebugValueError, TensorUnavailable, TensorUnavailableForStep
from smdebug.mode_keys import ModeKeys
from smdebug.trials.create import create_trial, open_files
from smdebug.trials.run_collections import check_collections
from smdebug.trials.summary import describe_run, describe_values
from smdebug.trials.trial import Trial

# Less than difflib's 0.6: names of tensors are long, and only a part of one is remembered.
_SIMILARITY = 0.5
_STATISTICS = ("min", "max", "mean", "std")
_EPILOG = """\
examples:
  python -m smdebug.trials /tmp/run                        collections, tensors, steps, workers, sizes
  python -m smdebug.trials s3://bucket/job/debug-output    the same on S3, at AWS_ENDPOINT_URL
  python -m smdebug.trials /tmp/run --tensor loss          a tensor's statistics at each step
  python -m smdebug.trials /tmp/run --tensor loss --mode EVAL
  python -m smdebug.trials /tmp/run --tensor loss --plot loss.png
  python -m smdebug.trials /tmp/run --json | jq .steps     JSON output

A run is a folder that contains collections, events and index: a hook's out_dir, or S3OutputPath/<job>/debug-output.
A run that is still being written is described as it is now. The exit code is 0, or 1 if PATH is not a run or cannot
be read; then one line says why.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Describe a run; return the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m smdebug.trials",
        description="Describes a run of smdebug, in a folder or on S3, finished or still being written.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("path", metavar="PATH", help="a folder, or s3://bucket/prefix")
    parser.add_argument("--tensor", metavar="NAME", help="print statistics of this tensor at each step")
    parser.add_argument(
        "--mode",
        type=str.upper,
        choices=[mode.name for mode in ModeKeys],
        default=ModeKeys.GLOBAL.name,
        help="only steps of this mode, in its numbers (default GLOBAL: all global steps)",
    )
    parser.add_argument("--plot", metavar="FILE", help="plot --tensor, a name or a regex, into a .png or .svg file")
    parser.add_argument("--reduction", metavar="NAME", help="with --plot: mean, min, l2, ... of larger tensors")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    parser.add_argument("--job", metavar="NAME", help=argparse.SUPPRESS)  # whose run it is, for messages
    options = parser.parse_args(arguments)
    trial: Trial | None = None
    try:
        _check_openable(options.path, options.job)
        trial = create_trial(options.path)
        mode = ModeKeys[options.mode]
        _check_saved(trial, mode)
        if options.tensor is None:
            run = describe_run(trial, mode)
            _write([json.dumps(run)] if options.json else _format_run(run))
        elif options.plot is not None:
            axes = plot(trial, options.tensor, options.reduction, mode=mode)
            _check_picture(options.plot, axes.figure.canvas.get_supported_filetypes())
            axes.figure.canvas.print_figure(options.plot, bbox_inches="tight")
            _write([f"Wrote {options.plot}"])
        else:
            trial.tensor(options.tensor)
            lines = describe_values(trial, options.tensor, mode)
            _write([json.dumps(list(lines))] if options.json else _format_values(lines))
    except (SMDebugError, OSError, KeyError, ValueError) as error:
        if isinstance(error, BrokenPipeError):
            # The reader has closed the pipe, as `head` does; this discards the rest of the buffer at exit.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return 0
        lister = f"smdebug-emulator tensors {options.job}" if options.job else f"{parser.prog} {options.path}"
        sys.stderr.write(f"{options.job or options.path}: {_describe_error(error, lister, trial)}\n")
        return 1
    return 0


def _describe_error(error: Exception, lister: str, trial: Trial | None) -> str:
    """Return what went wrong and what to type instead, on one line.

    Args:
        error: what smdebug, the file system or matplotlib raised.
        lister: the command that lists the tensors.
        trial: the run; None if it could not be opened.
    """
    match error:
        case TensorUnavailable():
            near = _find_similar(error.tname, trial.tensor_names()) if trial is not None else None
            meant = f"Did you mean {near}? " if near is not None else ""
            text = f"There is no tensor {error.tname}. {meant}To list the tensors: {lister}"
        case ReductionRequired():
            text = f"Tensor {error.tname} has {error.size} numbers a step: use a reduction, such as --reduction mean."
        case TensorUnavailableForStep():
            why = error.detail or "it was not saved there"
            text = f"Tensor {error.tname} has no value at step {error.step} of mode {error.mode.name}: {why}."
            text += (
                " Only reductions of it were saved: plot one of them, such as --reduction mean." * error.has_reductions
            )
        case OSError(filename=str(name)):
            text = f"{name} cannot be written or read: {error.strerror}."
        case _:
            text = str(error)
    return " ".join(text.split())


def _find_similar(name: str, known: Sequence[str]) -> str | None:
    """Return a known name that contains this one in any case, else the most similar one; None if there is neither."""
    containing = [each for each in known if name.lower() in each.lower()]
    return next(iter(containing or get_close_matches(name, known, n=1, cutoff=_SIMILARITY)), None)


def _check_openable(path: str, job: str | None) -> None:
    files = open_files(path)
    names = files.list_collections_files()
    if not names and job is not None:
        raise SMDebugValueError(
            f"no tensors have been saved: smdebug-emulator describe {job} says how far the job came."
        )
    if not names:
        raise SMDebugValueError(
            "this is not a run: it contains no collections file. Give a hook's out_dir, or the path that contains the "
            "folders collections, events and index; a training creates them with its first step."
        )
    check_collections(files)


def _check_saved(trial: Trial, mode: ModeKeys) -> None:
    modes = trial.modes()
    if mode is not ModeKeys.GLOBAL and mode not in modes:
        known = ", ".join(each.name for each in modes) or "none"
        raise SMDebugValueError(f"no step of mode {mode.name} was saved; the modes that have steps: {known}.")


def _check_picture(path: str, known: Iterable[str]) -> None:
    if Path(path).suffix.removeprefix(".").lower() not in known:
        raise SMDebugValueError(f"{path} is not a picture: use a name that ends in .png, .svg or .pdf.")


def _write(lines: Iterable[str]) -> None:
    for line in lines:
        sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def _format_run(run: dict[str, Any]) -> list[str]:
    state = "ended" if run["ended"] else "still being written, or ended without an end-of-job file"
    lines = [
        run["path"],
        f"  {state}; {_format_bytes(run['bytes'])} of tensors; workers: {', '.join(run['workers'])}",
    ]
    lines += ["", "steps"]
    for mode, steps in run["steps"].items():
        span = "" if not steps["count"] else f"  {steps['first']} to {steps['last']}"
        lines.append(f"  {'all' if mode == 'GLOBAL' else mode:<8}{steps['count']:>8}{span}")
    if run["incomplete_steps"]:
        shown = ", ".join(map(str, run["incomplete_steps"][:10]))
        lines.append(f"  not yet written by all workers: {len(run['incomplete_steps'])} ({shown} ...)")
    lines += ["", "collections and their numbers of saved tensors"]
    lines += [f"  {name:<24}{count:>6}" for name, count in run["collections"].items()]
    width = max([len(tensor["name"]) for tensor in run["tensors"]] + [6])
    lines += ["", f"{'tensor':<{width}}  {'steps':>7}  {'first':>8}  {'last':>8}  {'size':>9}  saved"]
    lines += [
        f"{tensor['name']:<{width}}  {tensor['steps']:>7}  {tensor['first']:>8}  {tensor['last']:>8}  "
        f"{_format_bytes(tensor['bytes']):>9}  {', '.join(tensor['saved'])}"
        for tensor in run["tensors"]
    ]
    if run["damaged"]:
        lines += ["", "damaged", *(f"  {reason}" for reason in run["damaged"])]
    return lines


def _format_values(values: Iterable[dict[str, Any]]) -> Iterable[str]:
    """Format one line for each step and worker, of at most 80 columns.

    dtype and shape are above the table's header, and in a line of their own wherever they change.
    """
    statistics = "".join(f"  {name:>11}" for name in _STATISTICS)
    header = f"{'step':>7}  {'worker':<8}{statistics} {'nan':>4} {'inf':>4}"
    kind, is_headed = "", False
    for value in values:
        if "dtype" in value and kind != (kind := f"{value['dtype']}, shape {tuple(value['shape'])}"):
            yield kind
        if not is_headed:
            yield header
            is_headed = True
        prefix = f"{value['step']:>7}  {value['worker']:<8}"
        if "dtype" not in value:
            reductions = (f"{name} {number:.6g}" for name, number in value.get("reductions", {}).items())
            yield f"{prefix}  {value.get('error') or ', '.join(reductions)}"
            continue
        numbers = "".join(f"  {_format_number(value.get(name)):>11}" for name in _STATISTICS)
        yield f"{prefix}{numbers} {value.get('nan', '-'):>4} {value.get('inf', '-'):>4}"
    if not is_headed:
        yield header


def _format_number(number: float | None) -> str:
    return "-" if number is None else f"{number:.5g}"


def _format_bytes(count: int) -> str:
    size = float(count)
    for unit in ("B", "kB", "MB"):
        if size < 1000:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} GB"


if __name__ == "__main__":
    sys.exit(main())
