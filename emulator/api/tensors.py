"""``/_emulator/jobs/REGION/NAME/tensors`` and ``…/rules/NAME/retry``.

The tensors that a job saved, and a rule's verdict on them.
"""

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from flask import Blueprint, jsonify, request

from emulator.api import PREFIX
from emulator.api.account_services import RequestAccounts, find_training_job, read_required
from emulator.api.run_readers import ReadError, RunReaders
from emulator.exceptions import ResourceNotFound, ValidationException
from emulator.jobs.model.training_job import TrainingJob
from emulator.services import Services

# The questions of ``smdebug.inspection`` that the last part of the path may name, with the parameters that each needs.
_QUESTIONS = {
    "series": ("tensor",),
    "histogram": ("tensor",),
    "heat-map": (),
    "values": ("tensor",),
    "confusion": ("labels", "predictions"),
}
_RETRY_SECONDS = 120.0
_MOST_PARAMETERS = 100
# Parameters that make a rule perform an action. A retry must not perform actions.
_ACTIONS = ("action_json",)


def build_tensors_pages(
    accounts: RequestAccounts, readers: RunReaders, build_environment: Callable[[str], Mapping[str, str]]
) -> Blueprint:
    """Build the routes.

    Args:
        accounts: finds the account's services.
        readers: reads the tensors.
        build_environment: builds the environment variables of a process that evaluates a rule in an account.
    """
    pages = Blueprint("tensors", __name__)

    @pages.get(f"{PREFIX}jobs/<region>/<name>/tensors")
    def describe_run(region: str, name: str) -> Any:
        account = accounts.find()
        return jsonify(readers.ask(account.account_id, _locate(account, region, name), "describe", {}))

    @pages.get(f"{PREFIX}jobs/<region>/<name>/tensors/<question>")
    def ask(region: str, name: str, question: str) -> Any:
        if question not in _QUESTIONS:
            raise ResourceNotFound(f"There is no {question[:40]}: use one of {', '.join(_QUESTIONS)}.", status=404)
        for parameter in _QUESTIONS[question]:
            read_required(parameter)
        account = accounts.find()
        arguments: dict[str, Any] = {key: value for key, value in request.args.items() if key != "account"}
        arguments["tensors"] = request.args.getlist("tensor")
        return jsonify(readers.ask(account.account_id, _locate(account, region, name), question, arguments))

    @pages.post(f"{PREFIX}jobs/<region>/<name>/rules/<rule>/retry")
    def retry(region: str, name: str, rule: str) -> Any:
        account = accounts.find()
        job = find_training_job(account, region, name)
        return jsonify(retry_rule(account, job, rule, read_parameters(), build_environment(account.account_id)))

    return pages


def _locate(account: Services, region: str, name: str) -> str:
    from emulator.jobs.staging.s3_paths import build_tensors_uri

    job = find_training_job(account, region, name)
    if "DebugHookConfig" not in job.request:
        text = f"{name} saves no tensors: it was created without a DebugHookConfig."
        raise ReadError(text, code="NoTensorsError", status=404)
    return build_tensors_uri(job)


def read_parameters() -> dict[str, str]:
    """Read the rule parameters in the request's body: strings by name.

    Raises:
        ValidationException: the body has no object ``parameters``, or the object is too large.
    """
    body = request.get_json(force=True, silent=True)
    given = body.get("parameters") if isinstance(body, dict) else None
    if not isinstance(given, dict) or len(given) > _MOST_PARAMETERS:
        raise ValidationException('Send JSON such as {"parameters": {"threshold": "0.01"}}.')
    return {str(name): str(value) for name, value in given.items()}


def retry_rule(
    account: Services, job: TrainingJob, rule: str, parameters: Mapping[str, str], environment: Mapping[str, str]
) -> dict[str, Any]:
    """Evaluate a rule again on a job that has ended, with other parameters.

    The job does not change, and no action of the rule is performed.

    Raises:
        ResourceNotFound: the job has no such rule.
        ValidationException: the job still runs, or the rule is a custom rule.
        ReadError: the evaluation took too long.
    """
    from emulator.jobs.staging.rule_configuration import build_rule_configuration, find_other_jobs

    found = [each for each in account.store.list_rule_evaluations_of(job) if each.rule_configuration_name == rule]
    if not found:
        raise ResourceNotFound(f"{job.name} has no rule {rule[:80]}.", status=404)
    if not job.ended:
        raise ValidationException(f"{job.name} has not ended: wait for its end, then try the rule again.")
    (evaluation,) = found
    before = dict(evaluation.configuration.get("RuleParameters") or {})
    if "source_s3_uri" in before or "source_s3_uri" in parameters:
        raise ValidationException(
            f"{rule} is a custom rule: its code runs in containers only. Create a job with the new parameters, or "
            "run it on the trial in a script of your own."
        )
    kept = {name: value for name, value in {**before, **parameters}.items() if name not in _ACTIONS and value != ""}
    kept["rule_to_invoke"] = before.get("rule_to_invoke", rule)
    with tempfile.TemporaryDirectory(prefix="smdebug-retry-") as scratch:
        folder = Path(scratch)
        content = build_rule_configuration(
            evaluation,
            job,
            find_other_jobs(account.store, evaluation),
            output_path=str(folder / "output"),
            verdict_path=str(folder / "verdict.json"),
        )
        (folder / "rule.json").write_text(json.dumps({**content, "RuleParameters": kept}))
        said = _run_evaluator(folder, environment)
        verdict = _read_json(folder / "verdict.json") or {}
        plot = folder / "output" / "plot.svg"
        return {
            "name": rule,
            "parameters": kept,
            "status": verdict.get("RuleEvaluationStatus", "Error"),
            "details": verdict.get("StatusDetails") or said,
            "report": _read_json(folder / "output" / "report.json"),
            "plot": plot.read_text() if plot.is_file() else None,
        }


def _run_evaluator(folder: Path, environment: Mapping[str, str]) -> str:
    """Run the program of the rule container and return the last line that it prints."""
    command = [sys.executable, "-P", "-m", "smdebug.rules.evaluator"]
    try:
        done = subprocess.run(
            command,
            env={**environment, "SMDEBUG_RULE_CONFIG_PATH": str(folder / "rule.json"), "TMPDIR": str(folder)},
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=_RETRY_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        text = f"The rule still ran after {_RETRY_SECONDS:.0f} s: give start_step and end_step to judge fewer steps."
        raise ReadError(text, status=504) from None
    lines = done.stdout.decode(errors="replace").strip().splitlines()
    return lines[-1] if lines else f"The rule ended with exit code {done.returncode}."


def _read_json(path: Path) -> Any:
    return json.loads(path.read_bytes()) if path.is_file() else None
