"""Rules that judge the tensors of a run, step by step.

All rules derive from the classes in `rule` and `built_in_rule`. `builtin/` has one module for each built-in rule,
`action/` the actions that a rule performs when it fires, and `measuring/` the computations that several rules share.
`report/` and `drawing/` write the results. `evaluator` is the program of a rule container, and `container/` is the work
that it does before and after an evaluation. `profiling/` has the profiler's rules, which judge no tensors.
"""

from smdebug.rules.required_tensors import RequiredTensors, RequiredTensorsForTrial
from smdebug.rules.rule import Rule
from smdebug.rules.rule_invoker import invoke_rule

__all__ = ["RequiredTensors", "RequiredTensorsForTrial", "Rule", "invoke_rule"]
