"""Documentation of the built-in rules, generated from their code."""

import inspect
import json
import re
from textwrap import indent
from typing import Any

from smdebug.rules.built_in_rule import BuiltInRule
from smdebug.rules.builtin import find_built_in_rule, list_names

_IMAGE = "sagemaker-debugger-rules:latest"

_INTRODUCTION = """# Built-in rules

This page is generated from the rules by `python -m smdebug.rules docs`.

You attach a rule to a training job with `DebugRuleConfigurations`. You can also run it on saved tensors:

    smdebug-emulator rules run DeadRelu --trial s3://bucket/job/debug-output --param threshold_layer=60

In a notebook:

    from smdebug.rules import invoke_rule
    from smdebug.rules.builtin import DeadRelu
    from smdebug.trials import create_trial
    rule = DeadRelu(create_trial("s3://bucket/job/debug-output"), threshold_layer="60")
    invoke_rule(rule)

Every parameter is given as text. Lists are separated by commas. A regex may match anywhere in a tensor's name. With
`start_step` and `end_step`, every rule judges only the global steps from `start_step` up to, but not including,
`end_step`.

Besides its verdict, a rule writes two files to `<S3OutputPath>/<job>/rule-output/<RuleConfigurationName>/`, or with
`rules run` to the folder of `--output`:

* `report.json` has the parameters, the verdict with its tensor, step, value and threshold, the steps that were judged,
  and for each step the measured value that was closest to firing.
* `plot.svg` shows these values with the threshold. The pictures below are such plots, of made-up tensors
  (`examples/rule_pictures.py`).

## Rules of your own

Derive a class from `smdebug.rules.Rule`:

    from smdebug.rules import Rule

    class LossTooHigh(Rule):
        def __init__(self, base_trial, limit: float = 1.0):
            super().__init__(base_trial)
            self.limit = limit

        def invoke_at_step(self, step):
            highest = 0.0
            for name in self.base_trial.tensor_names(step=step, collection="losses"):
                highest = max(highest, self.base_trial.tensor(name).value(step).item())
            self.watch("loss", step, highest, self.limit)  # for report.json and plot.svg
            return highest > self.limit

Tensors have other names in other scripts; a loss of PyTorch may be `CrossEntropyLoss_output_0`. The command
`smdebug-emulator tensors JOB` lists those of a job. A rule passes over the steps that lack a tensor for which it asks.

In the rule configuration, use the image `sagemaker-debugger-rule-evaluator`. In RuleParameters, `source_s3_uri` is a
.py file, several files separated by commas, or a prefix, and `rule_to_invoke` is the name of the class. Every other
parameter is an argument of the constructor: text, or converted if its annotation is `int`, `float` or `bool`.

* To report the tensor, the value, the threshold and advice (`what_to_do`), set `self.finding = Finding(…)` (from
  `smdebug.rules.rule`) before you return True. They appear in the verdict, the report and the messages of actions.
* A `requirements.txt` beside the file is installed with pip before the file is imported. Wheels may be beside it.
* `other_trials` has names of finished jobs, or s3:// paths, separated by commas. Each of them must have saved tensors.
* `InstanceType` limits the container's memory, and `VolumeSizeInGB` what it writes. `LocalPath` is the folder of the
  rule's files in the container, and `S3OutputPath` the place to which they are uploaded.
* If a rule cannot be imported, raises, exits or runs out of memory, its status is Error, with the reason. If it never
  ends, StopProcessingJob stops it, or the emulator does once MaxRuntimeInSeconds has passed again after the training's
  end. The training does not wait for any of this.

## Actions

    rule_configs.ActionList(rule_configs.StopTraining(), rule_configs.Email("a@b.com"), rule_configs.SMS("+15550100"))

Give them to `Rule.sagemaker` as `actions=`, or their JSON as the parameter `action_json`. StopTraining stops the one
job in progress whose name begins with the prefix, by default the job's own name. Email and SMS publish to the SNS
topic SMDebugRules. No mail is sent: `smdebug-emulator events` shows the messages together with the events of all jobs
(`--follow`, `--json`).

## The built-in rules

[rules-study.md](rules-study.md) shows their verdicts on ten healthy and ten sick trainings, with their defaults and
with parameters that suit these trainings better.
"""


