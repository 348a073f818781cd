"""A job in which a rule fires and which trains, slowly, until it is stopped."""

import json
from pathlib import Path
from typing import Any

from sdk_compat.demo import training_job
from sdk_compat.demo.training_job import SICK, build_request, locate_source, stage_source
from tests.end_to_end.profiled_jobs import profile

NAME = "console-sick"


def stage_slow_script(s3: Any, folder: Path) -> None:
    """Upload the demo's script with a pause in each step: at full speed it would take a core from the browser."""
    text = Path(training_job.__file__).with_name("train.py").read_text(encoding="utf-8")
    slow = text.replace("import argparse\n", "import argparse\nimport time\n", 1)
    slow = slow.replace("        optimizer.step()\n", "        optimizer.step()\n        time.sleep(0.1)\n", 1)
    assert slow.count("time") == text.count("time") + 2
    (folder / "train.py").write_text(slow, encoding="utf-8")
    stage_source(s3, NAME, [folder / "train.py"])


def build_endless_request() -> dict[str, Any]:
    """The request of that job, with profiling and the rule that fires: others would only read beside it."""
    request = profile(build_request(NAME, SICK))
    (fires, *_) = request["DebugRuleConfigurations"]
    request["DebugRuleConfigurations"] = [fires]
    del request["ProfilerRuleConfigurations"]
    request["ProfilerConfig"]["ProfilingIntervalInMilliseconds"] = 500
    request["HyperParameters"]["sagemaker_submit_directory"] = json.dumps(locate_source(NAME))
    return request
