"""ruleconfig.json of a rule container, with its parameters sorted by recipient."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from smdebug.exceptions import SMDebugValueError
from smdebug.storage.output import is_s3_path

RULE_CONFIG_PATH_ENV_STR = "SMDEBUG_RULE_CONFIG_PATH"
DEFAULT_RULE_CONFIG_PATH = "/opt/ml/config/ruleconfig.json"

_RULE_TO_INVOKE = "rule_to_invoke"
_SOURCE = "source_s3_uri"
ACTIONS = "action_json"
"""The parameter that contains a rule's built-in actions."""
_OTHER_TRIALS = re.compile(r"other_trials|other_trial_\d+")


@dataclass(frozen=True)
class RuleConfig:
    """Configuration of one rule evaluation.

    Attributes:
        training_job_name: the job to judge.
        configuration_name: the rule's RuleConfigurationName.
        rule_to_invoke: name of a built-in rule, or of a class in the source.
        is_named: whether the parameters name it; otherwise it is the configuration_name.
        source_s3_uri: location of a custom rule's code; None for a built-in rule.
        parameters: the remaining RuleParameters, as text, for the rule itself.
        other_trials: S3 paths or training job names of runs to compare with.
        job_tensors: location of the tensors of training jobs, by job name, as far as the service provided it.
        profiler_uri: location of the job's system metrics and trace events; None for a rule that judges tensors.
        tensors_uri: location of the run.
        verdict_path: the file of the verdict.
        output_path: folder for all files that the rule writes.
    """

    training_job_name: str
    configuration_name: str
    rule_to_invoke: str
    source_s3_uri: str | None
    parameters: dict[str, str]
    other_trials: tuple[str, ...]
    tensors_uri: str
    verdict_path: Path
    output_path: Path
    job_tensors: Mapping[str, str] = field(default_factory=dict)
    profiler_uri: str | None = None
    is_named: bool = True

    @property
    def assumption(self) -> str:
        """A sentence for a rule that is not found: where its name is from, if no parameter gives it; else empty."""
        if self.is_named:
            return ""
        return f" {self.rule_to_invoke} is the RuleConfigurationName: the parameter {_RULE_TO_INVOKE} is missing."

    @property
    def actions(self) -> str:
        """JSON of the rule's actions, or blank."""
        return self.parameters.get(ACTIONS, "")

    def locate_other_trial(self, given: str) -> str:
        """Return the path of another run: an S3 path unchanged; for a job's name, the path beside the job to judge."""
        if is_s3_path(given):
            return given
        if given in self.job_tensors:
            return self.job_tensors[given]
        parent, _, tail = self.tensors_uri.rpartition(f"/{self.training_job_name}/")
        if not parent:
            raise SMDebugValueError(
                f"Where the tensors of the other trial {given!r} lie cannot be told from {self.tensors_uri}: "
                "give their path as s3://bucket/prefix."
            )
        return f"{parent}/{given}/{tail}"


def read_rule_config(path: Path) -> RuleConfig:
    """Read ruleconfig.json.

    Raises:
        SMDebugValueError: the file is missing, is not JSON, or lacks a setting that a rule evaluation needs.
    """
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        return parse_rule_config(content)
    except FileNotFoundError as error:
        raise SMDebugValueError(
            f"There is no rule configuration at {path}. {RULE_CONFIG_PATH_ENV_STR} names the file."
        ) from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise SMDebugValueError(f"The rule configuration {path} cannot be used: {error!r}.") from error


def parse_rule_config(content: Mapping[str, Any]) -> RuleConfig:
    """Build a RuleConfig from the parsed file; raises KeyError for a missing setting."""
    parameters = {name: str(value) for name, value in (content.get("RuleParameters") or {}).items()}
    named = parameters.pop(_RULE_TO_INVOKE, None)
    others = [parameters.pop(key) for key in sorted(parameters) if _OTHER_TRIALS.fullmatch(key)]
    return RuleConfig(
        training_job_name=content["TrainingJobName"],
        configuration_name=content["RuleConfigurationName"],
        rule_to_invoke=named or content["RuleConfigurationName"],
        source_s3_uri=parameters.pop(_SOURCE, None),
        parameters=parameters,
        other_trials=tuple(part.strip() for text in others for part in text.split(",") if part.strip()),
        tensors_uri=content["TensorsS3Uri"],
        verdict_path=Path(content["VerdictPath"]),
        output_path=Path(content["OutputPath"]),
        job_tensors=dict(content.get("TensorsS3UriOfJobs") or {}),
        profiler_uri=content.get("ProfilerS3Uri"),
        is_named=bool(named),
    )
