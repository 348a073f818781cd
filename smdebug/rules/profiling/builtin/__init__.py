"""Profiler rules, one module each: a pure function and a thin class.

The class has the name that users give.
"""

from importlib import import_module
from pathlib import Path

from smdebug.exceptions import SMDebugValueError
from smdebug.rules.profiling.profiler_rule import ProfilerRule


def find_profiler_rule(name: str) -> type[ProfilerRule]:
    """Return the class of a profiler rule.

    Raises:
        SMDebugValueError: there is no rule of this name; the message lists the existing ones.
    """
    rules = list_profiler_rules()
    if name not in rules:
        raise SMDebugValueError(f"There is no profiler rule {name!r}. The profiler rules are: {', '.join(rules)}.")
    return rules[name]


def list_profiler_rules() -> dict[str, type[ProfilerRule]]:
    """Return all rules by their names, sorted."""
    stems = (path.stem for path in Path(__file__).parent.glob("[a-z]*.py"))
    modules = [import_module(f"{__name__}.{stem}") for stem in stems]
    return {
        name: value
        for name, value in sorted(item for module in modules for item in vars(module).items() if item[0][0].isupper())
        if isinstance(value, type) and issubclass(value, ProfilerRule) and value.__module__.startswith(f"{__name__}.")
    }
