"""Training of a digit classifier with DistributedDataParallel on several hosts.

The hosts communicate over gloo.

An ordinary PyTorch script: it knows nothing of SageMaker Debugger. Who it is and who the others are it reads from what
SageMaker tells every script: SM_HOSTS and SM_CURRENT_HOST.
"""

import argparse
import json
import os
from pathlib import Path

import numpy as np
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def join_the_others() -> None:
    """Meet the processes of the other hosts at the first host."""
    hosts = json.loads(os.environ["SM_HOSTS"])
    os.environ.setdefault("MASTER_ADDR", hosts[0])
    os.environ.setdefault("MASTER_PORT", "7777")
    dist.init_process_group("gloo", rank=hosts.index(os.environ["SM_CURRENT_HOST"]), world_size=len(hosts))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--learning-rate", type=float, default=0.01)
    args = parser.parse_args()

    torch.manual_seed(0)
    torch.set_num_threads(1)
    join_the_others()
    rank = dist.get_rank()
    print(f"rank {rank} of {dist.get_world_size()}", flush=True)

    digits = np.load(Path(os.environ["SM_CHANNEL_TRAINING"]) / "digits.npz")
    images, labels = torch.from_numpy(digits["images"]), torch.from_numpy(digits["labels"])
    held_out = len(images) // 5
    training = TensorDataset(images[held_out:], labels[held_out:])
    sampler: DistributedSampler[tuple[torch.Tensor, ...]] = DistributedSampler(training, seed=0, drop_last=True)
    loader = DataLoader(training, batch_size=args.batch_size, sampler=sampler, drop_last=True)

    network = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))
    parallel = DistributedDataParallel(network)
    loss_function = nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(parallel.parameters(), lr=args.learning_rate)
    for epoch in range(args.epochs):
        sampler.set_epoch(epoch)
        parallel.train()
        for batch, target in loader:
            optimizer.zero_grad()
            loss = loss_function(parallel(batch), target)
            loss.backward()
            optimizer.step()
        print(f"epoch={epoch} rank={rank} train_loss={loss.item():.4f};", flush=True)

    network.eval()
    with torch.no_grad():
        accuracy = (network(images[:held_out]).argmax(dim=1) == labels[:held_out]).float().mean().item()
    print(f"test_accuracy={accuracy:.4f};", flush=True)

    # Every host has trained the same weights, so one of them is enough; each says for itself how it went.
    model_dir = Path(os.environ["SM_MODEL_DIR"])
    if rank == 0:
        torch.save(network.state_dict(), model_dir / "model.pt")
    (model_dir / f"metrics-{rank}.json").write_text(json.dumps({"test_accuracy": accuracy}))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
