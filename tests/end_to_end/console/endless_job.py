"""A job in which a rule fires and which does nothing more until it is stopped."""

import json
from pathlib import Path
from typing import Any

from sdk_compat.demo.training_job import SICK, build_request, locate_source, stage_source
from tests.end_to_end.profiled_jobs import profile
from tests.end_to_end.test_rules import TRAINING

NAME = "console-sick"


def stage_endless_script(s3: Any, folder: Path) -> None:
    """Upload a script that saves numbers and waits: a framework would take seconds to import, and a core meanwhile."""
    (folder / "train.py").write_text(TRAINING, encoding="utf-8")
    stage_source(s3, NAME, [folder / "train.py"])


def build_endless_request() -> dict[str, Any]:
    """The request of that job, with profiling and the rule that fires: others would only read beside it."""
    request = profile(build_request(NAME, SICK))
    (fires, *_) = request["DebugRuleConfigurations"]
    request["DebugRuleConfigurations"] = [fires]
    del request["ProfilerRuleConfigurations"]
    request["ProfilerConfig"]["ProfilingIntervalInMilliseconds"] = 500
    request["HyperParameters"]["sagemaker_submit_directory"] = json.dumps(locate_source(NAME))
    request["Environment"] = {"WAIT": "3600"}
    return request
