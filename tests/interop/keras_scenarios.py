"""Small Keras 2 scripts for `scenario_program.py`."""

from typing import Any

# What TensorFlow as it is on PyPI shows upstream none of: gradients, layers, the optimizer's own variables.
HIDDEN = (
    r"^(inputs|labels|predictions)(_\d+)?$|^gradients/|^\w+/(inputs|outputs)$|^(Adam|SGD|RMSprop)/|"
    r"^smdebug/reductions/\w+/(gradients/|\w+/(inputs|outputs)$)"
)
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
# What save_tensor is given in the last step of a tape is lost by upstream, which writes it in the next one.
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
SAVING = """
class Saving(tf.keras.callbacks.Callback):
    def on_train_batch_end(self, batch, logs=None):
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
    # Values that scripts save.
    "scalars_of_batches": with_hook(
        EACH, LEGACY, SAVING.format('hook.save_scalar("number", batch)'), FIT.replace("[hook]", "[hook, Saving()]")
    ),
    "scalars_of_batches_by_default": with_hook(
        "",
        LEGACY,
        SAVING.format('hook.save_scalar(f"number{batch}", batch)'),
        FIT.replace("[hook]", "[hook, Saving()]"),
    ),
    "scalars_of_epochs": with_hook(
        "",
        LEGACY,
        SAVING.replace("on_train_batch_end", "on_epoch_end").format('hook.save_scalar("number", batch)'),
        FIT_AND_VALIDATE.replace("[hook]", "[hook, Saving()]"),
    ),
    "scalar_between_fit_and_evaluate": with_hook(EACH, LEGACY, FIT, 'hook.save_scalar("number", 7)', EVALUATE),
    "scalar_before": with_hook("", 'hook.save_scalar("number", 7)', LEGACY, FIT),
    "scalar_after": with_hook(EACH, LEGACY, EVALUATE, 'hook.save_scalar("number", 7)'),
    "tape_scalars": with_hook(
        f"{NAMED}, save_config=smd.SaveConfig(save_interval=2)",
        TAPE.format("SGD(0.1)", 'hook.save_scalar(f"number{number}", number)'),
    ),
    # Files, settings.
    "tensorboard": with_hook(f"{EACH}, {NAMED}, export_tensorboard=True", LEGACY, FIT_AND_VALIDATE),
    "save_all": with_hook(f"{EACH}, save_all=True", LEGACY, FIT),
    "all_workers": with_hook(f'{EACH}, include_workers="all"', LEGACY, FIT),
    "shapes": with_hook(
        f'{EACH}, include_collections=["weights"], reduction_config=smd.ReductionConfig(save_shape=True)', LEGACY, FIT
    ),
    "norms": with_hook(
        f'{EACH}, include_collections=["weights", "biases"], '
        'reduction_config=smd.ReductionConfig(norms=["l1", "l2"], abs_norms=["l1"])',
        LEGACY,
        FIT,
    ),
    "save_config_of_one_mode": with_hook(
        "save_config={smd.modes.EVAL: smd.SaveConfigMode(save_interval=2)}", LEGACY, EVALUATE
    ),
    "callback_of_evaluate_alone": with_hook(EACH, LEGACY, FIT.replace("callbacks=[hook]", "callbacks=[]"), EVALUATE),
    "attributes": with_hook(
        EACH,
        LEGACY,
        FIT,
        'seen["hook"] = [hook.step, hook.mode, hook.mode_steps, hook.last_saved_step, hook.save_all]',
        EVALUATE,
        'seen["then"] = [hook.step, hook.mode, hook.mode_steps]',
    ),
    "deep": with_hook(
        f"{EACH}, {NAMED}",
        "net = tf.keras.Sequential([tf.keras.layers.Dense(4, input_shape=(4,), activation='relu') for _ in range(12)]"
        " + [tf.keras.layers.Dense(1)])",
        'net.compile(tf.keras.optimizers.legacy.SGD(0.01), "mse")',
        FIT,
    ),
    "convolution": with_hook(
        f"{EACH}, {NAMED}",
        "net = tf.keras.Sequential([tf.keras.layers.Reshape((2, 2, 1), input_shape=(4,)), "
        "tf.keras.layers.Conv2D(2, 2), tf.keras.layers.BatchNormalization(), tf.keras.layers.Flatten(), "
        "tf.keras.layers.Dropout(0.1), tf.keras.layers.Dense(1)])",
        'net.compile(tf.keras.optimizers.legacy.Adam(0.01), "mse", metrics=["mae"])',
        FIT_AND_VALIDATE,
    ),
    "functional": with_hook(
        f"{EACH}, {NAMED}",
        "inputs = tf.keras.Input((4,))\nhidden = tf.keras.layers.Dense(3, name='hidden')(inputs)\n"
        "net = tf.keras.Model(inputs, tf.keras.layers.Dense(1, name='last')(hidden))",
        'net.compile(tf.keras.optimizers.legacy.SGD(0.01), "mse")',
        FIT_AND_VALIDATE,
    ),
    "subclassed": with_hook(
        f'{EACH}, include_collections=["weights", "biases", "losses"]',
        "class Own(tf.keras.Model):\n    def __init__(self):\n        super().__init__()\n"
        "        self.first = tf.keras.layers.Dense(3)\n        self.second = tf.keras.layers.Dense(1)\n"
        "    def call(self, x):\n        return self.second(self.first(x))\nnet = Own()",
        'net.compile(tf.keras.optimizers.legacy.SGD(0.01), "mse")',
        FIT,
    ),
    "classification": with_hook(
        EACH,
        "net = tf.keras.Sequential([tf.keras.layers.Dense(2, input_shape=(4,), activation='softmax')])",
        'net.compile(tf.keras.optimizers.legacy.SGD(0.01), "sparse_categorical_crossentropy", metrics=["accuracy"])',
        "y = (y > 0.5).astype(int)",
        FIT_AND_VALIDATE,
        EVALUATE,
    ),
    "steps_per_epoch": with_hook(EACH, LEGACY, FIT.replace("verbose=0", "steps_per_epoch=3, verbose=0")),
}

PREAMBLE = """
def model(optimizer="legacy.SGD", **options):
    net = tf.keras.Sequential([tf.keras.layers.Dense(3, name="first", input_shape=(4,)),
                               tf.keras.layers.Dense(1, name="second")])
    if isinstance(optimizer, str):
        optimizer = getattr(tf.keras.optimizers.legacy, optimizer.rpartition(".")[2])(0.01)
    net.compile(optimizer, "mse", **{"metrics": ["mae"], **options})
    return net
"""

# Upstream changes these classes for good, so that the hook of one script would hear the next one.
_unchanged: dict[type, dict[str, Any]] = {}


def build_names(out: str) -> dict[str, Any]:
    import numpy as np
    import tensorflow as tf

    import smdebug.tensorflow as smd

    legacy = tf.keras.optimizers.legacy
    for owner in (tf.GradientTape, legacy.Adam, legacy.SGD, legacy.RMSprop):
        _unchanged.setdefault(owner, dict(vars(owner)))
    tf.keras.backend.clear_session()
    tf.keras.utils.set_random_seed(0)
    generator = np.random.default_rng(0)
    x, y = generator.random((24, 4), np.float32), generator.random((24, 1), np.float32)
    return {"tf": tf, "np": np, "smd": smd, "out": out, "x": x, "y": y}


def clean_up() -> None:
    for owner, members in _unchanged.items():
        for member in set(vars(owner)) - set(members):
            delattr(owner, member)
        for member, value in members.items():
            if vars(owner)[member] is not value:
                setattr(owner, member, value)
