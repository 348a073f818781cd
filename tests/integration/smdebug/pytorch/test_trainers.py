"""Tests of Lightning's and Hugging Face's loops in unmodified scripts.

The saved values are those that the loops report.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.unit.smdebug.scripts import START, RunScript
from tests.unit.smdebug.written_run import WrittenRun

pytestmark = pytest.mark.slow

LIGHTNING = """
import json, sys, torch
import lightning
from torch import nn

torch.manual_seed(0)
noted = {"weights": {}, "gradients": {}, "losses": {}, "tested": []}

class Classifier(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.network = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
    def forward(self, x):
        return self.network(x)
    def training_step(self, batch, number):
        if number == 0:
            noted["weights"][self.current_epoch] = self.network[0].weight.tolist()
        loss = nn.functional.cross_entropy(self(batch[0]), batch[1])
        self.log("train_loss", loss)
        noted["losses"][self.global_step] = loss.item()
        return loss
    def validation_step(self, batch, number):
        loss = nn.functional.cross_entropy(self(batch[0]), batch[1])
        self.log("val_loss", loss)
        noted["tested"].append(loss.item())
    def on_before_optimizer_step(self, optimizer):
        noted["gradients"][self.global_step] = self.network[0].weight.grad.tolist()
    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)

x = torch.randn(24, 4)
data = torch.utils.data.TensorDataset(x, (x.sum(dim=1) > 0).long())
loader = torch.utils.data.DataLoader(data, batch_size=8)
trainer = lightning.Trainer(
    max_epochs=2, accelerator="cpu", logger=False, enable_checkpointing=False, enable_progress_bar=False,
    enable_model_summary=False, num_sanity_val_steps=1, default_root_dir=sys.argv[1],
)
trainer.fit(Classifier(), loader, loader)
"""

# Two networks in turn, each with the other's parameters switched off, from the very first step on.
TOGGLED = """
import json, sys, torch
import lightning
from torch import nn

torch.manual_seed(0)
noted = {"steps": []}

class Pair(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.automatic_optimization = False
        self.maker, self.judge = nn.Linear(3, 4), nn.Linear(4, 1)
        self.loss = nn.MSELoss()
    def training_step(self, batch, number):
        first, second = self.optimizers()
        step = {}
        for name, optimizer, wanted in (("maker", first, 1.0), ("judge", second, 0.0)):
            self.toggle_optimizer(optimizer)
            loss = self.loss(self.judge(self.maker(batch[0])), torch.full((4, 1), wanted))
            optimizer.zero_grad()
            self.manual_backward(loss)
            step[name] = {"loss": loss.item(), "gradient": getattr(self, name).weight.grad.tolist()}
            optimizer.step()
            self.untoggle_optimizer(optimizer)
        noted["steps"].append(step)
    def configure_optimizers(self):
        return [torch.optim.SGD(part.parameters(), lr=0.1) for part in (self.maker, self.judge)]

loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.randn(12, 3)), batch_size=4)
trainer = lightning.Trainer(
    max_epochs=1, accelerator="cpu", logger=False, enable_checkpointing=False, enable_progress_bar=False,
    enable_model_summary=False, default_root_dir=sys.argv[1],
)
trainer.fit(Pair(), loader)
"""

HUGGING_FACE = """
import json, sys, torch
from torch.utils.data import Dataset
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainerCallback, TrainingArguments

noted = {"weights": {}, "gradients": {}, "losses": {}, "tested": []}

class Sentences(Dataset):
    def __len__(self):
        return 12
    def __getitem__(self, index):
        return {"input_ids": torch.tensor([index + 1, 2, 3]), "labels": torch.tensor(index % 2)}

class Note(TrainerCallback):
    def on_pre_optimizer_step(self, arguments, state, control, model, **others):
        noted["gradients"][state.global_step] = model.classifier.weight.grad.tolist()
    def on_step_begin(self, arguments, state, control, model, **others):
        noted["weights"][state.global_step] = model.classifier.weight.tolist()
    def on_log(self, arguments, state, control, logs, **others):
        if "loss" in logs:
            noted["losses"][state.global_step - 1] = float(logs["loss"])
        if "eval_loss" in logs:
            noted["tested"].append(logs["eval_loss"])

