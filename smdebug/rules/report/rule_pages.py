"""Documentation of the built-in rules, generated from their code."""

import inspect
import json
from typing import Any

from smdebug.rules.built_in_rule import BuiltInRule
from smdebug.rules.builtin import find_built_in_rule, list_names

_IMAGE = "sagemaker-debugger-rules:latest"

_INTRODUCTION = """# Built-in rules

This page is written by `python -m smdebug.rules docs` from the rules themselves.

A rule is attached to a training job with `DebugRuleConfigurations`, or run on tensors that are there already:

    smdebug-emulator rules run DeadRelu --trial s3://bucket/job/debug-output --param threshold_layer=60

and in a notebook:

    from smdebug.rules import invoke_rule
    from smdebug.rules.builtin import DeadRelu
    from smdebug.trials import create_trial
    rule = DeadRelu(create_trial("s3://bucket/job/debug-output"), threshold_layer="60")
    invoke_rule(rule)

Every parameter is given as text. Lists are separated by commas; a regex may be found anywhere in a tensor's name.
`start_step` and `end_step` (global steps, the second one excluded) limit what any rule judges.

Beside its verdict a rule leaves two files under `<S3OutputPath>/<job>/rule-output/<RuleConfigurationName>/` (with
`rules run`, in the folder of `--output`): `report.json` holds the parameters, the verdict with its tensor, step, value
and threshold, the steps that were judged, and of each step the measured value that was nearest to firing; `plot.svg`
draws those values with the threshold. The pictures below are such plots, of tensors that `examples/rule_pictures.py`
makes up.

## Rules of your own

A class derived from `smdebug.rules.Rule`, in the image `sagemaker-debugger-rule-evaluator`, with `source_s3_uri` (a
.py file, several separated by commas, or a prefix) and `rule_to_invoke` (the class) in RuleParameters; every other
parameter goes to its constructor, as text or as what the annotation `int`, `float` or `bool` says.

    from smdebug.rules import Rule

    class LossTooHigh(Rule):
        def __init__(self, base_trial, limit: float = 1.0):
            super().__init__(base_trial)
            self.limit = limit

        def invoke_at_step(self, step):
            loss = self.base_trial.tensor("loss").value(step).item()
            self.watch("loss", step, loss, self.limit)  # for report.json and plot.svg
            return loss > self.limit

* `self.finding = Finding(…)` (of `smdebug.rules.rule`) before True is returned tells tensor, value, threshold and, in
  `what_to_do`, advice: they stand in the verdict, the report and the messages of actions.
* A `requirements.txt` beside the file is installed with pip before the file is imported; wheels may lie beside it.
* `other_trials` names finished jobs, or s3:// paths, separated by commas. One that has saved nothing is an error.
* `InstanceType` limits the container's memory. `VolumeSizeInGB` bounds what it writes. `LocalPath` is
  where the rule's files are in the container, `S3OutputPath` where they go.
* A rule that cannot be imported, raises, exits or uses up its memory is an Error with the reason. One that never ends
  is stopped by StopProcessingJob, or when MaxRuntimeInSeconds has passed again after the training's end. None of this
  holds up the training.

## Actions

    rule_configs.ActionList(rule_configs.StopTraining(), rule_configs.Email("a@b.com"), rule_configs.SMS("+15550100"))

as `actions=` of `Rule.sagemaker`, or their JSON as the parameter `action_json`. StopTraining stops the one job in
progress whose name begins with the prefix (the job's own name by default). Email and SMS publish to the SNS topic
SMDebugRules; no mail is sent, `smdebug-emulator events` shows the messages, with the events of all jobs (`--follow`,
`--json`).

## The built-in rules

What they say with their defaults of ten healthy and ten sick trainings, and which parameters to choose instead, stands
in [rules-study.md](rules-study.md).
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
    parts += ["With the SDK:", _indent(_build_sdk_example(rule))]
    parts += ["As JSON, for CreateTrainingJob:", _indent(_build_json_example(rule))]
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
        return "It has no parameters."
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
    letters = [
        f"_{letter}"
        if at and letter.isupper() and not (name[at - 1].isupper() and not name[at + 1 : at + 2].islower())
        else letter
        for at, letter in enumerate(name)
    ]
    return "".join(letters).lower()


def _indent(text: str) -> str:
    return "\n".join(f"    {line}".rstrip() for line in text.splitlines())
