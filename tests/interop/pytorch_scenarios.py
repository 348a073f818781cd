"""Small PyTorch scripts for `scenario_program.py`."""

from typing import Any

from tests.interop.pytorch_model_scenarios import MODEL_SCENARIOS
from tests.interop.pytorch_scripts import (
    ALL_REDUCTIONS,
    EACH,
    EPOCHS,
    FIT,
    MODEL,
    PREAMBLE,
    WITH_GRADIENTS,
    fit_another,
    trained,
    with_hook,
)

__all__ = ["PREAMBLE", "SCENARIOS", "build_names"]

SCENARIOS = {
    # Which steps.
    "default": trained(""),
    "each_step": trained(EACH),
    "save_all": trained(f"{EACH}, save_all=True"),
    "save_all_default_interval": trained("save_all=True"),
    "interval_3": trained(f"{WITH_GRADIENTS}, save_config=smd.SaveConfig(save_interval=3)"),
    "start_step": trained(f"{WITH_GRADIENTS}, save_config=smd.SaveConfig(save_interval=2, start_step=3)"),
    "end_step": trained(f"{WITH_GRADIENTS}, save_config=smd.SaveConfig(save_interval=1, end_step=3)"),
    "start_and_end": trained(f"{EACH[:-1]}, start_step=2, end_step=4), {WITH_GRADIENTS}"),
    "save_steps": trained(f"{WITH_GRADIENTS}, save_config=smd.SaveConfig(save_steps=[1, 4])"),
    "save_steps_beyond": trained(f"{WITH_GRADIENTS}, save_config=smd.SaveConfig(save_steps=[100])"),
    "never": trained("save_config=smd.SaveConfig(start_step=100)"),
    "no_step": trained(EACH, fit=""),
    "no_model": with_hook(EACH),
    "many_steps": trained("save_config=smd.SaveConfig(save_interval=5)", fit="fit(hook, net, criterion, 23)"),
    # Modes.
    "epochs": trained(f"{EACH}, {WITH_GRADIENTS}", fit=EPOCHS),
    "epochs_default": trained("", fit=EPOCHS),
    "epochs_interval": trained(f"save_config=smd.SaveConfig(save_interval=3), {WITH_GRADIENTS}", fit=EPOCHS),
    "epochs_of_modes": trained(
        "save_config=smd.SaveConfig({smd.modes.TRAIN: smd.SaveConfigMode(save_interval=2), "
        "smd.modes.EVAL: smd.SaveConfigMode(save_interval=1)})",
        fit=EPOCHS,
    ),
    "epochs_of_one_mode": trained(
        "save_config={smd.modes.EVAL: smd.SaveConfigMode(save_interval=2, start_step=1)}", fit=EPOCHS
    ),
    "epochs_save_all": trained(f"{EACH}, save_all=True", fit=EPOCHS),
    "epochs_save_steps": trained(
        "save_config={smd.modes.TRAIN: smd.SaveConfigMode(save_steps=[0, 5]), "
        "smd.modes.EVAL: smd.SaveConfigMode(end_step=3)}, save_all=True",
        fit=EPOCHS,
    ),
    "predict": trained(
        f"{EACH}, save_all=True", fit=f"{FIT}\nhook.set_mode(smd.modes.PREDICT)\nevaluate(net, lambda x, y: None, 2)"
    ),
    "eval_first": trained(
        f"{EACH}, {WITH_GRADIENTS}",
        fit=f"hook.set_mode(smd.modes.EVAL)\nevaluate(net, criterion)\nhook.set_mode(smd.modes.TRAIN)\n{FIT}",
    ),
    "mode_after_training": trained(EACH, fit=f"{FIT}\nhook.set_mode(smd.modes.EVAL)"),
    "mode_by_name": trained(EACH, fit=f'seen["mode"] = attempt(hook.set_mode, "TRAIN")\n{FIT}'),
    "mode_unknown": trained(EACH, fit=f'seen["mode"] = attempt(hook.set_mode, 17)\n{FIT}'),
    "global_then_train": trained(f"{EACH}, {WITH_GRADIENTS}", fit=f"{FIT}\nhook.set_mode(smd.modes.TRAIN)\n{FIT}"),
    "train_in_eval_mode": trained(f"{EACH}, {WITH_GRADIENTS}", fit=f"hook.set_mode(smd.modes.EVAL)\n{FIT}"),
    "mode_after_the_forward_pass": trained(
        f"{EACH}, {WITH_GRADIENTS}",
        fit="optimizer = torch.optim.SGD(net.parameters(), lr=0.1)\nfor epoch in range(2):\n"
        "    for mode in (smd.modes.TRAIN, smd.modes.EVAL):\n        for x, y in batches(2):\n"
        "            found = net(x)\n            hook.set_mode(mode)\n            optimizer.zero_grad()\n"
        "            criterion(found, y).backward()\n            optimizer.step()",
    ),
    "mode_before_the_update": trained(
        f"{EACH}, {WITH_GRADIENTS}",
        fit="optimizer = torch.optim.SGD(net.parameters(), lr=0.1)\nfor x, y in batches(3):\n"
        "    hook.set_mode(smd.modes.TRAIN)\n    optimizer.zero_grad()\n    loss = criterion(net(x), y)\n"
        "    loss.backward()\n    hook.set_mode(smd.modes.EVAL)\n    optimizer.step()",
    ),
    # Collections.
    "weights": trained(f'{EACH}, include_collections=["weights"]'),
    "biases": trained(f'{EACH}, include_collections=["biases"]'),
    "gradients": trained(f'{EACH}, include_collections=["gradients"]'),
    "losses_twice": trained(f'{EACH}, include_collections=["losses"]'),
    "nested_collections": trained(f'{EACH}, include_collections=[["weights"], "biases"]'),
    "collection_all": trained(f'{EACH}, include_collections=["all"]'),
    "collection_default": trained(f'{EACH}, include_collections=["default"]'),
    "collection_unknown": trained(f'{EACH}, include_collections=["unknown"]'),
    "collection_metrics": trained(f'{EACH}, include_collections=["metrics"]'),
    "collection_empty": trained(f'{EACH}, include_collections=["own"]', 'hook.get_collection("own")'),
    "collection_not_included": trained(EACH, 'hook.get_collection("own").include("fc1")'),
    "custom": trained(f'{EACH}, include_collections=["own"]', 'hook.get_collection("own").include("fc1")'),
    "custom_list": trained(
        f'{EACH}, include_collections=["own"]', 'hook.get_collection("own").include(["fc1", "relu_output"])'
    ),
    "custom_added_late": trained(
        f"{EACH}, {WITH_GRADIENTS}",
        fit=f'{FIT}\nhook.get_collection("own").include("relu")\nhook.include_collections.append("own")\n{FIT}',
    ),
    "custom_object": trained(
        f'{EACH}, include_collections=["own"]', 'hook.add_collection(Collection("own", include_regex=["fc2.*"]))'
    ),
    "custom_by_name": trained(
        f'{EACH}, include_collections=["own"]', 'seen["added"] = attempt(hook.add_collection, 3)'
    ),
    "custom_interval": trained(
        f'{WITH_GRADIENTS[:-1]}, "own"]',
        'hook.get_collection("own").include("relu")',
        'hook.get_collection("own").save_config = smd.SaveConfig(save_interval=2)',
    ),
    "custom_of_mode": trained(
        'save_config=smd.SaveConfig(save_interval=3), include_collections=["own"]',
        'hook.get_collection("own").include("relu_output")',
        'hook.get_collection("own").save_config = '
        "smd.SaveConfig({smd.modes.EVAL: smd.SaveConfigMode(save_interval=1)})",
        fit=EPOCHS,
    ),
    "custom_reductions": trained(
        f'{EACH}, include_collections=["own", "weights"]',
        'hook.get_collection("own").include("fc1")',
        'hook.get_collection("own").reduction_config = smd.ReductionConfig(reductions=["max"], norms=["l2"])',
    ),
    "default_collection_of_regex": trained(
        f'{EACH}, include_collections=["default"]', 'hook.get_collection("default").include("fc2")'
    ),
    "changed_regex_of_weights": trained(
        f'{EACH}, include_collections=["weights"]', 'hook.get_collection("weights").include("relu_output")'
    ),
    "losses_interval": trained(
        f"{EACH}, {WITH_GRADIENTS}",
        'hook.get_collection("losses").save_config = smd.SaveConfig(save_interval=4)',
    ),
    "losses_configured_by_modes": trained(
        WITH_GRADIENTS,
        'hook.get_collection("losses").save_config = '
        "smd.SaveConfig({smd.modes.TRAIN: smd.SaveConfigMode(save_interval=2)})",
        fit=EPOCHS,
    ),
    "module_outputs": trained(
        f'{EACH}, include_collections=["own"]',
        "inner = nn.Linear(4, 4)",
        fit='hook.get_collection("own").add_module_tensors(net.relu, inputs=True, outputs=True)\n' + FIT,
    ),
    "module_inputs": trained(
        f'{EACH}, include_collections=["own"]',
        fit='hook.get_collection("own").add_module_tensors(net.fc2, inputs=True, outputs=False)\n' + FIT,
    ),
    "regex_text": trained(f'{EACH}, include_regex="relu"'),
    "regex_list": trained(f'{EACH}, include_regex=["relu_.*", "fc1"]'),
    "regex_of_nothing": trained(f'{EACH}, include_regex=["nothing"]'),
    "regex_and_collections": trained(f'{EACH}, include_regex=["relu"], include_collections=["weights"]'),
    "regex_wrong": trained(f'{EACH}, include_regex=["("]'),
    "tensor_names": trained(
        f'{EACH}, include_collections=["own"]',
        'hook.get_collection("own").add_tensor_name("Net_fc1.weight")',
    ),
    # Reductions.
    "reductions": trained(
        f"{EACH}, {WITH_GRADIENTS}, reduction_config=smd.ReductionConfig(reductions={ALL_REDUCTIONS})"
    ),
    "absolute_reductions": trained(
        f"{EACH}, {WITH_GRADIENTS}, reduction_config=smd.ReductionConfig(abs_reductions={ALL_REDUCTIONS})"
    ),
    "norms": trained(
        f'{EACH}, {WITH_GRADIENTS}, reduction_config=smd.ReductionConfig(norms=["l1", "l2"], abs_norms=["l1", "l2"])'
    ),
    "reductions_and_values": trained(
        f'{EACH}, {WITH_GRADIENTS}, reduction_config=smd.ReductionConfig(reductions=["mean"], save_raw_tensor=True)'
    ),
    "shapes": trained(f"{EACH}, {WITH_GRADIENTS}, reduction_config=smd.ReductionConfig(save_shape=True)"),
    "shapes_and_values": trained(
        f"{EACH}, {WITH_GRADIENTS}, reduction_config=smd.ReductionConfig(save_shape=True, save_raw_tensor=True)"
    ),
    "reductions_of_all": trained(
        f'{EACH}, save_all=True, reduction_config=smd.ReductionConfig(reductions=["min", "max"])'
    ),
    "reductions_of_large_numbers": fit_another(
        f'{EACH}, include_collections=["own"], reduction_config=smd.ReductionConfig(reductions={ALL_REDUCTIONS})',
        'hook.get_collection("own").include("0_input")\nnet = nn.Sequential(nn.Linear(4, 2))',
        "torch.linspace(-1, 2, 20).reshape(5, 4) * 1e25",
    ),
    "reductions_of_modes": trained(
        f'{EACH}, save_all=True, reduction_config=smd.ReductionConfig(abs_reductions=["mean"])', fit=EPOCHS
    ),
    "no_reductions": trained(f"{EACH}, {WITH_GRADIENTS}, reduction_config=smd.ReductionConfig()"),
    "reduction_unknown": 'seen["made"] = attempt(smd.ReductionConfig, reductions=["median"])',
    # Losses.
    "functional_loss": with_hook(
        f"{EACH}, {WITH_GRADIENTS}",
        "net = Net()\nhook.register_module(net)",
        "def criterion(found, y):\n    loss = F.cross_entropy(found, y)\n"
        '    hook.record_tensor_value("nll_loss", loss)\n    return loss',
        FIT,
    ),
    "functional_loss_of_other_name": with_hook(
        f'{EACH}, include_regex=["error"]',
        "net = Net()\nhook.register_module(net)",
        "def criterion(found, y):\n    loss = F.cross_entropy(found, y)\n"
        '    hook.record_tensor_value("error", loss)\n    hook.record_tensor_value("error", loss * 2)\n'
        "    return loss",
        FIT,
    ),
    "recorded_number": trained(EACH, fit=f'{FIT}\nseen["number"] = attempt(hook.record_tensor_value, "loss", 0.5)'),
    "loss_inputs": trained(f'{EACH}, include_regex=["Loss_input"]'),
    "two_losses": with_hook(
        EACH,
        "net, first, second = Net(), nn.CrossEntropyLoss(), nn.MultiMarginLoss()",
        "hook.register_module(net)\nhook.register_loss(first)\nhook.register_loss(second)",
        "fit(hook, net, lambda found, y: first(found, y) + second(found, y))",
    ),
    "two_losses_of_a_class": with_hook(
        EACH,
        "net, first, second = Net(), nn.CrossEntropyLoss(), nn.CrossEntropyLoss(label_smoothing=0.1)",
        "hook.register_module(net)\nhook.register_loss(first)\nhook.register_loss(second)",
        "fit(hook, net, lambda found, y: first(found, y) + second(found, y))",
    ),
    "loss_of_each": with_hook(
        EACH,
        'net, criterion = Net(), nn.CrossEntropyLoss(reduction="none")',
        "hook.register_module(net)\nhook.register_loss(criterion)",
        "fit(hook, net, lambda found, y: criterion(found, y).mean())",
    ),
    "own_loss": with_hook(
        EACH,
        "class OwnLoss(nn.modules.loss._Loss):\n    def forward(self, found, y):\n"
        "        return F.cross_entropy(found, y)",
        "net, criterion = Net(), OwnLoss()\nhook.register_module(net)\nhook.register_loss(criterion)",
        FIT,
    ),
    "mse_loss": with_hook(
        f"{EACH}, save_all=True",
        "net, criterion = Net(), nn.MSELoss()\nhook.register_module(net)\nhook.register_loss(criterion)",
        "fit(hook, net, lambda found, y: criterion(found, F.one_hot(y, 2).float()))",
    ),
    "loss_not_registered": with_hook(
        EACH, "net, criterion = Net(), nn.CrossEntropyLoss()\nhook.register_module(net)", FIT
    ),
    "loss_before_model": with_hook(
        EACH,
        "net, criterion = Net(), nn.CrossEntropyLoss()\nhook.register_loss(criterion)\nhook.register_module(net)",
        FIT,
    ),
    "loss_of_wrong_type": trained(EACH, fit='seen["loss"] = attempt(hook.register_loss, nn.Linear(1, 1))\n' + FIT),
    "loss_inside_the_model": fit_another(
        f"{EACH}, save_all=True",
        "class WithLoss(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.layer, self.loss = nn.Linear(4, 4), nn.MSELoss()\n"
        "    def forward(self, x):\n        return self.loss(self.layer(x), x)\nnet = WithLoss()",
    ),
    # Values that scripts save.
    "scalars": trained(EACH, fit='fit(hook, net, criterion, each=lambda n: hook.save_scalar("number", n))'),
    "scalars_between": trained(
        "save_config=smd.SaveConfig(save_interval=3)",
        fit='fit(hook, net, criterion, each=lambda n: hook.save_scalar(f"number{n}", n))',
    ),
    "scalars_of_one_name": trained(
        "save_config=smd.SaveConfig(save_interval=3)",
        fit='fit(hook, net, criterion, each=lambda n: hook.save_scalar("number", n))',
    ),
    "scalars_rarely": trained(
        "save_config=smd.SaveConfig(save_interval=4)",
        fit='fit(hook, net, criterion, 10, each=lambda n: n % 2 and hook.save_scalar("number", n))',
    ),
    "scalar_before": trained(EACH, 'hook.save_scalar("number", 3)'),
    "scalar_after": trained(EACH, fit=f'{FIT}\nhook.save_scalar("number", 3)'),
    "scalar_after_last_saved": trained("", fit=f'{FIT}\nhook.save_scalar("number", 3)'),
    "scalar_as_metric": trained(
        EACH, fit='fit(hook, net, criterion, each=lambda n: hook.save_scalar("number", n, sm_metric=True))'
    ),
    "scalar_of_tensor": trained(
        EACH,
        fit='fit(hook, net, criterion, each=lambda n: hook.save_scalar("tensor", torch.tensor(n / 2)) or '
        'hook.save_scalar("array", np.array([n])) or hook.save_scalar("list", [n]))',
    ),
    "scalar_of_many": trained(
        EACH,
        fit=f'{FIT}\nseen["many"] = attempt(hook.save_scalar, "many", np.arange(3))\n'
        'seen["text"] = attempt(hook.save_scalar, "text", {"a": 1}) if False else None',
    ),
    "scalars_of_epochs": trained(
        EACH,
        fit="for epoch in range(3):\n    hook.set_mode(smd.modes.TRAIN)\n    fit(hook, net, criterion, 4)\n"
        '    hook.save_scalar("train_end", epoch)\n'
        "    hook.set_mode(smd.modes.EVAL)\n    evaluate(net, criterion, 2)\n"
        '    hook.save_scalar("accuracy", epoch / 2)',
    ),
    "scalars_of_epochs_default": trained(
        "",
        fit="for epoch in range(3):\n    hook.set_mode(smd.modes.TRAIN)\n    fit(hook, net, criterion, 4)\n"
        '    hook.save_scalar("train_end", epoch)\n'
        "    hook.set_mode(smd.modes.EVAL)\n    evaluate(net, criterion, 2)\n"
        '    hook.save_scalar("accuracy", epoch / 2)',
    ),
    "save_tensor": trained(
        f'{EACH}, include_collections=["default"]',
        fit='fit(hook, net, criterion, each=lambda n: hook.save_tensor("vector", np.arange(3) + n, "default"))',
    ),
    "save_tensor_of_own": trained(
        f'{EACH}, include_collections=["own"]',
        'hook.get_collection("own").include("vector")',
        fit='fit(hook, net, criterion, each=lambda n: hook.save_tensor("vector", torch.arange(3) + n, "own"))',
    ),
    "save_tensor_of_a_rare_collection": trained(
        "",
        'hook.get_collection("losses").save_config = smd.SaveConfig(save_interval=2)',
        fit="fit(hook, net, criterion, each=lambda n: hook.save_tensor('vector', torch.arange(3) + n))",
    ),
    "save_tensor_before_each_step": trained(
        f'{EACH}, include_collections=["own"]',
        'hook.get_collection("own").include("vector")',
        fit="for number in range(3):\n"
        '    hook.save_tensor("vector", torch.arange(3) + number, "own")\n    fit(hook, net, criterion, 1)',
    ),
    "save_tensor_in_the_forward_pass": with_hook(
        f'{EACH}, include_collections=["default"]',
        "class Saving(Net):\n    def forward(self, x):\n        found = super().forward(x)\n"
        '        hook.save_tensor("given", x, "default")\n        return found',
        "net, criterion = Saving(), nn.CrossEntropyLoss()\nhook.register_module(net)\nhook.register_loss(criterion)",
        FIT,
    ),
    **MODEL_SCENARIOS,
    # Files, settings.
    "tensorboard": trained(f"{EACH}, {WITH_GRADIENTS}, export_tensorboard=True", fit=EPOCHS),
    "tensorboard_elsewhere": trained(
        f'{EACH}, save_all=True, export_tensorboard=True, tensorboard_dir=out + "/tensorboard"',
        fit='fit(hook, net, criterion, each=lambda n: hook.save_scalar("number", n))',
    ),
    "tensorboard_of_reductions": trained(
        f'{EACH}, {WITH_GRADIENTS}, export_tensorboard=True, reduction_config=smd.ReductionConfig(reductions=["mean"])',
    ),
    "tensorboard_without_histograms": trained(
        f"{EACH}, {WITH_GRADIENTS}, export_tensorboard=True",
        'hook.get_collection("weights").save_histogram = False',
    ),
    "dry_run": trained(f"{EACH}, save_all=True, dry_run=True"),
    "all_workers": trained(f'{EACH}, {WITH_GRADIENTS}, include_workers="all"'),
    "from_json": "import json, pathlib\npathlib.Path(out).parent.mkdir(exist_ok=True)\n"
    'file = pathlib.Path(out).with_suffix(".json")\n'
    'file.write_text(json.dumps({"LocalPath": out, "HookParameters": {"save_interval": "2", "include_workers": "all"}, '
    '"CollectionConfigurations": [{"CollectionName": "weights"}, {"CollectionName": "own", "CollectionParameters": '
    '{"include_regex": "relu", "save_interval": "3", "reductions": "mean,max"}}]}))\n'
    "hook = smd.Hook.create_from_json_file(str(file))" + MODEL + FIT,
    "from_json_of_modes": "import json, pathlib\npathlib.Path(out).parent.mkdir(exist_ok=True)\n"
    'file = pathlib.Path(out).with_suffix(".json")\n'
    'file.write_text(json.dumps({"LocalPath": out, "HookParameters": {"train.save_interval": "2", '
    '"eval.save_steps": "0,3", "save_all": "true"}}))\n'
    "hook = smd.Hook.create_from_json_file(str(file))" + MODEL + EPOCHS,
    "from_json_missing": 'seen["made"] = attempt(smd.Hook.create_from_json_file, out + ".missing")',
    "folder_exists": trained(EACH, fit=f"{FIT}\nhook.close()\nseen['again'] = attempt(smd.Hook, out)"),
    "closed_early": trained(f"{EACH}, {WITH_GRADIENTS}", fit="fit(hook, net, criterion, 2)\nhook.close()\n" + FIT),
    "closed_twice": trained(EACH, fit=f"{FIT}\nhook.close()\nhook.close()"),
    "no_folder": 'seen["made"] = attempt(smd.Hook)',
    "wrong_settings": 'seen["save"] = attempt(smd.Hook, out, save_config="each")\n'
    'seen["mode"] = attempt(smd.SaveConfig, {"TRAIN": 3})\n'
    'seen["text"] = attempt(smd.SaveConfig, save_interval="a")\n'
    'seen["zero"] = attempt(smd.SaveConfig, save_interval=0)\n'
    'seen["negative"] = attempt(smd.SaveConfig, save_interval=-1)\n'
    'seen["norm"] = attempt(smd.ReductionConfig, norms=["l7"])\n'
    'seen["reduction"] = attempt(smd.ReductionConfig, reductions="mean")\n'
    'seen["unknown"] = attempt(smd.Hook, out, unknown=3)',
    "attributes": trained(
        f"{EACH}, {WITH_GRADIENTS}",
        'seen["before"] = see_hook(hook)',
        fit="fit(hook, net, criterion, each=lambda n: seen.update({n: see_hook(hook)}))\n"
        'hook.set_mode(smd.modes.EVAL)\nseen["eval"] = see_hook(hook)\nevaluate(net, criterion)\n'
        'seen["evaluated"] = see_hook(hook)\nhook.close()\nseen["closed"] = see_hook(hook)\n'
        'seen["same"] = smd.get_hook() is hook\nseen["set"] = attempt(smd.set_hook, 3)',
    ),
    "questions_of_the_hook": trained(
        f"save_config=smd.SaveConfig(save_interval=2), {WITH_GRADIENTS}",
        'seen["default"] = attempt(hook.has_default_hook_configuration)',
        fit="fit(hook, net, criterion, each=lambda n: seen.update({n: [hook.should_save_tensor_or_collection(name, "
        'collection) for name, collection in (("Net_fc1.weight", "weights"), ("a", "losses"), ("relu", "own"))]}))\n'
        'seen["collections"] = sorted(hook.get_collections())\n'
        'seen["missing"] = attempt(hook.get_collection, "missing", create=False)',
    ),
    "settings_of_collections": trained(
        f"{EACH}, {WITH_GRADIENTS}",
        'hook.get_collection("weights").save_config = smd.SaveConfig(save_interval=2)',
        fit=FIT + '\nweights, losses = hook.get_collection("weights"), hook.get_collection("losses")\n'
        'seen["settings"] = [weights.name, weights.include_regex, sorted(weights.tensor_names), '
        "weights.save_config.should_save_step(smd.modes.TRAIN, 2), "
        "weights.save_config.get_save_config(smd.modes.TRAIN).save_interval, "
        "weights.reduction_config.save_raw_tensor, weights.save_histogram, losses.save_histogram, "
        "losses.reduction_config.reductions]",
    ),
}


def build_names(out: str) -> dict[str, Any]:
    import numpy as np
    import torch
    from torch import nn
    from torch.nn import functional

    import smdebug.pytorch as smd
    from smdebug.pytorch.collection import Collection

    torch.manual_seed(0)
    return {"np": np, "torch": torch, "nn": nn, "F": functional, "smd": smd, "out": out, "Collection": Collection}