config = BertConfig(vocab_size=20, hidden_size=8, num_hidden_layers=1, num_attention_heads=2, intermediate_size=8)
arguments = TrainingArguments(
    sys.argv[1], per_device_train_batch_size=4, per_device_eval_batch_size=12, num_train_epochs=2, logging_steps=1,
    eval_strategy="epoch", save_strategy="no", report_to=[], use_cpu=True, disable_tqdm=True, max_grad_norm=0.0,
)
torch.manual_seed(0)
Trainer(
    BertForSequenceClassification(config), arguments, train_dataset=Sentences(), eval_dataset=Sentences(),
    callbacks=[Note()],
).train()
"""

QUIET = {
    "TOKENIZERS_PARALLELISM": "false",
    "HF_HUB_OFFLINE": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "DO_NOT_TRACK": "1",
    "LIGHTNING_DISABLE_UPGRADE_CHECK": "1",
}


@pytest.fixture
def train(run_torch_script: RunScript, run: WrittenRun, tmp_path: Path) -> Any:
    def start(script: str) -> Any:
        config = tmp_path / "debughookconfig.json"
        collections = [{"CollectionName": name} for name in ("weights", "gradients", "losses")]
        hook_parameters = {"save_interval": "1"}
        content = {"LocalPath": str(run.path), "CollectionConfigurations": collections}
        config.write_text(json.dumps({**content, "HookParameters": hook_parameters}))
        noted = tmp_path / "noted.json"
        text = f"{START}{script}\nopen({str(noted)!r}, 'w').write(json.dumps(noted))\n"
        paths = {"HOME": str(tmp_path), "HF_HOME": str(tmp_path / "hf")}
        environment = {**QUIET, **paths, "SMDEBUG_CONFIG_FILE_PATH": str(config)}
        done = run_torch_script(text, str(tmp_path / "out"), **environment)
        assert done.returncode == 0, done.stderr + done.stdout
        return json.loads(noted.read_text())

    return start


def get_places(run: WrittenRun) -> Any:
    return [(run.index(step)["meta"]["mode"], run.index(step)["meta"]["mode_step"]) for step in run.steps]


def get_mode(run: WrittenRun, mode: str) -> Any:
    return [step for step, (name, _) in zip(run.steps, get_places(run), strict=True) if name == mode]


# By day unit/smdebug/pytorch/test_model_kinds.py has a step's closure, in which Lightning trains.
@pytest.mark.nightly
def test_lightning(train: Any, run: WrittenRun) -> None:
    noted = train(LIGHTNING)
    trained = get_mode(run, "TRAIN")
    assert len(trained) == 6
    for number, step in enumerate(trained):
        values = run.values(step)
        assert values["CrossEntropyLoss_output_0"] == np.float32(noted["losses"][str(number)])
        gradient = np.float32(noted["gradients"][str(number)])
        (name,) = [found for found in values if found.startswith("gradient/") and found.endswith("0.weight")]
        np.testing.assert_array_equal(values[name], gradient)
        if number % 3 == 0:
            weights = np.float32(noted["weights"][str(number // 3)])
            np.testing.assert_array_equal(values[name.removeprefix("gradient/")], weights)
    # The sanity check before the first training step is over when there is something to capture.
    tested = [run.values(step)["CrossEntropyLoss_output_0"] for step in get_mode(run, "EVAL")]
    assert tested == [np.float32(loss) for loss in noted["tested"][-6:]]
    assert run.has_ended


@pytest.mark.nightly  # unit/smdebug/pytorch/test_model_kinds.py switches parameters off and on
def test_lightning_toggles_optimizers_from_the_first_step_on(train: Any, run: WrittenRun) -> None:
    noted = train(TOGGLED)["steps"]
    found = [run.values(step) for step in get_mode(run, "TRAIN")]
    # The call of the first network begins a step, so each turn is one.
    turns = [(name, step[name]) for step in noted for name in ("maker", "judge")]
    assert len(found) == len(turns) == 6
    for values, (name, turn) in zip(found, turns, strict=True):
        assert values["MSELoss_output_0"] == np.float32(turn["loss"])
        trained, other = ("Linear", "Linear_1") if name == "maker" else ("Linear_1", "Linear")
        np.testing.assert_array_equal(values[f"gradient/{trained}_weight"], np.float32(turn["gradient"]))
        assert f"gradient/{other}_weight" not in values


@pytest.mark.nightly  # nothing of ours is for this loop; by day test_untouched_scripts.py is
def test_hugging_face(train: Any, run: WrittenRun) -> None:
    noted = train(HUGGING_FACE)
    trained = get_mode(run, "TRAIN")
    assert len(trained) == 6
    name = "BertForSequenceClassification_classifier.weight"
    for number, step in enumerate(trained):
        values = run.values(step)
        np.testing.assert_array_equal(values[name], np.float32(noted["weights"][str(number)]))
        np.testing.assert_array_equal(values[f"gradient/{name}"], np.float32(noted["gradients"][str(number)]))
        # Its log rounds.
        assert values["CrossEntropyLoss_output_0"] == pytest.approx(noted["losses"][str(number)], abs=1e-4)
    tested = [run.values(step)["CrossEntropyLoss_output_0"] for step in get_mode(run, "EVAL")]
    np.testing.assert_allclose(tested, noted["tested"], rtol=1e-5)
    assert run.has_ended
