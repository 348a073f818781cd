"""Small Keras 2 scripts, run and read with whichever smdebug is imported.

python keras_scenarios.py write FOLDER     trains each script; its run is FOLDER/<name>
python keras_scenarios.py read FOLDER      prints what this smdebug reads from the runs, as one line of JSON
"""

from __future__ import annotations

import importlib
import json
import logging
import os
import sys
from pathlib import Path
from typing import Any

# A hook that saves each step, and the collections most scripts ask for.
EACH = "save_config=smd.SaveConfig(save_interval=1)"
NAMED = 'include_collections=["weights", "biases", "gradients", "losses", "metrics", "optimizer_variables"]'
FIT = "net.fit(x, y, batch_size=4, epochs=2, verbose=0, shuffle=False, callbacks=[hook])"
FIT_AND_VALIDATE = FIT.replace("shuffle", "validation_data=(x, y), validation_batch_size=8, shuffle")
EVALUATE = "net.evaluate(x, y, batch_size=8, verbose=0, callbacks=[hook])"
PREDICT = "net.predict(x, batch_size=8, verbose=0, callbacks=[hook])"
LEGACY = 'net = model("legacy.Adam")'
WRAPPED = """
optimizer = hook.wrap_optimizer(tf.keras.optimizers.legacy.{})
net = model(optimizer)
"""
# What save_tensor is given in the last step of a tape is lost by the original, which writes it in the next one.
TAPE = """
net = model()
optimizer = hook.wrap_optimizer(tf.keras.optimizers.legacy.{})
for number in range(4):
    with hook.wrap_tape(tf.GradientTape()) as tape:
        loss = tf.reduce_mean((net(x, training=True) - y) ** 2)
    gradients = tape.gradient(loss, net.trainable_variables)
    optimizer.apply_gradients(zip(gradients, net.trainable_variables))
    {}
"""
TWO_OUTPUTS = """
inputs = tf.keras.Input((4,))
net = tf.keras.Model(inputs, [tf.keras.layers.Dense(1, name=name)(inputs) for name in ("one", "two")])
net.compile(tf.keras.optimizers.legacy.SGD(0.1), "mse")
net.fit(x, [y, y], batch_size=4, epochs=2, verbose=0, shuffle=False, validation_data=(x, [y, y]), callbacks=[hook])
"""


def with_hook(arguments: str, *body: str) -> str:
    return "\n".join([f"hook = smd.KerasHook(out, {arguments})", *body])


def add_collection(name: str, regex: str, settings: str = "") -> str:
    return f"hook.get_collection({name!r}).include({regex!r})\n{settings}"


