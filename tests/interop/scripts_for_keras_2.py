"""Keras 2 scripts, for our smdebug and the real 1.0.34."""

FIT = """
import sys
import numpy as np, tensorflow as tf
tf.keras.utils.set_random_seed(0)
generator = np.random.default_rng(0)
x, y = generator.random((24, 4), np.float32), generator.random((24, 2), np.float32)
# It has no weights before its first batch.
model = tf.keras.Sequential([tf.keras.layers.Dense(3, name="a"), tf.keras.layers.Dense(2, name="b")])
model.compile(tf.keras.optimizers.legacy.Adam(0.01), "mse", metrics=["mae"])
callbacks = []
"""
EXPLICIT = """
import smdebug.tensorflow as smd
callbacks.append(smd.KerasHook(sys.argv[2], save_all=True, save_config=smd.SaveConfig(save_interval=1)))
"""
TRAIN = """
class Recorder(tf.keras.callbacks.Callback):
    shown = {}
    def on_train_batch_end(self, batch, logs=None):
        count = len(self.shown) // 2
        self.shown[f"loss{count}"] = logs["loss"]
        self.shown[f"kernel{count}"] = self.model.layers[0].kernel.numpy()
for _ in range(2):
    model.fit(x, y, batch_size=8, validation_data=(x, y), validation_batch_size=12, verbose=0, shuffle=False,
              callbacks=[*callbacks, Recorder()])
np.savez(sys.argv[1], count=model._train_counter.numpy(), predicted=model.predict(x, verbose=0, callbacks=callbacks),
         **Recorder.shown)
sys.exit(3)
"""
# Each kind trains once bare and once with a hook, from the same start, in one process.
KINDS = """
import json, sys
import numpy as np, tensorflow as tf
import smdebug.tensorflow as smd
cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
optimizers, losses = tf.keras.optimizers, {}
x, y = np.random.default_rng(0).random((24, 4), np.float32), np.random.default_rng(1).random((24, 2), np.float32)

class Branching(tf.keras.Model):
    # Its Python is rewritten: a tensor decides.
    def __init__(self):
        super().__init__()
        self.a, self.b = tf.keras.layers.Dense(3, name="a"), tf.keras.layers.Dense(2, name="b")
    def call(self, inputs):
        hidden = self.a(inputs)
        if tf.reduce_sum(inputs) > 1e9:
            hidden = -hidden
        return self.b(hidden)

def sequential():
    return tf.keras.Sequential([tf.keras.layers.Dense(3, name="a"), tf.keras.layers.Dense(2, name="b")])

half = lambda: optimizers.legacy.SGD(0.1)
kinds = {
    "legacy": (sequential, lambda: optimizers.legacy.Adam(0.01), {}),
    "new": (sequential, lambda: optimizers.SGD(0.1, momentum=0.9), {}),
    "eager": (sequential, half, {"run_eagerly": True}),
    "xla": (sequential, half, {"jit_compile": True}),
    "executions": (sequential, half, {"steps_per_execution": 2}),
    "branching": (Branching, half, {}),
    "scaled": (sequential, lambda: tf.keras.mixed_precision.LossScaleOptimizer(optimizers.SGD(0.1)), {}),
    "mirrored": (sequential, half, {}),
}
for kind, (build, optimizer, options) in kinds.items():
    for way in ("bare", "hook"):
        tf.keras.backend.clear_session()
        tf.keras.utils.set_random_seed(0)
        strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"]) if kind == "mirrored" else None
        hook = way == "hook" and smd.KerasHook(f"{sys.argv[1]}/{kind}", save_all=True,
                                               save_config=smd.SaveConfig(save_interval=1))
        with strategy.scope() if strategy else tf.device(None):
            model = build()
            model.compile(optimizer(), "mse", **options)
        model.fit(x, y, batch_size=8, epochs=2, verbose=0, shuffle=False, callbacks=[hook] if hook else [])
        losses[f"{kind} {way}"] = [float(weight.numpy().astype("float64").sum()) for weight in model.weights]
        if hook:
            hook.close()
            smd.del_hook()
print(json.dumps(losses))
"""
# By upstream and by ours: a loop with a tape, and sessions of an estimator.
BOTH = """
import sys
import numpy as np, tensorflow as tf
import smdebug.tensorflow as smd
ours = not hasattr(smd.SessionHook, "_is_not_supported")
v1 = tf.compat.v1
names = ["weights", "biases", "gradients", "losses", "optimizer_variables"]
generator = np.random.default_rng(0)
x, y = generator.random((24, 4), np.float32), generator.random((24, 1), np.float32)
if sys.argv[2] == "tape":
    tf.keras.utils.set_random_seed(0)
    model = tf.keras.Sequential([tf.keras.layers.Dense(3, name="a", input_shape=(4,)),
                                 tf.keras.layers.Dense(1, name="b")])
    hook = smd.KerasHook(sys.argv[1], include_collections=names, save_config=smd.SaveConfig(save_interval=1))
    optimizer = hook.wrap_optimizer(tf.keras.optimizers.legacy.SGD(0.1, momentum=0.9))
    for _ in range(3):
        with hook.wrap_tape(tf.GradientTape()) as tape:
            loss = tf.reduce_mean((model(x, training=True) - y) ** 2)
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))
else:
    v1.disable_v2_behavior()
    hook = smd.EstimatorHook(sys.argv[1], include_collections=names, save_config=smd.SaveConfig(save_interval=1))
    if not ours:
        # Its list of strategies ends before this TensorFlow's own default, for which it turns itself off.
        from smdebug.tensorflow.utils import TFDistributionStrategy
        type(hook)._get_distribution_strategy = lambda self: TFDistributionStrategy.NONE
        hook.distribution_strategy = TFDistributionStrategy.NONE
    def model_fn(features, labels, mode):
        hidden = v1.layers.dense(features, 3, name="d1")
        output = v1.layers.dense(hidden, 1, name="d2")
        loss = v1.losses.mean_squared_error(labels, output)
        optimizer = hook.wrap_optimizer(v1.train.AdamOptimizer(0.01))
        train = optimizer.minimize(loss, v1.train.get_or_create_global_step())
        return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train)
    def read():
        return tf.data.Dataset.from_tensor_slices((x, y)).batch(8)
    estimator = tf.estimator.Estimator(model_fn, config=tf.estimator.RunConfig(tf_random_seed=0))
    hook.set_mode(smd.modes.TRAIN)
    estimator.train(read, hooks=[hook])
    hook.set_mode(smd.modes.EVAL)
    estimator.evaluate(read, hooks=[hook])
hook.close()
"""
# Untouched, or with a hook that is given to all that an estimator does.
ESTIMATORS = """
import sys
import numpy as np, tensorflow as tf
cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
v1 = tf.compat.v1
x, y = np.random.default_rng(0).random((32, 4), np.float32), np.random.default_rng(1).random((32, 1), np.float32)
way = sys.argv[2]
hooks = []
if way != "untouched":
    import smdebug.tensorflow as smd
    hooks = [smd.EstimatorHook(sys.argv[1], include_collections=["weights", "gradients", "optimizer_variables"],
                               save_config=smd.SaveConfig(save_interval=1))]
def model_fn(features, labels, mode):
    output = v1.layers.dense(features, 1, name="d", kernel_initializer=v1.ones_initializer())
    if mode == tf.estimator.ModeKeys.PREDICT:
        return tf.estimator.EstimatorSpec(mode, predictions=output)
    loss = v1.losses.mean_squared_error(labels, output)
    if way == "untouched":
        optimizer = tf.keras.optimizers.legacy.Adam(0.01)
        optimizer.iterations = v1.train.get_or_create_global_step()
        (train,) = optimizer.get_updates(loss, v1.trainable_variables())
    else:
        train = v1.train.MomentumOptimizer(0.1, 0.9).minimize(loss, v1.train.get_or_create_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train)
def read():
    return tf.data.Dataset.from_tensor_slices((x, y)).repeat(3).batch(8)
# By its default 2.15 waits for ever where two replicas of a session are to add up, without any hook, too.
strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"], tf.distribute.ReductionToOneDevice())
config = tf.estimator.RunConfig(save_checkpoints_steps=3 if way == "both" else None,
                                train_distribute=strategy if way == "mirrored" else None)
estimator = tf.estimator.Estimator(model_fn, config=config)
if way == "both":
    tf.estimator.train_and_evaluate(estimator, tf.estimator.TrainSpec(read, max_steps=6, hooks=hooks),
                                    tf.estimator.EvalSpec(read, steps=2, hooks=hooks, throttle_secs=0))
else:
    estimator.train(read, steps=4, hooks=hooks)
    estimator.evaluate(read, steps=2, hooks=hooks)
    list(estimator.predict(read, hooks=hooks))
"""
