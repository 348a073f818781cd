"""Answers of the analysis of Python profiles by the smdebug on the path."""

import json
import sys
from importlib import import_module
from typing import Any

python: Any = import_module("smdebug.profiler.analysis.python_profile_analysis")
found = python.cProfileAnalysis(sys.argv[1])
listed = found.list_profile_stats()


def tell(stats: Any) -> Any:
    if stats is None:
        return None
    return sorted([each.function_name, each.prim_calls, each.total_calls] for each in stats.function_stats_list)


by_phase = found.fetch_profile_stats_by_job_phase()
ends = [f"{end}_{part}" for end in ("start", "end") for part in ("mode", "step", "phase")]
answers = {
    "listed": sorted(map(str, listed[ends].astype(str).values.tolist())),
    "before": tell(found.fetch_pre_step_zero_profile_stats()),
    "after": tell(found.fetch_post_hook_close_profile_stats()),
    "phases": sorted(by_phase),
    "initialization": tell(by_phase.get("initialization")),
    "finalization": tell(by_phase.get("finalization")),
}
sys.stdout.write(f"\nFOUND {json.dumps(answers)}\n")
