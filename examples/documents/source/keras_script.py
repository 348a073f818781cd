"""Training of a Keras network that needs no data.

The script knows nothing of SageMaker Debugger.
"""

import keras
import numpy as np

keras.utils.set_random_seed(0)
points = np.random.default_rng(0).standard_normal((256, 4)).astype("float32")
model = keras.Sequential(
    [
        keras.Input((4,)),
        keras.layers.Dense(8, activation="relu", name="relu_layer"),
        keras.layers.Dense(8, activation="tanh", name="tanh_layer"),
        keras.layers.Dense(1, name="score"),
    ]
)
model.compile(optimizer="adam", loss="mse")
model.fit(points, points.sum(axis=1), batch_size=4, epochs=1, verbose=2)
