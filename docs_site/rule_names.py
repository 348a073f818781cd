"""The built-in rules and what their parameters take, as data for the emulator.

``python -m docs_site.rule_names > emulator/jobs/staging/rules.json``; a test compares.
"""

import json
import sys
from collections.abc import Iterable

from smdebug.rules.builtin import find_built_in_rule, list_names
from smdebug.rules.container.rule_preparation import STEPS
from smdebug.rules.parameters import Parameter
from smdebug.rules.profiling.builtin import list_profiler_rules
from smdebug.rules.profiling.profiler_rule import SCAN


def build_table() -> dict[str, dict[str, dict[str, str]]]:
    """Build what each parameter of each rule takes, by the member of a request that holds such rules."""
    return {
        "DebugRuleConfigurations": {
            name: _describe((*STEPS, *find_built_in_rule(name).parameters)) for name in list_names()
        },
        "ProfilerRuleConfigurations": {
            name: _describe((*rule.parameters, SCAN)) for name, rule in list_profiler_rules().items()
        },
    }


def _describe(parameters: Iterable[Parameter]) -> dict[str, str]:
    expected = {each.name: f"{each.expected}{', or None' if each.default is None else ''}" for each in parameters}
    return dict(sorted(expected.items()))


if __name__ == "__main__":
    sys.stdout.write(json.dumps(build_table(), indent=1) + "\n")
