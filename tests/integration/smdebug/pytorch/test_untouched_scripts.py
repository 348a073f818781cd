"""Tests of unmodified scripts, against the values that torch itself prints.

Each script has its own process.
"""

import json
from pathlib import Path

import numpy as np
import pytest

from tests.unit.smdebug.scripts import START, RunScript
from tests.unit.smdebug.written_run import WrittenRun

pytestmark = pytest.mark.slow

WATCH = """
import json, sys, torch, warnings
from torch import nn
from torch.nn import functional
warnings.simplefilter("error", UserWarning)
torch.manual_seed(0)
steps = []

def note(models, losses=()):
    steps.append({
        "weights": {f"{name}_{path}": parameter.detach().tolist()
                    for name, model in models.items() for path, parameter in model.named_parameters()},
        "gradients": {f"gradient/{name}_{path}": parameter.grad.tolist()
                      for name, model in models.items() for path, parameter in model.named_parameters()
                      if parameter.grad is not None},
        "losses": {name: loss.item() for name, loss in losses},
    })

class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 3)
    def forward(self, x):
        return torch.relu(self.fc(x))

class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 4)
    def forward(self, x):
        return self.fc(x)
"""

TWO_MODELS = """
encoder, decoder, teacher = Encoder(), Decoder(), Decoder().requires_grad_(False)
optimizer = torch.optim.SGD([*encoder.parameters(), *decoder.parameters()], lr=0.1)
for _ in range(3):
    x = torch.randn(5, 4)
    optimizer.zero_grad()
    code = encoder(x)
    first, second = functional.mse_loss(decoder(code), x), functional.l1_loss(code, torch.ones_like(code))
    third = functional.mse_loss(teacher(code), x)
    (first + second + third).backward()
    note({"Encoder": encoder, "Decoder": decoder},
         [("MSELoss_output_0", first), ("L1Loss_output_0", second), ("MSELoss_output_1", third)])
    optimizer.step()
"""

IN_TURN = """
critic, maker = Encoder(), Decoder()
first = torch.optim.SGD(critic.parameters(), lr=0.1)
second = torch.optim.SGD(maker.parameters(), lr=0.1)
for step in range(4):
    made = maker(torch.randn(5, 3))
    if step % 2 == 0:
        loss = critic(made.detach()).mean()
        critic.zero_grad()
        loss.backward()
        note({"Encoder": critic, "Decoder": maker})
        first.step()
        critic.zero_grad()
    else:
        loss = critic(made).mean()
        loss.backward()
        note({"Encoder": critic, "Decoder": maker})
        second.step()
        maker.zero_grad()
        critic.zero_grad()
"""

# The judge is called, then the maker within the same step, and the judge's second call is a step of its own.
JUDGED_TWICE = """
judge, maker = Encoder(), Decoder()
first = torch.optim.SGD(judge.parameters(), lr=0.1)
second = torch.optim.SGD(maker.parameters(), lr=0.1)
for _ in range(2):
    judge.zero_grad()
    loss = judge(torch.randn(5, 4)).mean()
    loss.backward()
    note({"Encoder": judge})
    made = maker(torch.randn(5, 3))
    judge.zero_grad()
    loss = judge(made.detach()).mean()
    loss.backward()
    note({"Encoder": judge})
    first.step()
    judge.zero_grad()
    maker.zero_grad()
    loss = judge(made).mean()
    loss.backward()
    note({"Encoder": judge, "Decoder": maker})
    second.step()
"""

COMPILED = """
model = nn.Sequential(Encoder(), Decoder())
compiled = torch.compile(model, fullgraph=True, backend=BACK_END)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loss_function = nn.MSELoss()
for step in range(3):
    x = torch.randn(5, 4)
    optimizer.zero_grad()
    loss = loss_function(compiled(x), x)
    loss.backward()
    note({"Sequential": model}, [("MSELoss_output_0", loss)])
    optimizer.step()
from torch._dynamo.utils import counters
assert counters["stats"]["unique_graphs"] == 1 and not counters["graph_break"], counters
"""

BY_METHOD = COMPILED.replace(
    "compiled = torch.compile(model, fullgraph=True, backend=BACK_END)",
    "compiled = model\nmodel.compile(backend=BACK_END)",
)

# The model's parts are called while it is built, then one of them, and only then is all of it trained.
LOOKED_AT_BEFORE = """
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(nn.utils.parametrizations.weight_norm(nn.Linear(4, 3)), nn.ReLU())
        self.head = nn.Linear(self.features(torch.zeros(1, 4)).shape[1], 4)
    def forward(self, x):
        return self.head(self.features(x))

part = Model()
width = part(torch.zeros(1, 4)).shape[1]
model = nn.Sequential(part, nn.Linear(width, 4))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(4):
    x = torch.randn(5, 4)
    optimizer.zero_grad()
    loss = functional.mse_loss(model(x), x)
    loss.backward()
    note({"Sequential": model}, [("MSELoss_output_0", loss)])
    if step % 2:
        optimizer.step()
"""

# Whole compilers but for the code: generating that takes a C++ compiler, and ten seconds.
SCRIPTS = {
    "two models in a step": TWO_MODELS,
    "two models in turn": IN_TURN,
    "two models, one of them called again": JUDGED_TWICE,
    "parts looked at before": LOOKED_AT_BEFORE,
    "compiled": COMPILED.replace("BACK_END", "'aot_eager'"),
    "compiled by its method": BY_METHOD.replace("BACK_END", "'aot_eager'"),
}


# unit/smdebug/pytorch/test_compiled_models.py has each way to compile by day.
KINDS = [pytest.param(kind, marks=[pytest.mark.nightly] if kind.startswith("compiled") else []) for kind in SCRIPTS]


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_saved_is_what_torch_says(
    kind: str, run_torch_script: RunScript, run: WrittenRun, tmp_path: Path
) -> None:
    config = tmp_path / "debughookconfig.json"
    collections = [{"CollectionName": name} for name in ("weights", "biases", "gradients", "losses")]
    config.write_text(
        json.dumps(
            {
                "LocalPath": str(run.path),
                "CollectionConfigurations": collections,
                "HookParameters": {"save_interval": "1"},
            }
        )
    )
    noted = tmp_path / "noted.json"
    text = START + WATCH + SCRIPTS[kind] + f"open({str(noted)!r}, 'w').write(json.dumps(steps))\n"
    done = run_torch_script(
        text,
        SMDEBUG_CONFIG_FILE_PATH=str(config),
        HOME=str(tmp_path),
    )
    assert done.returncode == 0, done.stderr
    steps = json.loads(noted.read_text())
    assert run.steps == list(range(len(steps)))
    for number, step in enumerate(steps):
        values = run.values(number)
        for name, expected in {**step["weights"], **step["losses"]}.items():
            np.testing.assert_array_equal(values[name], np.float32(expected), err_msg=f"step {number}: {name}")
        for name in values:
            if name.startswith("gradient/"):
                np.testing.assert_array_equal(values[name], np.float32(step["gradients"][name]), err_msg=name)
        assert set(step["gradients"]) == {name for name in values if name.startswith("gradient/")}
        assert not any(name.startswith("Decoder_1") for name in values)
    assert run.has_ended
