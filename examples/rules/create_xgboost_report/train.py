"""XGBoost training for a report: metrics, confusion and important pixels."""

import xgboost
from table import is_cured, load_digits

images, labels = load_digits()
half = len(images) // 2
data, held_out = xgboost.DMatrix(images[:half], labels[:half]), xgboost.DMatrix(images[half:], labels[half:])
depth = 6 if is_cured() else 1
parameters = {"objective": "multi:softmax", "num_class": 10, "max_depth": depth, "nthread": 1}
xgboost.train(parameters, data, num_boost_round=20, evals=[(data, "train"), (held_out, "validation")])
