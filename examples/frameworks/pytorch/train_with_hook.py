"""The training of `train.py` with a hook that the script configures."""

import os
from pathlib import Path

import torch
from torch import nn
from train import build_network, load_data, parse_arguments

import smdebug.pytorch as smd


def main() -> None:
    args = parse_arguments()
    images, labels = load_data()
    order = torch.randperm(len(images))
    test, training = order[:360], order[360:]
    network = build_network()
    loss_function = nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(network.parameters(), lr=args.learning_rate)
    # The job's configuration, which the DebugHookConfig of its request became.
    hook = smd.Hook.create_from_json_file()
    hook.register_module(network)
    hook.register_loss(loss_function)
    step = 0
    for _ in range(args.epochs):
        network.train()
        hook.set_mode(smd.modes.TRAIN)
        for batch in training[torch.randperm(len(training))].split(args.batch_size):
            optimizer.zero_grad()
            loss = loss_function(network(images[batch]), labels[batch])
            loss.backward()
            optimizer.step()
            if step % 10 == 0:
                print(f"step={step} train_loss={loss.item()!r};", flush=True)
            step += 1
        network.eval()
        hook.set_mode(smd.modes.EVAL)
        with torch.no_grad():
            output = network(images[test])
            accuracy = (output.argmax(dim=1) == labels[test]).float().mean().item()
            hook.save_scalar("accuracy", accuracy, sm_metric=True)
            print(f"test_loss={loss_function(output, labels[test]).item()!r} test_accuracy={accuracy:.4f};", flush=True)

    torch.save(network.state_dict(), Path(os.environ["SM_MODEL_DIR"]) / "model.pt")


if __name__ == "__main__":
    main()
