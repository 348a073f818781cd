"""A training whose Python is profiled by the smdebug on the path.

Arguments: the framework, a folder, and a way.

A way names what the script does: "modes" sets them, "evaluated" ends with an evaluation, "closed" closes the hook.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any

framework, way = sys.argv[1], sys.argv[3]
folder = Path(sys.argv[2])
config = folder / "profilerconfig.json"
ranges = "{'StartStep': 2, 'NumSteps': 2, 'ProfilerName': 'cprofile', 'cProfileTimer': 'total_time'}"
parameters = {"LocalPath": f"{folder / 'profile'}/", "PythonProfilingConfig": ranges}
config.write_text(json.dumps({"ProfilingParameters": parameters}))
os.environ["SMPROFILER_CONFIG_PATH"] = str(config)


def train_pytorch() -> Any:
    import torch

    import smdebug.pytorch as smd

    model = torch.nn.Linear(4, 2)
    hook = smd.Hook(out_dir=str(folder / "run"))
    hook.register_module(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    if "modes" in way:
        hook.set_mode(smd.modes.TRAIN)
    for _ in range(2 if "evaluated" in way else 6):
        optimizer.zero_grad()
        model(torch.ones(3, 4)).sum().backward()
        optimizer.step()
    if "evaluated" in way:
        hook.set_mode(smd.modes.EVAL)
        for _ in range(2):
            model(torch.ones(3, 4))
    return hook


def train_keras() -> Any:
    import numpy as np
    import tensorflow as tf

    import smdebug.tensorflow as smd

    x, y = np.ones((32, 4), "float32"), np.ones((32, 1), "float32")
    model = tf.keras.Sequential([tf.keras.layers.Dense(1, input_shape=(4,))])
    hook = smd.KerasHook(out_dir=str(folder / "run"))
    model.compile("sgd", "mse")
    model.fit(x, y, batch_size=8, callbacks=[hook], verbose=0, epochs=2)
    if "evaluated" in way:
        model.evaluate(x, y, batch_size=6, callbacks=[hook], verbose=0)
    return hook


last_hook = train_pytorch() if framework == "pytorch" else train_keras()
if "closed" in way:
    last_hook.close()
