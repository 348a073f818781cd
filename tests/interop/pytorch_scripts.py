"""Parts of which the PyTorch scenarios are made."""

PREAMBLE = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(4, 3)
        self.relu = nn.ReLU()
        self.fc2 = nn.Linear(3, 2)

    def forward(self, x):
        return self.fc2(self.relu(self.fc1(x)))

def batches(count):
    generator = torch.Generator().manual_seed(1)
    return [(torch.randn(5, 4, generator=generator), torch.randint(0, 2, (5,), generator=generator))
            for _ in range(count)]

def fit(hook, net, criterion, count=6, optimizer=None, each=lambda number: None):
    optimizer = optimizer or torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    for number, (x, y) in enumerate(batches(count)):
        optimizer.zero_grad()
        loss = criterion(net(x), y)
        loss.backward()
        optimizer.step()
        each(number)

def evaluate(net, criterion, count=3, each=lambda number: None):
    net.eval()
    with torch.no_grad():
        for number, (x, y) in enumerate(batches(count)):
            criterion(net(x), y)
            each(number)
    net.train()

def attempt(function, *arguments, **named):
    try:
        return function(*arguments, **named)
    except Exception as error:
        return f"raises {type(error).__name__}"

def see_hook(hook):
    return {"step": hook.step, "mode": hook.mode, "mode_steps": dict(hook.mode_steps), "saved": hook.last_saved_step}
"""
EACH = "save_config=smd.SaveConfig(save_interval=1)"
MODEL = """
net, criterion = Net(), nn.CrossEntropyLoss()
hook.register_module(net)
hook.register_loss(criterion)
"""
FIT = "fit(hook, net, criterion)"
WITH_GRADIENTS = 'include_collections=["weights", "biases", "gradients", "losses"]'
EPOCHS = """
for epoch in range(3):
    hook.set_mode(smd.modes.TRAIN)
    fit(hook, net, criterion, 4)
    hook.set_mode(smd.modes.EVAL)
    evaluate(net, criterion, 2)
"""
ALL_REDUCTIONS = '["min", "max", "mean", "std", "variance", "sum", "prod"]'


def with_hook(arguments: str, *body: str) -> str:
    return "\n".join([f"hook = smd.Hook(out, {arguments})", *body])


def trained(arguments: str, *before: str, fit: str = FIT) -> str:
    """A hook, what is done with it, and a training with a loss module."""
    return with_hook(arguments, *before, MODEL, fit)


def fit_another(arguments: str, model: str, shape: str = "torch.randn(5, 4)") -> str:
    """Three steps of another model; the loss is a function that the hook does not know."""
    return with_hook(
        arguments,
        f"{model}\nhook.register_module(net)\noptimizer = torch.optim.Adam(net.parameters(), lr=0.01)",
        f"for _ in range(3):\n    x = {shape}\n    optimizer.zero_grad()\n    found = net(x)\n"
        "    found = found[0] if isinstance(found, tuple) else found\n"
        "    (found ** 2).mean().backward()\n    optimizer.step()",
    )
