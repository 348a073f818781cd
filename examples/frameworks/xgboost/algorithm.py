"""CreateTrainingJob request of SageMaker's own XGBoost algorithm.

The job has hyperparameters and channels, and no script.
"""

import io
from typing import Any

from examples.frameworks.job import BUCKET, build_request
from sdk_compat.demo.training_job import build_channels

ALGORITHM = {
    "num_round": "20",
    "objective": "binary:logistic",
    "eval_metric": "logloss,auc",
    "max_depth": "3",
    "eta": "0.3",
    "nthread": "1",
}


def stage_cancer(s3: Any) -> None:
    """Put Wisconsin's breast cancer data into S3 as CSV (label first, no header)."""
    import numpy as np
    from sklearn.datasets import load_breast_cancer

    s3.create_bucket(Bucket=BUCKET)
    features, labels = load_breast_cancer(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(labels))
    table = np.column_stack([labels, features])[order]
    for channel, rows in (("train", table[:400]), ("validation", table[400:])):
        file = io.StringIO()
        np.savetxt(file, rows, delimiter=",", fmt="%.8g")
        s3.put_object(Bucket=BUCKET, Key=f"data/{channel}/cancer.csv", Body=file.getvalue().encode())


def build_algorithm_request(name: str, hyperparameters: dict[str, str]) -> dict[str, Any]:
    """The request that trains without a script."""
    uris = {channel: f"s3://{BUCKET}/data/{channel}/" for channel in ("train", "validation")}
    channels = build_channels(uris, "text/csv")
    return {
        **build_request("xgboost", name, "train.py"),
        "HyperParameters": hyperparameters,
        "InputDataConfig": channels,
    }
