"""Training scripts that must not differ in a fork and in a new interpreter."""

# Before and after each script: what a process can see of itself.
PROLOGUE = """
import json as _json, os as _os, signal as _signal, sys as _sys, threading as _threading

def _follow(descriptor):
    # Without its number, which depends on when threads have opened others, and that of the pipe or socket.
    try:
        return "".join(each for each in _os.readlink("/proc/self/fd/" + descriptor) if not each.isdigit())
    except FileNotFoundError:
        return "that of the list"

def _see():
    status = dict(line.split(":", 1) for line in open("/proc/self/status").read().splitlines())
    return {
        "argv": _sys.argv, "orig_argv": _sys.orig_argv, "path": _sys.path, "folder": _os.getcwd(), "main": __name__,
        "file": __file__, "flags": str(_sys.flags), "executable": _sys.executable, "prefix": _sys.prefix,
        "descriptors": sorted(map(_follow, _os.listdir("/proc/self/fd"))), "umask": _os.umask(0o22),
        "groups": _os.getgroups(),
        "handlers": {number: str(_signal.getsignal(number)) for number in _signal.valid_signals()},
        # Without 32 and 33, which are the C library's own, for threads.
        "dispositions": {name: int(status[name], 16) & 0x7fffffff for name in ("SigBlk", "SigIgn", "SigCgt")},
        "niceness": _os.getpriority(_os.PRIO_PROCESS, 0), "leads": _os.getsid(0) == _os.getpid(),
        "threads": sorted(each.name for each in _threading.enumerate()), "encoding": _sys.stdout.encoding,
        "hooks": [_sys.excepthook is _sys.__excepthook__, _sys.displayhook is _sys.__displayhook__],
        "recursion": _sys.getrecursionlimit(), "switch": _sys.getswitchinterval(), "limits": [
            __import__("resource").getrlimit(each) for each in range(10)],
    }

print("BEFORE " + _json.dumps(_see()), flush=True)
"""
EPILOGUE = """
# torch._dynamo, which a warm interpreter has imported, sets this one.
_environment = {name: value for name, value in _os.environ.items() if name != "TORCHINDUCTOR_CACHE_DIR"}
print("AFTER " + _json.dumps({**_see(), "environment": _environment,
    # That of six comes with the toolkit's packages.
    "finders": [name for each in _sys.meta_path if (
        name := getattr(each, "__name__", type(each).__name__)) != "_SixMetaPathImporter"],
    "modules": sorted(name for name in _sys.modules if name.partition(".")[0] in MAIN_PACKAGES and "." not in name)}),
    flush=True)
"""

_TORCH_START = """
MAIN_PACKAGES = ("torch", "numpy")
import random, numpy, torch
if "--seed" in _sys.argv:
    random.seed(3), numpy.random.seed(3), torch.manual_seed(3)

def train(network, values, targets, steps=3, loss=None):
    loss = loss or torch.nn.MSELoss()
    optimizer = torch.optim.SGD(network.parameters(), lr=0.01, momentum=0.9)
    for _ in range(steps):
        optimizer.zero_grad()
        found = loss(network(values), targets)
        found.backward()
        optimizer.step()
    return found.item()
"""
TORCH = {
    "linear": "print('number', train(torch.nn.Linear(8, 1), torch.randn(4, 8), torch.ones(4, 1)), random.random(), "
    "numpy.random.rand())",
    "convolution": "print('number', train(torch.nn.Sequential(torch.nn.Conv2d(1, 4, 3), torch.nn.Flatten(), "
    "torch.nn.Dropout(0.5), torch.nn.Linear(144, 1)), torch.randn(4, 1, 8, 8), torch.ones(4, 1)))",
    "recurrent": """
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.cell, self.end = torch.nn.LSTM(4, 6, batch_first=True), torch.nn.Linear(6, 1)
    def forward(self, x):
        return self.end(self.cell(x)[0][:, -1])
print("number", train(Net(), torch.randn(3, 5, 4), torch.zeros(3, 1)))
""",
    "adam_and_schedule": """
network = torch.nn.Linear(4, 2)
optimizer = torch.optim.Adam(network.parameters())
schedule = torch.optim.lr_scheduler.StepLR(optimizer, 1)
for _ in range(3):
    optimizer.zero_grad()
    found = torch.nn.CrossEntropyLoss()(network(torch.randn(5, 4)), torch.tensor([0, 1, 0, 1, 1]))
    found.backward(); optimizer.step(); schedule.step()
print("number", found.item(), schedule.get_last_lr())
""",
    "data_loader": """
from torch.utils.data import DataLoader, TensorDataset
data = TensorDataset(torch.randn(12, 8), torch.ones(12, 1))
network = torch.nn.Linear(8, 1)
for workers in (0, 2):
    for values, targets in DataLoader(data, batch_size=4, shuffle=True, num_workers=workers):
        found = train(network, values, targets, 1)
    print("number", found)
# The loader does not wait for the threads of its queues.
for each in _threading.enumerate():
    if each.name == "QueueFeederThread":
        each.join()
""",
    "own_gradient": """
class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x): return x * 2
    @staticmethod
    def backward(ctx, gradient): return gradient * 3
x = torch.randn(3, requires_grad=True)
Double.apply(x).sum().backward()
print("number", x.grad.tolist(), torch.get_num_threads(), torch.get_default_dtype())
print("number", torch.rand(1).item())
""",
    "saves_a_model": """
network = torch.nn.Linear(2, 1)
found = train(network, torch.randn(4, 2), torch.ones(4, 1))
torch.save(network.state_dict(), _os.path.join(_os.environ["SM_MODEL_DIR"], "model.pt"))
print("number", found, sorted(torch.load(_os.path.join(_os.environ["SM_MODEL_DIR"], "model.pt"))))
""",
    "starts_processes": """
import subprocess, sys
print("number", torch.initial_seed() if "--seed" in sys.argv else torch.rand(1).item())
# PyTorch sets this at the first step, and a fork has it from the beginning.
environment = {name: value for name, value in _os.environ.items() if name != "TORCHINDUCTOR_CACHE_DIR"}
print(subprocess.run([sys.executable, "-c", "import os, sys; print(sorted(os.environ.items()), sys.path)"],
    env=environment, capture_output=True, text=True).stdout)
""",
    "shared_memory": """
import torch.multiprocessing as processes
def fill(tensor): tensor.fill_(7)
shared = torch.zeros(3).share_memory_()
process = processes.get_context("fork").Process(target=fill, args=(shared,))
process.start(); process.join()
print("number", shared.tolist(), torch.randn(1).item())
""",
    "fails": """
def forward():
    return torch.ones(2, 3) @ torch.ones(2, 3)
print("number", torch.rand(1).item(), flush=True)
forward()
""",
    "warns": "import logging, warnings\nwarnings.warn('careful')\nlogging.getLogger('mine').warning('said')\n"
    "logging.getLogger().info('not said')\nprint('number', torch.rand(1).item())",
    "exits": "import atexit\natexit.register(print, 'at exit')\nprint('number', torch.rand(1).item())\n_sys.exit(7)",
}