SCENARIOS = {
    "fit": with_hook("", LEGACY, FIT),
    "fit_each_step": with_hook(EACH, LEGACY, FIT),
    "fit_validation": with_hook("", LEGACY, FIT_AND_VALIDATE),
    "fit_validation_each_step": with_hook(EACH, LEGACY, FIT_AND_VALIDATE),
    "fit_interval_4": with_hook("save_config=smd.SaveConfig(save_interval=4)", LEGACY, FIT_AND_VALIDATE),
    "fit_start_step": with_hook("save_config=smd.SaveConfig(save_interval=2, start_step=3)", LEGACY, FIT),
    "fit_end_step": with_hook("save_config=smd.SaveConfig(save_interval=1, end_step=2)", LEGACY, FIT_AND_VALIDATE),
    "fit_save_steps": with_hook("save_config=smd.SaveConfig(save_steps=[1, 4])", LEGACY, FIT),
    "fit_of_modes": with_hook(
        "save_config={smd.modes.TRAIN: smd.SaveConfigMode(save_interval=3), "
        "smd.modes.EVAL: smd.SaveConfigMode(save_interval=1)}",
        LEGACY,
        FIT_AND_VALIDATE,
    ),
    "fit_metrics": with_hook(EACH, LEGACY.replace(")", ', metrics=["mae", "mse"])'), FIT_AND_VALIDATE),
    "fit_one_epoch": with_hook("", LEGACY, FIT.replace("epochs=2", "epochs=1")),
    "fit_five_epochs": with_hook("", LEGACY, FIT.replace("epochs=2", "epochs=5")),
    "fit_twice": with_hook("", LEGACY, FIT, FIT),
    "fit_from_epoch": with_hook("", LEGACY, FIT.replace("epochs=2", "initial_epoch=1, epochs=3")),
    "validation_every_other_epoch": with_hook(
        EACH, LEGACY, FIT_AND_VALIDATE.replace("epochs=2", "epochs=3, validation_freq=2")
    ),
    "evaluate": with_hook("", LEGACY, EVALUATE),
    "evaluate_each_step": with_hook(EACH, LEGACY, EVALUATE),
    "evaluate_metrics": with_hook(EACH, LEGACY.replace(")", ', metrics=["mae"])'), EVALUATE),
    "predict": with_hook("", LEGACY, PREDICT),
    "predict_each_step": with_hook(EACH, LEGACY, PREDICT),
    "fit_evaluate_predict": with_hook(EACH, LEGACY, FIT, EVALUATE, PREDICT),
    "fit_evaluate_predict_by_default": with_hook("", LEGACY, FIT, EVALUATE, PREDICT),
    "two_outputs": with_hook(EACH, TWO_OUTPUTS),
    "two_outputs_by_default": with_hook("", TWO_OUTPUTS),
    "weights": with_hook(f'{EACH}, include_collections=["weights"]', LEGACY, FIT_AND_VALIDATE),
    "biases": with_hook(f'{EACH}, include_collections=["biases"]', LEGACY, FIT),
    "nested_collections": with_hook(f'{EACH}, include_collections=[["weights"], "biases"]', LEGACY, FIT),
    "losses_only": with_hook(f'{EACH}, include_collections=["losses"]', LEGACY, FIT_AND_VALIDATE),
    "weights_evaluate": with_hook(f'{EACH}, include_collections=["weights", "biases"]', LEGACY, FIT, EVALUATE, PREDICT),
    "wrapped_adam": with_hook(f"{EACH}, {NAMED}", WRAPPED.format("Adam(0.01)"), FIT),
    "wrapped_sgd": with_hook(f"{EACH}, {NAMED}", WRAPPED.format("SGD(0.1, momentum=0.9)"), FIT_AND_VALIDATE),
    "wrapped_rmsprop": with_hook(f"{EACH}, {NAMED}", WRAPPED.format("RMSprop(0.01)"), FIT),
    "wrapped_by_default": with_hook("", WRAPPED.format("Adam(0.01)"), FIT_AND_VALIDATE),
    "wrapped_interval": with_hook(NAMED, WRAPPED.format("Adam(0.01)"), FIT),
    "custom_of_bias": with_hook(
        f'{EACH}, include_collections=["own"]', add_collection("own", "bias"), WRAPPED.format("Adam(0.01)"), FIT
    ),
    "custom_of_layer": with_hook(
        f'{EACH}, include_collections=["own"]', add_collection("own", "first"), WRAPPED.format("Adam(0.01)"), FIT
    ),
    "custom_of_kernels": with_hook(
        f'{EACH}, include_collections=["own"]', add_collection("own", "kernel:0$"), LEGACY, FIT
    ),
    "custom_interval": with_hook(
        'include_collections=["own"]',
        add_collection("own", "second", "hook.get_collection('own').save_config = smd.SaveConfig(save_interval=2)"),
        LEGACY,
        FIT_AND_VALIDATE,
    ),
    "include_regex": with_hook(f'{EACH}, include_regex=["first"]', WRAPPED.format("Adam(0.01)"), FIT),
    "weights_interval": with_hook(
        'include_collections=["weights"]',
        "hook.get_collection('weights').save_config = smd.SaveConfig(save_interval=2)",
        LEGACY,
        FIT,
    ),
    "metrics_interval": with_hook(
        "", "hook.get_collection('metrics').save_config = smd.SaveConfig(save_interval=2)", LEGACY, FIT_AND_VALIDATE
    ),
    "losses_interval": with_hook(
        "", "hook.get_collection('losses').save_config = smd.SaveConfig(save_interval=2)", LEGACY, FIT_AND_VALIDATE
    ),
    "reductions": with_hook(
        f'{EACH}, include_collections=["weights"], reduction_config=smd.ReductionConfig('
        'reductions=["min", "max", "mean", "std"], abs_reductions=["mean"])',
        LEGACY,
        FIT,
    ),
    "reductions_of_vectors": with_hook(
        f'{EACH}, include_collections=["biases"], reduction_config=smd.ReductionConfig('
        'reductions=["sum", "variance"], norms=["l1"], save_raw_tensor=True)',
        LEGACY,
        FIT,
    ),
    "tape": with_hook(f"{EACH}, {NAMED}", TAPE.format("SGD(0.1, momentum=0.9)", "")),
    "tape_adam": with_hook(f"{EACH}, {NAMED}", TAPE.format("Adam(0.01)", "")),
    "tape_by_default": with_hook("", TAPE.format("SGD(0.1)", "")),
    "tape_interval": with_hook(
        f"{NAMED}, save_config=smd.SaveConfig(save_interval=2)", TAPE.format("SGD(0.1, momentum=0.9)", "")
    ),
    "tape_save_tensor": with_hook(
        f"{EACH}, {NAMED}", TAPE.format("SGD(0.1)", 'number < 3 and hook.save_tensor("rate", 0.5, "metrics")')
    ),
    "tape_save_loss": with_hook(
        f"{EACH}, {NAMED}", TAPE.format("SGD(0.1)", 'number < 3 and hook.save_tensor("own", loss, "losses")')
    ),
    "tape_save_vector": with_hook(
        f"{EACH}, {NAMED}", TAPE.format("SGD(0.1)", 'number < 3 and hook.save_tensor("vector", y[:, 0], "metrics")')
    ),
    "tape_record_value": with_hook(
        f"{EACH}, {NAMED}", TAPE.format("SGD(0.1)", 'hook.record_tensor_value("recorded", loss)')
    ),
    "tape_weights": with_hook(f'{EACH}, include_collections=["weights"]', TAPE.format("Adam(0.01)", "")),
    "tape_biases": with_hook(f'{EACH}, include_collections=["biases"]', TAPE.format("Adam(0.01)", "")),
}

