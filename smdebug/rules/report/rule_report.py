"""Report of a rule evaluation: subject, outcome and measured values."""

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from smdebug.mode_keys import ModeKeys
from smdebug.rules.built_in_rule import BuiltInRule
from smdebug.rules.container.verdict import Verdict
from smdebug.rules.report.rule_plot import draw_plot
from smdebug.rules.rule import Finding, Rule
from smdebug.rules.watched_quantity import to_json_number

REPORT_FILE = "report.json"
PLOT_FILE = "plot.svg"


@dataclass
class RuleReport:
    """Data collected during a rule evaluation and written at its end.

    Attributes:
        rule_name: the rule.
        configuration_name: its RuleConfigurationName.
        run: the training job, or the location of its tensors.
        parameters: the parameters as given.
        rule: the rule, once it is created.
        first_step, last_step: the first and the last global step at which the rule was evaluated.
        evaluated: number of steps that the rule judged.
        passed_over: number of steps that lacked the data that it reads.
        steps: number of steps of both kinds, by mode.
        values: number of steps in which the rule had something to judge, by mode. Rules compare steps of one mode.
    """

    rule_name: str
    configuration_name: str
    run: str
    parameters: Mapping[str, Any]
    rule: Rule | None = None
    first_step: int | None = None
    last_step: int | None = None
    evaluated: int = 0
    passed_over: int = 0
    steps: Counter[ModeKeys] = field(default_factory=Counter)
    values: Counter[ModeKeys] = field(default_factory=Counter)

    def count(self, step: int, mode: ModeKeys, *, evaluated: bool, with_values: bool) -> None:
        """Count a step, and whether the rule had anything to judge in it."""
        self.first_step = step if self.first_step is None else self.first_step
        self.last_step = step
        self.evaluated += evaluated
        self.passed_over += not evaluated
        self.steps[mode] += 1
        self.values[mode] += with_values

    @property
    def has_one_value(self) -> bool:
        """Whether no mode has more than one step in which the rule had something to judge."""
        return max(self.values.values(), default=0) <= 1

    @property
    def has_few_values(self) -> bool:
        """Whether every mode has at most one such step, or fewer than half of its steps are such ones."""
        return not any(count > 1 and 2 * count >= self.steps[mode] for mode, count in self.values.items())

    def build(self, verdict: Verdict) -> dict[str, Any]:
        """Return the content of report.json."""
        found = self._get_finding(verdict)
        finding = None
        if found is not None:
            finding = {name.title().replace("_", ""): value for name, value in found.to_json().items()}
        quantities = self.rule.watched_quantities.values() if self.rule is not None else ()
        return {
            "Rule": self.rule_name,
            "RuleConfigurationName": self.configuration_name,
            "Run": self.run,
            "RuleParameters": _to_json(self.rule.values if isinstance(self.rule, BuiltInRule) else self.parameters),
            "RuleEvaluationStatus": verdict.status,
            "StatusDetails": verdict.details,
            "Finding": finding,
            "StepsEvaluated": {
                "First": self.first_step,
                "Last": self.last_step,
                "Evaluated": self.evaluated,
                "PassedOver": self.passed_over,
                "WithValues": self.values.total(),
            },
            "Series": [quantity.to_json() for quantity in quantities],
        }

    def _get_finding(self, verdict: Verdict) -> Finding | None:
        found = None if self.rule is None or verdict.step is None else self.rule.finding
        # A user's rule may use this attribute name for another purpose.
        return found if isinstance(found, Finding) else None

    def write(self, verdict: Verdict, folder: Path) -> None:
        """Write report.json, and plot.svg if the rule measured anything.

        Raises:
            OSError: the folder cannot be written to.
        """
        folder.mkdir(parents=True, exist_ok=True)
        content = json.dumps(self.build(verdict), default=str, allow_nan=False)
        (folder / REPORT_FILE).write_text(content + "\n", encoding="utf-8")
        quantities = list(self.rule.watched_quantities.values()) if self.rule is not None else []
        if quantities:
            title = f"{self.configuration_name}: {verdict.status}"
            plot = draw_plot(title, quantities, verdict.step, self._get_finding(verdict))
            (folder / PLOT_FILE).write_text(plot, encoding="utf-8")


def _to_json(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters with their numbers in a form that JSON can represent."""

    def convert(value: Any) -> Any:
        if isinstance(value, list):
            return [convert(each) for each in value]
        return to_json_number(value) if isinstance(value, float) else value

    return {name: convert(value) for name, value in parameters.items()}
