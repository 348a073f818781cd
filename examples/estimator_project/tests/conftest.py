"""Training data of the tests: a scaled table on S3, and an unscaled one.

The unscaled table is in the form in which the hospital sends it.
"""

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer


@pytest.fixture(scope="session")
def upload_table(sagemaker_session, tmp_path_factory):
    """`upload_table(features)`: a channel's URI with these features and their labels."""

    def upload(name, features, labels):
        path = tmp_path_factory.mktemp(name) / "tumours.csv"
        np.savetxt(path, np.column_stack([features, labels]), delimiter=",", fmt="%.6g")
        return sagemaker_session.upload_data(str(path), key_prefix=f"data/{name}").rsplit("/", 1)[0]

    return upload


@pytest.fixture(scope="session")
def tumours():
    """Features and labels, shuffled."""
    features, labels = load_breast_cancer(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(labels))
    return features[order], labels[order]


@pytest.fixture(scope="session")
def scaled(tumours, upload_table):
    """URI of a table whose columns have mean 0 and deviation 1."""
    features, labels = tumours
    return upload_table("scaled", (features - features.mean(axis=0)) / features.std(axis=0), labels)