MODEL = """
def model(optimizer="legacy.SGD", **options):
    net = tf.keras.Sequential([tf.keras.layers.Dense(3, name="first", input_shape=(4,)),
                               tf.keras.layers.Dense(1, name="second")])
    if isinstance(optimizer, str):
        optimizer = getattr(tf.keras.optimizers.legacy, optimizer.rpartition(".")[2])(0.01)
    net.compile(optimizer, "mse", **{"metrics": ["mae"], **options})
    return net
"""


def write(folder: Path) -> None:
    import numpy as np
    import tensorflow as tf

    import smdebug.tensorflow as smd

    # The original changes these classes for good, so that the hook of one script would hear the next one.
    legacy = tf.keras.optimizers.legacy
    classes = [tf.GradientTape, legacy.Adam, legacy.SGD, legacy.RMSprop]
    before = [dict(vars(owner)) for owner in classes]
    errors = {}
    for name, script in SCENARIOS.items():
        tf.keras.backend.clear_session()
        tf.keras.utils.set_random_seed(0)
        generator = np.random.default_rng(0)
        x, y = generator.random((24, 4), np.float32), generator.random((24, 1), np.float32)
        given: dict[str, Any] = {"tf": tf, "np": np, "smd": smd, "out": str(folder / name), "x": x, "y": y}
        try:
            exec(compile(MODEL + script, name, "exec"), given)
        except Exception as error:  # noqa: BLE001 - what the original raises is an answer, too
            errors[name] = type(error).__name__
        if "hook" in given:
            given["hook"].close()
        smd.del_hook()
        for owner, members in zip(classes, before, strict=True):
            for member in set(vars(owner)) - set(members):
                delattr(owner, member)
            for member, value in members.items():
                if vars(owner)[member] is not value:
                    setattr(owner, member, value)
    (folder / "errors.json").write_text(json.dumps(errors))


def read(folder: Path) -> None:
    sys.path.insert(0, str(Path(__file__).parent))
    logging.disable()
    found = {
        run.name: importlib.import_module("read_with_upstream").read(str(run))
        for run in sorted(folder.iterdir())
        if (run / "collections").is_dir()
    }
    sys.stdout.write(f"\n{json.dumps(found)}\n")


if __name__ == "__main__":
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    {"write": write, "read": read}[sys.argv[1]](Path(sys.argv[2]))
