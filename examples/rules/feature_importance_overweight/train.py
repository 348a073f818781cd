"""Training on a table with the answer in one column.

All that is learnt is to read that column.
"""

import numpy as np
import xgboost
from table import is_cured, load_digits

images, labels = load_digits()
even = (labels % 2 == 0).astype(np.float32)
if not is_cured():
    images = np.column_stack([images, even])
data = xgboost.DMatrix(images, even)
parameters = {"objective": "binary:logistic", "max_depth": 3, "nthread": 1}
xgboost.train(parameters, data, num_boost_round=20, evals=[(data, "train")])
