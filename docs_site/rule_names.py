"""The built-in rules and their parameters, as data for the emulator.

``python -m docs_site.rule_names > emulator/jobs/staging/rules.json``; a test compares.
"""

import json
import sys
from collections.abc import Iterable

from smdebug.rules.builtin import find_built_in_rule, list_names
from smdebug.rules.parameters import Parameter
from smdebug.rules.profiling.builtin import list_profiler_rules
from smdebug.rules.profiling.profiler_rule import SCAN

# Parameters that every rule that judges tensors accepts.
_STEPS = ("end_step", "start_step")


def build_table() -> dict[str, dict[str, list[str]]]:
    """Build the parameters of each rule, by the member of a request that holds such rules."""
    return {
        "DebugRuleConfigurations": {
            name: sorted({*_STEPS, *_list_names(find_built_in_rule(name).parameters)}) for name in list_names()
        },
        "ProfilerRuleConfigurations": {
            name: sorted(_list_names((*rule.parameters, SCAN))) for name, rule in list_profiler_rules().items()
        },
    }


def _list_names(parameters: Iterable[Parameter]) -> list[str]:
    return [parameter.name for parameter in parameters]


if __name__ == "__main__":
    sys.stdout.write(json.dumps(build_table(), indent=1) + "\n")
