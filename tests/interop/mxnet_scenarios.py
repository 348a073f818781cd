"""Small MXNet scripts for `scenario_program.py`."""

from typing import Any

PREAMBLE = """
def make_net(prefix="net_"):
    net = nn.HybridSequential(prefix=prefix)
    with net.name_scope():
        net.add(nn.Dense(3, activation="relu"), nn.Dense(2))
    net.initialize(mx.init.Xavier(), force_reinit=True)
    return net

def batches(count):
    generator = np.random.default_rng(1)
    return [(nd.array(generator.random((5, 4))), nd.array(generator.integers(0, 2, 5))) for _ in range(count)]

def fit(net, criterion, count=4, trainer=None, each=lambda number: None):
    trainer = trainer or gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1})
    for number, (x, y) in enumerate(batches(count)):
        with autograd.record():
            loss = criterion(net(x), y)
        loss.backward()
        trainer.step(5)
        each(number)

def evaluate(net, criterion, count=2):
    for x, y in batches(count):
        criterion(net(x), y)
"""
EACH = "save_config=smd.SaveConfig(save_interval=1)"
ALL = 'include_collections=["weights", "biases", "gradients", "losses"]'
MODEL = """
net, criterion = make_net(), gluon.loss.SoftmaxCrossEntropyLoss()
hook.register_block(net)
hook.register_block(criterion)
"""
FIT = "fit(net, criterion)"
EPOCHS = """
for epoch in range(2):
    hook.set_mode(smd.modes.TRAIN)
    fit(net, criterion, 3)
    hook.set_mode(smd.modes.EVAL)
    evaluate(net, criterion)
"""


def trained(arguments: str, *before: str, fit: str = FIT) -> str:
    return "\n".join([f"hook = smd.Hook(out, {arguments})", *before, MODEL, fit])


SCENARIOS = {
    "default": trained(""),
    "each_step": trained(EACH),
    "save_all": trained(f"{EACH}, save_all=True"),
    "interval": trained(f"{ALL}, save_config=smd.SaveConfig(save_interval=2)"),
    "start_and_end": trained(f"{ALL}, save_config=smd.SaveConfig(save_interval=1, start_step=1, end_step=3)"),
    "save_steps": trained(f"{ALL}, save_config=smd.SaveConfig(save_steps=[1])"),
    "epochs": trained(f"{EACH}, {ALL}", fit=EPOCHS),
    "epochs_by_default": trained("", fit=EPOCHS),
    "epochs_of_modes": trained(
        f"{ALL}, save_config=smd.SaveConfig({{smd.modes.TRAIN: smd.SaveConfigMode(save_interval=2), "
        "smd.modes.EVAL: smd.SaveConfigMode(save_interval=1)})",
        fit=EPOCHS,
    ),
    "weights": trained(f'{EACH}, include_collections=["weights"]'),
    "gradients": trained(f'{EACH}, include_collections=["gradients"]'),
    "nested_collections": trained(f'{EACH}, include_collections=[["weights"], "biases"]'),
    "regex": trained(f'{EACH}, include_regex=["relu"]'),
    "custom": trained(f'{EACH}, include_collections=["own"]', 'hook.get_collection("own").include("dense0")'),
    "custom_interval": trained(
        f'{ALL[:-1]}, "own"]',
        'hook.get_collection("own").include("relu")',
        'hook.get_collection("own").save_config = smd.SaveConfig(save_interval=2)',
    ),
    "reductions": trained(
        f'{EACH}, {ALL}, reduction_config=smd.ReductionConfig(reductions=["min", "max", "mean", "sum", "prod"], '
        'abs_reductions=["mean"])'
    ),
    "norms": trained(f'{EACH}, {ALL}, reduction_config=smd.ReductionConfig(norms=["l1", "l2"], abs_norms=["l1"])'),
    "reductions_and_values": trained(
        f'{EACH}, {ALL}, reduction_config=smd.ReductionConfig(reductions=["mean"], save_raw_tensor=True)'
    ),
    "shapes": trained(f"{EACH}, {ALL}, reduction_config=smd.ReductionConfig(save_shape=True)"),
    "scalars": trained(EACH, fit='fit(net, criterion, each=lambda n: hook.save_scalar("number", n))'),
    "scalars_between": trained(
        "save_config=smd.SaveConfig(save_interval=3)",
        fit='fit(net, criterion, 6, each=lambda n: hook.save_scalar(f"number{n}", n))',
    ),
    "after_the_trainer": trained(
        f'{ALL}, include_regex="output", save_config=smd.SaveConfig(save_interval=2)',
        fit="x, y = batches(1)[0]\nfit(net, criterion, each=lambda _: criterion(net[1](net[0](x)), y))",
    ),
    "hybridized": trained(f"{EACH}, {ALL}", fit=f"net.hybridize()\n{FIT}"),
    "convolution": "\n".join(
        [
            f"hook = smd.Hook(out, {EACH}, {ALL})",
            'net = nn.HybridSequential(prefix="conv_")',
            "with net.name_scope():\n    net.add(nn.Conv2D(2, 2), nn.BatchNorm(), nn.Flatten(), nn.Dense(2))",
            "net.initialize(mx.init.Xavier())\ncriterion = gluon.loss.SoftmaxCrossEntropyLoss()",
            "hook.register_block(net)\nhook.register_block(criterion)",
            'trainer = gluon.Trainer(net.collect_params(), "adam")',
            (
                "for x, y in batches(3):\n    with autograd.record():\n"
                "        loss = criterion(net(x.reshape((5, 1, 2, 2))), y)\n    loss.backward()\n    trainer.step(5)"
            ),
        ]
    ),
    "l2_loss": "\n".join(
        [
            f"hook = smd.Hook(out, {EACH}, save_all=True)",
            "net, criterion = make_net(), gluon.loss.L2Loss()",
            "hook.register_block(net)\nhook.register_block(criterion)",
            "fit(net, lambda found, y: criterion(found, nd.one_hot(y, 2)))",
        ]
    ),
    "tensorboard": trained(f"{EACH}, {ALL}, export_tensorboard=True"),
    "all_workers": trained(f'{EACH}, {ALL}, include_workers="all"'),
    "attributes": trained(
        EACH, fit=f'{FIT}\nseen["hook"] = [hook.step, hook.mode, hook.mode_steps, hook.last_saved_step, hook.worker]'
    ),
}


def build_names(out: str) -> dict[str, Any]:
    import mxnet as mx
    import numpy as np
    from mxnet import autograd, gluon, nd
    from mxnet.gluon import nn

    import smdebug.mxnet as smd

    mx.random.seed(0)
    np.random.seed(0)
    # Gluon numbers blocks of a class within the process.
    mx.name.NameManager._current.value = mx.name.NameManager()
    gluon.block._BlockScope._current.value = None
    return {"np": np, "mx": mx, "nd": nd, "nn": nn, "gluon": gluon, "autograd": autograd, "smd": smd, "out": out}
