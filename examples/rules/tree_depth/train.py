"""Training of trees with up to ten levels.

Each learns what only a handful of images have in common.
"""

import xgboost
from table import is_cured, load_digits

images, labels = load_digits()
data = xgboost.DMatrix(images, labels)
parameters = {"objective": "reg:squarederror", "max_depth": 3 if is_cured() else 10, "nthread": 1}
xgboost.train(parameters, data, num_boost_round=10, evals=[(data, "train")])