_KERAS_START = """
MAIN_PACKAGES = ("tensorflow", "keras", "numpy")
import random, numpy, tensorflow as tf, keras
if "--seed" in _sys.argv:
    keras.utils.set_random_seed(3)
values, targets = numpy.linspace(0, 1, 64, dtype="float32").reshape(8, 8), numpy.ones((8, 1), "float32")

def build():
    return keras.Sequential([keras.layers.Input((8,)), keras.layers.Dense(4, "relu"), keras.layers.Dense(1)])
"""
KERAS = {
    "fit": """
network = build()
network.compile(optimizer="sgd", loss="mse")
network.fit(values, targets, batch_size=4, verbose=0)
print("number", network.get_weights()[0][0].tolist(), tf.random.uniform(()).numpy(), random.random())
""",
    "adam_and_metrics": """
network = build()
network.compile(optimizer="adam", loss="mse", metrics=["mae"])
print("number", network.fit(values, targets, epochs=2, batch_size=4, verbose=0, shuffle=True).history)
""",
    "own_loop": """
network, optimizer = build(), keras.optimizers.SGD(0.01)
for _ in range(3):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((network(values, training=True) - targets) ** 2)
    optimizer.apply_gradients(zip(tape.gradient(loss, network.trainable_variables), network.trainable_variables))
print("number", float(loss))
""",
    "function": """
network = build()
@tf.function
def step(x):
    return tf.reduce_sum(network(x))
print("number", float(step(values)), float(step(values * 2)), step.experimental_get_tracing_count())
""",
    "data_set": """
data = tf.data.Dataset.from_tensor_slices((values, targets)).shuffle(8).batch(2).prefetch(1)
network = build()
network.compile(optimizer="sgd", loss="mse")
network.fit(data, verbose=0)
print("number", network.get_weights()[0][0].tolist())
""",
    "subclass": """
class Net(keras.Model):
    def __init__(self):
        super().__init__()
        self.inner, self.drop, self.end = keras.layers.Dense(3), keras.layers.Dropout(0.5), keras.layers.Dense(1)
    def call(self, x, training=False):
        return self.end(self.drop(self.inner(x), training=training))
network = Net()
network.compile(optimizer="sgd", loss="mse")
network.fit(values, targets, batch_size=4, verbose=0)
print("number", network.predict(values, verbose=0)[0].tolist())
""",
    "saves_a_model": """
network = build()
path = _os.path.join(_os.environ["SM_MODEL_DIR"], "model.keras")
network.save(path)
print("number", keras.models.load_model(path).get_weights()[0][0].tolist())
""",
    "threads": """
print("number", tf.config.threading.get_inter_op_parallelism_threads(), tf.config.list_physical_devices(),
    tf.random.normal((2,)).numpy().tolist(), keras.backend.backend(), keras.config.floatx())
""",
    "fails": "print('number', tf.random.uniform(()).numpy(), flush=True)\ntf.matmul(tf.ones((2, 3)), tf.ones((2, 3)))",
    "exits": "print('number', tf.random.uniform(()).numpy())\n_sys.exit('no more')",
}

