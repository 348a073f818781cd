"""Keras hook as a callback outside of SageMaker, and a trial of its run."""

import tempfile

import keras
import numpy as np

import smdebug.tensorflow as smd
from smdebug.trials import create_trial


def main(out_dir: str) -> None:
    hook = smd.KerasHook(out_dir=out_dir, save_config=smd.SaveConfig(save_interval=10))
    points = np.random.default_rng(0).standard_normal((128, 4)).astype("float32")
    labels = (points.sum(axis=1) > 0).astype("int32")
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(2, activation="softmax")])
    model.compile(optimizer="adam", loss="sparse_categorical_crossentropy")
    model.fit(points, labels, batch_size=4, epochs=1, verbose=0, callbacks=[hook])
    model.evaluate(points, labels, verbose=0, callbacks=[hook])
    hook.close()

    trial = create_trial(out_dir=out_dir)
    print("Modes:", *sorted(mode.name for mode in trial.modes()))
    for name in trial.tensor_names(collection="losses"):
        step = trial.tensor(name).steps()[0]
        print(f"{name} was {trial.tensor(name).value(step).item():.4f} at step {step}")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        main(f"{folder}/run")
