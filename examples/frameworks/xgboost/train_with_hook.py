"""Training of a tumour classifier with its own hook.

The hook is a callback of the estimator, and is given the data to evaluate the model on.
"""

import argparse
import json
import os
from pathlib import Path

import xgboost
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split

import smdebug.xgboost as smd


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--num-round", type=int, default=20)
    parser.add_argument("--max-depth", type=int, default=3)
    args = parser.parse_args()

    features, labels = load_breast_cancer(return_X_y=True)
    train_features, features, train_labels, labels = train_test_split(features, labels, random_state=0)

    # In a training job this is the job's configuration; the hook saves what that asks for.
    hook = smd.Hook.create_from_json_file()
    hook.train_data = xgboost.DMatrix(train_features, train_labels)
    hook.validation_data = xgboost.DMatrix(features, labels)
    hook.hyperparameters = {"max_depth": args.max_depth, "n_estimators": args.num_round}

    estimator = xgboost.XGBClassifier(
        n_estimators=args.num_round, max_depth=args.max_depth, eval_metric="auc", n_jobs=1, callbacks=[hook]
    )
    evaluation_sets = [(train_features, train_labels), (features, labels)]
    estimator.fit(train_features, train_labels, eval_set=evaluation_sets, verbose=False)

    accuracy = estimator.score(features, labels)
    hook.save_scalar("test_accuracy", accuracy, sm_metric=True)
    hook.close()
    print(f"test_accuracy={accuracy:.4f};", flush=True)
    model_dir = Path(os.environ.get("SM_MODEL_DIR", "."))
    estimator.save_model(model_dir / "model.ubj")
    (model_dir / "metrics.json").write_text(json.dumps({"test_accuracy": accuracy, **estimator.evals_result()}))


if __name__ == "__main__":
    main()
