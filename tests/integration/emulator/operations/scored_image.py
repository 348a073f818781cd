"""An image whose training prints its hyperparameter ``x`` as the metric ``score``."""

import json
from pathlib import Path

SCORED = "scored:1"
_PROGRAM = """
import json, os, pathlib
ml = pathlib.Path(os.environ.get("SAGEMAKER_BASE_DIR", "/opt/ml"))
print("score=" + json.loads((ml / "input/config/hyperparameters.json").read_text())["x"], flush=True)
"""


def write_scored_image(images: Path) -> None:
    """Write the definition of the image."""
    folder = images / "scored"
    folder.mkdir(parents=True)
    entrypoint = json.dumps(["python", "-I", "-S", "-c", _PROGRAM])
    (folder / "image.toml").write_text(f'name = "scored"\nentrypoint = {entrypoint}\n')
