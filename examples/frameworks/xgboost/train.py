"""Training of a digit classifier: an ordinary XGBoost script.

It knows nothing of SageMaker Debugger.
"""

import argparse
import json
import os
from pathlib import Path

import numpy as np
import xgboost
from sklearn.datasets import load_digits


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--num-round", type=int, default=30)
    parser.add_argument("--max-depth", type=int, default=3)
    parser.add_argument("--eta", type=float, default=0.3)
    args = parser.parse_args()

    images, labels = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(labels))
    images, labels = images[order], labels[order]
    held_out = len(labels) // 5
    train = xgboost.DMatrix(images[held_out:], labels[held_out:])
    validation = xgboost.DMatrix(images[:held_out], labels[:held_out])

    parameters = {
        "objective": "multi:softprob",
        "num_class": 10,
        "eval_metric": ["mlogloss", "merror"],
        "max_depth": args.max_depth,
        "eta": args.eta,
        "nthread": 1,
    }
    history: dict[str, dict[str, list[float]]] = {}
    booster = xgboost.train(
        parameters,
        train,
        args.num_round,
        evals=[(train, "train"), (validation, "validation")],
        evals_result=history,
        verbose_eval=10,
    )

    accuracy = float((booster.predict(validation).argmax(axis=1) == labels[:held_out]).mean())
    print(f"test_accuracy={accuracy:.4f};", flush=True)
    model_dir = Path(os.environ.get("SM_MODEL_DIR", "."))
    booster.save_model(model_dir / "model.ubj")
    (model_dir / "metrics.json").write_text(json.dumps({"test_accuracy": accuracy, **history}))


if __name__ == "__main__":
    main()
