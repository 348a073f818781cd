"""Built-in rules on the command line.

python -m smdebug.rules list | show NAME | run NAME --trial PATH_OR_S3 [--param NAME=VALUE …] | docs

`run` judges a run step by step, as a rule container does, and ends with exit code 0 for NoIssuesFound, 2 for
IssuesFound and 1 for Error, which a command line that cannot be understood is too.
"""

import argparse
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

from smdebug.exceptions import SMDebugError, SMDebugValueError
from smdebug.rules.built_in_rule import BuiltInRule
from smdebug.rules.builtin import find_built_in_rule, list_names
from smdebug.rules.container.rule_preparation import check_other_trials, split_steps
from smdebug.rules.container.verdict import ERROR, ISSUES_FOUND, NO_ISSUES_FOUND, Verdict
from smdebug.rules.evaluator import evaluate_to_end
from smdebug.rules.report.rule_pages import build_page, describe_rule, get_summary
from smdebug.rules.report.rule_report import RuleReport
from smdebug.storage.output import is_s3_path
from smdebug.trials import Trial, create_trial
from smdebug.trials.create import open_files
from smdebug.trials.run_collections import check_collections

EXIT_CODES = {NO_ISSUES_FOUND: 0, ISSUES_FOUND: 2, ERROR: 1}
_INTERRUPTED = 130
_SAY_EVERY_S = 0.5


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code."""
    options = _build_parser().parse_args(arguments)
    try:
        if options.action == "run":
            return _run(options)
        if options.action == "list":
            _write("".join(f"{name:<28}{get_summary(find_built_in_rule(name))}\n" for name in list_names()))
        else:
            _write(describe_rule(find_built_in_rule(options.name)) if options.action == "show" else build_page())
    except SMDebugValueError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


def judge_trial(options: argparse.Namespace) -> tuple[Verdict, BuiltInRule | None]:
    """Evaluate the rule that the options name; file errors and errors raised on purpose become a verdict."""
    rule: BuiltInRule | None = None
    try:
        rule_class = find_built_in_rule(options.name)
        given, start, end = split_steps(rule_class, _parse_parameters(options.param))
        check_other_trials(rule_class, options.other_trial)
        others = [_open(path, may_begin=False) for path in options.other_trial] or None
        trial = _open(options.trial, may_begin=not options.no_wait)
        rule = _show_progress(rule_class)(trial, others, **given)
        report = RuleReport(options.name, options.name, options.trial, rule.values, rule)
        start = start if options.start_step is None else options.start_step
        end = end if options.end_step is None else options.end_step
        if end is None and options.no_wait:
            end = max(trial.steps(), default=-1) + 1
        verdict = evaluate_to_end(rule, start, end, options.output, report)
        if options.output is not None:
            report.write(verdict, options.output)
    except SMDebugError as error:
        return Verdict(ERROR, str(error)), rule
    except OSError as error:
        return Verdict(ERROR, f"{type(error).__name__}: {error}"), rule
    return verdict, rule


def _run(options: argparse.Namespace) -> int:
    try:
        verdict, rule = judge_trial(options)
    except KeyboardInterrupt:
        sys.stderr.write("\nInterrupted.\n")
        return _INTERRUPTED
    finding = rule.finding if rule is not None and verdict.status == ISSUES_FOUND else None
    if options.json:
        content: dict[str, Any] = {
            "RuleEvaluationStatus": verdict.status,
            "StatusDetails": verdict.details,
            "Step": verdict.step,
        }
        if finding is not None:
            content["Finding"] = finding.to_json()
        _write(json.dumps(content) + "\n")
    else:
        _write(f"{verdict.status}: {verdict.details}\n")
    return EXIT_CODES[verdict.status]


def _open(path: str, *, may_begin: bool) -> Trial:
    # Without this check the rule waits for a missing folder, as it waits for a training that has not started.
    if not is_s3_path(path) and not Path(path).expanduser().is_dir():
        raise SMDebugValueError(f"There is no folder {path}: --trial is a run's folder, or s3://bucket/prefix.")
    files = open_files(path)
    has_begun = bool(files.list_collections_files())
    if not may_begin:
        if not has_begun:
            raise SMDebugValueError(f"Nothing was saved at {path}.")
        check_collections(files)
    elif not has_begun:
        sys.stderr.write(f"Nothing was saved at {path} yet: waiting for the run to begin (Ctrl-C ends).\n")
        sys.stderr.flush()
    return create_trial(path)


def _parse_parameters(given: Sequence[str]) -> dict[str, str]:
    parameters = {}
    for each in given:
        name, equals, value = each.partition("=")
        if not equals or not name:
            raise SMDebugValueError(f"--param {each!r} is not NAME=VALUE.")
        parameters[name] = value
    return parameters


def _show_progress(rule_class: type[BuiltInRule]) -> type[BuiltInRule]:
    """Return the same rule, reporting judged steps on standard error, in lines or in one line that is updated."""
    said_at = time.monotonic()

    def invoke_at_step(self: BuiltInRule, step: int) -> bool:
        nonlocal said_at
        fires = rule_class.invoke_at_step(self, step)
        now = time.monotonic()
        if now - said_at >= _SAY_EVERY_S:
            said_at = now
            known = self.base_trial.steps(show_incomplete_steps=True)
            line = f"{self.rule_name}: step {step} of {known[-1]}, tensors looked at: {self.inspected}"
            sys.stderr.write(f"\r{line}\033[K" if sys.stderr.isatty() else f"{line}\n")
            sys.stderr.flush()
        return fires

    def finish(self: BuiltInRule) -> None:
        rule_class.finish(self)
        if sys.stderr.isatty():
            sys.stderr.write("\r\033[K")

    return type(rule_class.__name__, (rule_class,), {"invoke_at_step": invoke_at_step, "finish": finish})


def _write(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()


_EPILOG = (
    "exit codes of run: 0 NoIssuesFound, 2 IssuesFound, 1 Error or a wrong command line, 3 no such training job, "
    f"{_INTERRUPTED} Ctrl-C"
)


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        """Report an error as argparse does, but with another exit code than that of IssuesFound."""
        self.print_usage(sys.stderr)
        self.exit(EXIT_CODES[ERROR], f"{self.prog}: error: {message}\n")


def _build_parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="smdebug-emulator rules", description=(__doc__ or "").splitlines()[0], epilog=_EPILOG)
    actions = parser.add_subparsers(dest="action", required=True)
    actions.add_parser("list", help="all built-in rules, one per line")
    show = actions.add_parser("show", help="formula, parameters and example configuration of a rule")
    show.add_argument("name", metavar="NAME", help="the rule, such as VanishingGradient")
    actions.add_parser("docs", help="the page of all rules, in Markdown")
    run = actions.add_parser("run", help="evaluate a rule on a run", epilog=_EPILOG)
    run.add_argument("name", metavar="NAME", help="the rule, such as VanishingGradient; rules list prints all")
    run.add_argument(
        "--trial",
        required=True,
        metavar="PATH_S3_OR_JOB",
        help="the run: a folder, s3://bucket/prefix, or the name (or a part of it) of a training job",
    )
    run.add_argument(
        "--param",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a parameter of the rule; rules show NAME lists them",
    )
    run.add_argument(
        "--other-trial",
        action="append",
        default=[],
        metavar="PATH_S3_OR_JOB",
        help="a run to compare with, given like --trial; may be given more than once",
    )
    run.add_argument("--start-step", type=int, metavar="N", help="first global step to judge")
    run.add_argument("--end-step", type=int, metavar="N", help="global step before which to stop")
    run.add_argument(
        "--no-wait", action="store_true", help="judge only the steps saved so far, and do not wait for more"
    )
    run.add_argument(
        "--output", type=Path, metavar="FOLDER", help="folder for the rule's files (default: the current folder)"
    )
    run.add_argument("--json", action="store_true", help="print one JSON object")
    return parser


if __name__ == "__main__":
    sys.exit(main())
