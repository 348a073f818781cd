"""PyTorch scenarios of models and how they are trained."""

from tests.interop.pytorch_scripts import EACH, FIT, WITH_GRADIENTS, fit_another, trained, with_hook

MODEL_SCENARIOS = {
    "two_models": with_hook(
        f"{EACH}, save_all=True",
        "class Other(Net):\n    pass\nfirst, second = Net(), Other()",
        "hook.register_module(first)\nhook.register_module(second)",
        "optimizer = torch.optim.SGD([*first.parameters(), *second.parameters()], lr=0.1)",
        "for x, y in batches(3):\n    optimizer.zero_grad()\n"
        "    (first(x).mean() + second(x).mean()).backward()\n    optimizer.step()",
    ),
    "two_optimizers": with_hook(
        f"{EACH}, {WITH_GRADIENTS}",
        "class Other(Net):\n    pass\nfirst, second, criterion = Net(), Other(), nn.CrossEntropyLoss()",
        "hook.register_module(first)\nhook.register_module(second)\nhook.register_loss(criterion)",
        "optimizers = [torch.optim.SGD(net.parameters(), lr=0.1) for net in (first, second)]",
        "for x, y in batches(3):\n    for net, optimizer in zip((first, second), optimizers):\n"
        "        optimizer.zero_grad()\n        criterion(net(x), y).backward()\n        optimizer.step()",
    ),
    "gan": with_hook(
        f"{EACH}, {WITH_GRADIENTS}",
        "generator = nn.Sequential(nn.Linear(4, 4), nn.Tanh())\n"
        "class Judge(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.layer = nn.Linear(4, 1)\n    def forward(self, x):\n        return torch.sigmoid(self.layer(x))",
        "judge, criterion = Judge(), nn.BCELoss()",
        "hook.register_module(generator)\nhook.register_module(judge)\nhook.register_loss(criterion)",
        "of_judge = torch.optim.Adam(judge.parameters(), lr=0.01)",
        "of_generator = torch.optim.Adam(generator.parameters(), lr=0.01)",
        "for x, y in batches(4):\n    of_judge.zero_grad()\n"
        "    criterion(judge(x), torch.ones(5, 1)).backward()\n"
        "    made = generator(torch.randn(5, 4))\n"
        "    criterion(judge(made.detach()), torch.zeros(5, 1)).backward()\n    of_judge.step()\n"
        "    of_generator.zero_grad()\n    criterion(judge(made), torch.ones(5, 1)).backward()\n"
        "    of_generator.step()",
    ),
    "called_twice": with_hook(
        f"{EACH}, save_all=True",
        "class Twice(Net):\n    def forward(self, x):\n        return self.fc2(self.relu(self.relu(self.fc1(x))))",
        "net, criterion = Twice(), nn.CrossEntropyLoss()\nhook.register_module(net)\nhook.register_loss(criterion)",
        FIT,
    ),
    "shared_layer": fit_another(
        f"{EACH}, save_all=True", "layer = nn.Linear(4, 4)\nnet = nn.Sequential(layer, nn.ReLU(), layer)"
    ),
    "sequential": fit_another(
        f"{EACH}, save_all=True", "net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))"
    ),
    "nested": fit_another(
        f"{EACH}, save_all=True",
        "block = lambda: nn.Sequential(nn.Linear(4, 4), nn.ReLU())\nnet = nn.Sequential(block(), block(), block())",
    ),
    "deep": fit_another(f"{EACH}, {WITH_GRADIENTS}", "net = nn.Sequential(*[nn.Linear(4, 4) for _ in range(30)])"),
    "module_list": fit_another(
        f"{EACH}, save_all=True",
        "class Listed(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.layers = nn.ModuleList([nn.Linear(4, 4), nn.Linear(4, 2)])\n"
        "    def forward(self, x):\n        for layer in self.layers:\n            x = layer(x)\n        return x\n"
        "net = Listed()",
    ),
    "convolution": fit_another(
        f"{EACH}, save_all=True",
        "net = nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), "
        "nn.Linear(18, 2))",
        "torch.randn(2, 1, 8, 8)",
    ),
    "recurrent": fit_another(f"{EACH}, save_all=True", "net = nn.LSTM(4, 3)", "torch.randn(2, 5, 4)"),
    "embedding": fit_another(
        f"{EACH}, save_all=True",
        "net = nn.Sequential(nn.Embedding(7, 4), nn.Linear(4, 2))",
        "torch.arange(5)",
    ),
    "attention": fit_another(
        f"{EACH}, {WITH_GRADIENTS}",
        "net = nn.TransformerEncoderLayer(4, 2, 8, dropout=0.0)",
        "torch.randn(3, 2, 4)",
    ),
    "dropout": fit_another(
        f"{EACH}, save_all=True", "net = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5), nn.Linear(4, 1))"
    ),
    "own_parameter": fit_another(
        f"{EACH}, save_all=True",
        "class Scale(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.scale = nn.Parameter(torch.ones(4))\n        self.register_buffer('seen', torch.zeros(1))\n"
        "    def forward(self, x):\n        return x * self.scale\nnet = Scale()",
    ),
    "frozen": with_hook(
        f"{EACH}, {WITH_GRADIENTS}",
        "net, criterion = Net(), nn.CrossEntropyLoss()\nfor parameter in net.fc1.parameters():\n"
        "    parameter.requires_grad = False",
        "hook.register_module(net)\nhook.register_loss(criterion)",
        "fit(hook, net, criterion, optimizer=torch.optim.SGD(net.fc2.parameters(), lr=0.1))",
    ),
    "tuple_output": fit_another(
        f"{EACH}, save_all=True",
        "class Pair(Net):\n    def forward(self, x):\n        return super().forward(x), x\nnet = Pair()",
    ),
    "dictionary_output": with_hook(
        f"{EACH}, save_all=True",
        "class Named(Net):\n    def forward(self, x):\n        return {'found': super().forward(x)}",
        "net, criterion = Named(), nn.CrossEntropyLoss()\nhook.register_module(net)\nhook.register_loss(criterion)",
        "fit(hook, net, lambda found, y: criterion(found['found'], y))",
    ),
    "double": with_hook(
        f"{EACH}, save_all=True",
        "net, criterion = Net().double(), nn.CrossEntropyLoss()",
        "hook.register_module(net)\nhook.register_loss(criterion)",
        "optimizer = torch.optim.SGD(net.parameters(), lr=0.1)",
        "for x, y in batches(3):\n    optimizer.zero_grad()\n    criterion(net(x.double()), y).backward()\n"
        "    optimizer.step()",
    ),
    "accumulated": trained(
        f"{EACH}, {WITH_GRADIENTS}",
        fit="optimizer = torch.optim.SGD(net.parameters(), lr=0.1)\n"
        "for number, (x, y) in enumerate(batches(6)):\n    (criterion(net(x), y) / 2).backward()\n"
        "    if number % 2:\n        optimizer.step()\n        optimizer.zero_grad()",
    ),
    "backward_twice": trained(
        f"{EACH}, {WITH_GRADIENTS}",
        fit="for x, y in batches(2):\n    loss = criterion(net(x), y)\n    loss.backward(retain_graph=True)\n"
        "    loss.backward()",
    ),
    "without_optimizer": trained(
        f"{EACH}, {WITH_GRADIENTS}",
        fit="for x, y in batches(3):\n    criterion(net(x), y).backward()\n    with torch.no_grad():\n"
        "        for parameter in net.parameters():\n            parameter -= 0.1 * parameter.grad\n"
        "            parameter.grad = None",
    ),
    "clipped": trained(
        f"{EACH}, {WITH_GRADIENTS}",
        fit="optimizer = torch.optim.SGD(net.parameters(), lr=0.1)\nfor x, y in batches(3):\n"
        "    optimizer.zero_grad()\n    criterion(net(x), y).backward()\n"
        "    nn.utils.clip_grad_norm_(net.parameters(), 0.01)\n    optimizer.step()",
    ),
    "scheduler": trained(
        f"{EACH}, {WITH_GRADIENTS}",
        fit="optimizer = torch.optim.Adam(net.parameters())\n"
        "scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1)\n"
        "for epoch in range(2):\n    fit(hook, net, criterion, 3, optimizer)\n    scheduler.step()",
    ),
    "data_loader": trained(
        f"{EACH}, save_all=True",
        fit="data = torch.utils.data.TensorDataset(torch.arange(40.0).reshape(10, 4), torch.arange(10) % 2)\n"
        "optimizer = torch.optim.SGD(net.parameters(), lr=0.1)\n"
        "for epoch in range(2):\n    for x, y in torch.utils.data.DataLoader(data, batch_size=4):\n"
        "        optimizer.zero_grad()\n        criterion(net(x), y).backward()\n        optimizer.step()",
    ),
    "inference_alone": trained(f"{EACH}, save_all=True", fit="evaluate(net, criterion)"),
    "data_parallel": with_hook(
        f"{EACH}, {WITH_GRADIENTS}",
        "net, criterion = nn.DataParallel(Net()), nn.CrossEntropyLoss()",
        "hook.register_module(net)\nhook.register_loss(criterion)",
        FIT,
    ),
    "registered_twice": trained(EACH, fit='seen["again"] = attempt(hook.register_module, net)\n' + FIT),
    "model_of_wrong_type": trained(EACH, fit='seen["wrong"] = attempt(hook.register_module, 3)\n' + FIT),
    "registered_late": with_hook(
        f"{EACH}, {WITH_GRADIENTS}",
        "net, criterion = Net(), nn.CrossEntropyLoss()",
        "fit(hook, net, criterion, 2)\nhook.register_module(net)\nhook.register_loss(criterion)",
        FIT,
    ),
    "layer_replaced": trained(
        f"{EACH}, {WITH_GRADIENTS}", fit=f"{FIT}\nnet.fc2 = nn.Linear(3, 2)\nfit(hook, net, criterion, 2)"
    ),
    "hook_of_the_script": trained(
        f"{EACH}, save_all=True", fit=f"net.relu.register_forward_hook(lambda module, x, y: y * 2)\n{FIT}"
    ),
    "gradient_hook_of_the_script": trained(
        f"{EACH}, {WITH_GRADIENTS}", fit=f"net.fc1.weight.register_hook(lambda gradient: gradient * 2)\n{FIT}"
    ),
    "earlier_hook_of_the_script": with_hook(
        f"{EACH}, save_all=True",
        "net, criterion = Net(), nn.CrossEntropyLoss()",
        "net.relu.register_forward_hook(lambda module, x, y: y * 2)",
        "net.fc1.weight.register_hook(lambda gradient: gradient * 2)",
        "hook.register_module(net)\nhook.register_loss(criterion)",
        FIT,
    ),
    "part_called_before_the_model": trained(f"{EACH}, save_all=True", fit=f"net.fc1(batches(1)[0][0])\n{FIT}"),
    "scripted": with_hook(
        f"{EACH}, {WITH_GRADIENTS}",
        "net, criterion = torch.jit.script(nn.Sequential(nn.Linear(4, 2))), nn.CrossEntropyLoss()",
        "hook.register_module(net)\nhook.register_loss(criterion)",
        FIT,
    ),
}
