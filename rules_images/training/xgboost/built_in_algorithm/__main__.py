"""Entry point of the image: `train`, or any other command as it is.

`train` runs the job's script if there is one, otherwise the algorithm.
"""

import json
import os
import sys
import traceback
from pathlib import Path
from typing import Any

from rules_images.training.xgboost.built_in_algorithm.errors import JobError
from smdebug import training_toolkit

_SCRIPT = "sagemaker_program"
_SCRIPT_PACKAGES = Path(__file__).parents[1] / "script_packages"


def main(command: list[str]) -> int:
    """Run the container's command. Return the exit code, unless the command replaces this process."""
    if command != ["train"]:
        if not command:
            sys.stderr.write("This image needs a command; SageMaker's is train.\n")
            return 1
        os.execvp(command[0], command)  # noqa: S606 - the command is what the container is for
    base = Path(os.environ.get("SAGEMAKER_BASE_DIR", "/opt/ml"))
    # Given by a warm interpreter to the programs that it forks.
    scripts: Any = sys.modules.get("smdebug_emulator_scripts")
    try:
        hyperparameters = _read_hyperparameters(base)
        if _SCRIPT in hyperparameters or os.environ.get("SAGEMAKER_PROGRAM"):
            # The toolkit unpacks the script, passes it the hyperparameters and reports its failure.
            toolkit = [sys.executable, "-m", "smdebug.training_toolkit"]
            path = os.environ.get("PYTHONPATH", ""), str(_SCRIPT_PACKAGES)
            os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, path))
            if scripts is not None:
                # This process was forked from a warm interpreter, which only the same process can fork again.
                sys.path[0] = str(Path.cwd())
                sys.path.insert(1 + len(path[0].split(os.pathsep)) * bool(path[0]), str(_SCRIPT_PACKAGES))
                sys.argv = [training_toolkit.__file__]
                training_toolkit.main()
            os.execv(sys.executable, toolkit)  # noqa: S606 - script mode is another program
        if scripts is not None:
            scripts.train_here()
        from rules_images.training.xgboost.built_in_algorithm.training import train

        train(base, hyperparameters)
    except Exception as error:  # noqa: BLE001 - the failure file is the job's FailureReason, whatever happened
        _report(base, error)
        return 1
    return 0


def _read_hyperparameters(base: Path) -> dict[str, str]:
    path = base / "input" / "config" / "hyperparameters.json"
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except ValueError as error:
        raise JobError(f"{path} is not JSON: {error}") from error
    if not isinstance(content, dict):
        raise JobError(f"{path} holds no JSON object.")
    return {str(name): str(value) for name, value in content.items()}


def _report(base: Path, error: Exception) -> None:
    text = str(error) if isinstance(error, JobError) else f"{type(error).__name__}: {error}"
    if not isinstance(error, JobError):
        traceback.print_exc()
    sys.stderr.write(f"{text}\n")
    path = base / "output" / "failure"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