_XGBOOST_START = """
MAIN_PACKAGES = ("xgboost", "numpy")
import random, numpy, xgboost
numpy.random.seed(3) if "--seed" in _sys.argv else None
values = numpy.random.rand(50, 8)
data = xgboost.DMatrix(values, values[:, 0] * 2)
"""
XGBOOST = {
    "trees": "model = xgboost.train({'max_depth': 2, 'subsample': 0.5}, data, 4, evals=[(data, 'train')])\n"
    "print('number', model.predict(data)[0])",
    "boosted_linear": "options = {'booster': 'gblinear', 'updater': 'coord_descent'}\n"
    "model = xgboost.train(options, data, 4, [(data, 'train')])\nprint('number', model.predict(data)[0])",
    "dart": "model = xgboost.train({'booster': 'dart', 'rate_drop': 0.5, 'max_depth': 2}, data, 4, [(data, 'train')])\n"
    "print('number', model.predict(data)[:3].tolist())",
    "estimator": "model = xgboost.XGBRegressor(n_estimators=3, max_depth=2).fit(values, values[:, 0])\n"
    "print('number', model.predict(values)[0], model.get_booster().num_boosted_rounds())",
    "cross_validation": "found = xgboost.cv({'max_depth': 2}, data, 3, nfold=3, seed=1, as_pandas=False)\n"
    "print('number', found)",
    "stops_early": """
found = {}
options = {"early_stopping_rounds": 2, "evals_result": found, "verbose_eval": False}
model = xgboost.train({"eta": 1.0}, data, 30, [(data, "train")], **options)
print("number", model.best_iteration, found)
""",
    "saves_a_model": """
model = xgboost.train({"max_depth": 2}, data, 3, [(data, "train")])
path = _os.environ["SM_MODEL_DIR"] + "/m.json"
model.save_model(path)
print("number", xgboost.Booster(model_file=path).predict(data)[0])
""",
    "settings": "print('number', xgboost.get_config(), numpy.random.rand())",
    "fails": "print('number', numpy.random.rand(), flush=True)\nxgboost.train({'objective': 'none of these'}, data, 2)",
}

_SCIKIT_LEARN_START = """
MAIN_PACKAGES = ("sklearn", "numpy", "pandas")
import random, numpy, pandas, sklearn
numpy.random.seed(3) if "--seed" in _sys.argv else None
values = numpy.random.rand(50, 8)
"""
SCIKIT_LEARN = {
    "forest": "from sklearn.ensemble import RandomForestRegressor\n"
    "print('number', RandomForestRegressor(5).fit(values, values[:, 0]).predict(values)[0])",
    "in_processes": """
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import cross_val_score
scores = cross_val_score(RandomForestClassifier(3, random_state=0), values, values[:, 0] > 0.5, cv=2, n_jobs=2)
print("number", scores.tolist(), values[0, 0])
""",
    "pipeline": """
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
fitted = make_pipeline(StandardScaler(), LogisticRegression()).fit(values, values[:, 0] > 0.5)
print("number", fitted.predict_proba(values)[0])
""",
    "clusters": "from sklearn.cluster import KMeans\nprint('number', KMeans(3, n_init=2).fit(values).inertia_)",
    "components": "from sklearn.decomposition import PCA\nprint('number', PCA(2).fit_transform(values)[0].tolist())",
    "split": "from sklearn.model_selection import train_test_split\n"
    "print('number', train_test_split(values)[0][0].tolist())",
    "frame": "frame = pandas.DataFrame(values)\nframe.to_csv(_os.environ['SM_OUTPUT_DATA_DIR'] + '/v.csv')\n"
    "print('number', frame.describe().to_dict()[0], sklearn.get_config())",
    "dump": """
import joblib
from sklearn.svm import SVC
path = _os.environ["SM_MODEL_DIR"] + "/m.joblib"
joblib.dump(SVC().fit(values, values[:, 0] > 0.5), path)
print("number", joblib.load(path).predict(values).tolist(), values[0, 0])
""",
    "fails": "from sklearn.linear_model import LinearRegression\nprint('number', values[0, 0], flush=True)\n"
    "LinearRegression().predict(values)",
}

_STARTS = {
    "pytorch-training": (_TORCH_START, TORCH),
    "tensorflow-training": (_KERAS_START, KERAS),
    "sagemaker-xgboost": (_XGBOOST_START, XGBOOST),
    "sagemaker-scikit-learn": (_SCIKIT_LEARN_START, SCIKIT_LEARN),
}
SCRIPTS = {
    image: {name: f"{PROLOGUE}{start}{script}\n{EPILOGUE}" for name, script in scripts.items()}
    for image, (start, scripts) in _STARTS.items()
}
