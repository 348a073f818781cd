"""ProfilerReport: all other profiler rules in one, with a page and a notebook."""

import ast
from collections.abc import Mapping
from typing import Any

from smdebug.exceptions import SMDebugValueError
from smdebug.profiler.system_samples import Sample
from smdebug.profiler.trace_events import TraceEvent
from smdebug.rules.parameters import boolean
from smdebug.rules.profiling import builtin
from smdebug.rules.profiling.job_record import JobRecord
from smdebug.rules.profiling.profiler_rule import SCAN, ProfiledJob, ProfilerFinding, ProfilerRule
from smdebug.rules.profiling.report.notebook import render_notebook
from smdebug.rules.profiling.report.page import render_report
from smdebug.rules.wording import count_noun

# Where the SDK puts the parameters of the rules, as the text of a Python dictionary.
_CUSTOM = "custom_rule_parameters"


def split_parameters(given: Mapping[str, Any], rules: Mapping[str, type[ProfilerRule]]) -> dict[str, dict[str, Any]]:
    """Return parameters by the rule that they are for; those of no rule under an empty name.

    A parameter of a rule is given as `<Rule>_<parameter>`, in any case, by itself or in `custom_rule_parameters`.

    >>> split_parameters({"BatchSize_window": 7, "custom_rule_parameters": "{'x': 1}"}, {"BatchSize": ProfilerRule})
    {'': {'x': 1}, 'BatchSize': {'window': 7}}

    Raises:
        SMDebugValueError: the text of custom_rule_parameters is not a dictionary.
    """
    text = given.get(_CUSTOM)
    try:
        custom = ast.literal_eval(text.strip()) if isinstance(text, str) and text.strip() else text
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        custom = text
    if custom is None or custom == "":
        custom = {}
    if not isinstance(custom, Mapping):
        raise SMDebugValueError(
            f"Rule ProfilerReport: {_CUSTOM} is {text!r}, expected the text of a dictionary such as "
            "\"{'CPUBottleneck_threshold': 80}\"."
        )
    found: dict[str, dict[str, Any]] = {}
    for key, value in {**custom, **{name: each for name, each in given.items() if name != _CUSTOM}}.items():
        owner, _, name = str(key).partition("_")
        rule = next((each for each in rules if each.lower() == owner.lower()), "")
        found.setdefault(rule, {})[name.lower() if rule else str(key)] = value
    return found


class ProfilerReport(ProfilerRule):
    """Runs all other profiler rules, and fires as often as they do together.

    It writes their JSON, a page and a notebook, and updates them while the job runs. Give a parameter of a rule as
    `<Rule>_<parameter>`. It never sends data to anybody, whatever opt_out_telemetry says.
    """

    parameters = (boolean("opt_out_telemetry", default=False),)
    inspects = "system metrics and trace events"
    concludes_at_end = True

    def __init__(self, **given: Any) -> None:
        classes = {name: rule for name, rule in builtin.list_profiler_rules().items() if name != type(self).__name__}
        by_rule = split_parameters(given, classes)
        own = by_rule.pop("", {})
        unknown = sorted(own.keys() - {each.name for each in (*self.parameters, SCAN)})
        if unknown:
            raise SMDebugValueError(
                f"Rule {self.name}: there is no parameter {', '.join(map(repr, unknown))}. Give those of a rule as "
                f"<Rule>_<parameter>; the rules are: {', '.join(classes)}."
            )
        scan = {SCAN.name: own[SCAN.name]} if SCAN.name in own else {}
        self.rules = [rule(**{**scan, **by_rule.get(name, {})}) for name, rule in classes.items()]
        super().__init__(**own)

    def _prepare(self) -> None:
        self._record = JobRecord()

    def add_sample(self, sample: Sample) -> None:
        self.data_points += 1
        self._record.add_sample(sample)
        for rule in self.rules:
            rule.add_sample(sample)

    def add_event(self, event: TraceEvent) -> None:
        self.data_points += 1
        self._record.add_event(event)
        for rule in self.rules:
            rule.add_event(event)

    def finish(self) -> None:
        for rule in self.rules:
            rule.finish()
            self.triggered += rule.triggered
            self.violations += rule.violations
            self.findings += [
                ProfilerFinding(each.node, each.time, each.value, each.threshold, f"{rule.name}, {each.text}")
                for each in rule.findings[:1]
            ]
        fired = ", ".join(f"{each.name} {count_noun(each.triggered, 'time')}" for each in self.rules if each.triggered)
        self.advice = (f"Fired: {fired}.", "For the findings and what to do, see profiler-output/profiler-report.html.")

    def remark(self) -> str:
        """Say which rules had nothing to judge."""
        silent = [rule.name for rule in self.rules if not rule.data_points]
        judged = [rule for rule in self.rules if rule.data_points]
        early = [rule.name for rule in judged if rule.remark().startswith("Nothing was judged")]
        return " ".join(
            f"{said}: {', '.join(names)}."
            for said, names in (
                ("Rules with nothing to judge", silent),
                ("Rules with too few data points for their patience", early),
            )
            if names
        )

    def render_files(self, job: ProfiledJob) -> dict[str, str]:
        files = {name: content for rule in self.rules for name, content in rule.render_files(job).items()}
        return {
            **files,
            "profiler-report.html": render_report(job, self._record, self.rules),
            "profiler-report.ipynb": render_notebook(job),
        }
