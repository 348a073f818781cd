"""Digits told apart by two pixels: the classes that these do not separate are taken for each other."""

import xgboost
from table import is_cured, load_digits

images, labels = load_digits()
columns = slice(None) if is_cured() else slice(19, 21)
data = xgboost.DMatrix(images[:, columns], labels)
parameters = {"objective": "multi:softmax", "num_class": 10, "max_depth": 4, "eta": 0.5, "nthread": 1}
xgboost.train(parameters, data, num_boost_round=20, evals=[(data, "train")])