def get_summary(rule: type[BuiltInRule]) -> str:
    """Return the first paragraph of the rule's description, as one line."""
    return " ".join(_paragraphs(rule)[0].split())


def format_default(value: Any) -> str:
    """Return a default value as the text with which it could be given."""
    if isinstance(value, list):
        return ",".join(format_default(each) for each in value)
    return repr(value).removesuffix(".0") if isinstance(value, float) else str(value)


def describe_rule(rule: type[BuiltInRule]) -> str:
    """Describe one rule in Markdown: formula, parameters, and an example configuration in both forms."""
    parts = [f"## {rule.__name__}", *_paragraphs(rule), f"Frameworks: {', '.join(rule.frameworks)}."]
    if rule.configure:
        parts.append(f"What to configure: {rule.configure}")
    parts.append(_build_table(rule))
    if rule.advice:
        parts.append("What to do when it fires:\n\n" + "\n".join(f"* {line}" for line in rule.advice))
    if rule.can_fire:
        parts.append(f"![{rule.__name__} fires on made-up tensors](rules/{rule.__name__}.svg)")
    parts += ["With the SDK:", indent(_build_sdk_example(rule), "    ")]
    parts += ["As JSON, for CreateTrainingJob:", indent(_build_json_example(rule), "    ")]
    return "\n\n".join(parts) + "\n"


def build_page() -> str:
    """Return the page of all rules in Markdown."""
    rules = [find_built_in_rule(name) for name in list_names()]
    contents = "\n".join(f"* [{rule.__name__}](#{rule.__name__.lower()}): {get_summary(rule)}" for rule in rules)
    return "\n".join([_INTRODUCTION, contents, "", *(describe_rule(rule) for rule in rules)])


def _paragraphs(rule: type[BuiltInRule]) -> list[str]:
    # The text from "Attributes:" on is for users of the class, not for users who configure the rule.
    return inspect.cleandoc(str(rule.__doc__)).partition("\n\nAttributes:")[0].split("\n\n")


def _build_table(rule: type[BuiltInRule]) -> str:
    rows = [(each.name, format_default(each.default), each.expected) for each in rule.parameters]
    if rule.compares_runs:
        rows.insert(0, ("other_trials", "required", "names of finished training jobs, or s3:// paths"))
    if not rows:
        return "The rule has no parameters."
    lines = ["| parameter | default | value |", "|---|---|---|"]
    return "\n".join(lines + [f"| `{name}` | `{_escape(default)}` | {value} |" for name, default, value in rows])


def _escape(text: str) -> str:
    return text.replace("|", "\\|")


def _build_sdk_example(rule: type[BuiltInRule]) -> str:
    lines = ["from sagemaker.debugger import CollectionConfig, Rule, rule_configs", ""]
    lines += ["Rule.sagemaker(", f"    base_config=rule_configs.{_to_function_name(rule.__name__)}(),"]
    if rule.example:
        lines.append(f"    rule_parameters={json.dumps(dict(rule.example))},")
    if rule.collections:
        lines.append("    collections_to_save=[")
        lines += [
            f"        CollectionConfig(name={json.dumps(name)}, parameters={json.dumps(dict(parameters))}),"
            for name, parameters in rule.collections.items()
        ]
        lines.append("    ],")
    return "\n".join([*lines, ")"])


def _build_json_example(rule: type[BuiltInRule]) -> str:
    content = {
        "DebugHookConfig": {
            "S3OutputPath": "s3://bucket/prefix",
            "CollectionConfigurations": [
                {"CollectionName": name, "CollectionParameters": dict(parameters)}
                for name, parameters in rule.collections.items()
            ],
        },
        "DebugRuleConfigurations": [
            {
                "RuleConfigurationName": rule.__name__,
                "RuleEvaluatorImage": _IMAGE,
                "RuleParameters": {"rule_to_invoke": rule.__name__, **rule.example},
            }
        ],
    }
    return json.dumps(content, indent=2)


def _to_function_name(name: str) -> str:
    """Return its function name in rule_configs: dead_relu for DeadRelu, nlp_sequence_ratio for NLPSequenceRatio."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()
