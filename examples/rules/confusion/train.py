"""Training on two pixels of each image, so that classes are confused."""

import xgboost
from table import is_cured, load_digits

images, labels = load_digits()
columns = slice(None) if is_cured() else slice(19, 21)
data = xgboost.DMatrix(images[:, columns], labels)
parameters = {"objective": "multi:softmax", "num_class": 10, "max_depth": 4, "eta": 0.5, "nthread": 1}
xgboost.train(parameters, data, num_boost_round=20, evals=[(data, "train")])
