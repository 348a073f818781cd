"""Rules that judge the tensors of a run, step by step.

`rule` and `built_in_rule` are what rules derive from, `builtin/` one file a rule, `action/` what they do when they
fire, `measuring/` what several of them compute. `report/` and `drawing/` tell what came out; `evaluator` is the program
of a rule container, `container/` what it does before and after judging. `profiling/` are the profiler's
rules, which judge no tensors.
"""

from smdebug.rules.required_tensors import RequiredTensors, RequiredTensorsForTrial
from smdebug.rules.rule import Rule
from smdebug.rules.rule_invoker import invoke_rule

__all__ = ["RequiredTensors", "RequiredTensorsForTrial", "Rule", "invoke_rule"]
