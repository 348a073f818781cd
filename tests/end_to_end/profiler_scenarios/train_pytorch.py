"""Training of several epochs, with or without loading processes."""

import torch
from faults import EPOCHS, STEPS_PER_EPOCH, Faults
from torch import nn
from torch.utils.data import DataLoader, Dataset

FAULTS = Faults()


class Rows(Dataset[torch.Tensor]):
    """Rows of noise, each of which is a batch."""

    def __len__(self) -> int:
        return STEPS_PER_EPOCH

    def __getitem__(self, at: int) -> torch.Tensor:
        FAULTS.load()
        return torch.full((8,), at / STEPS_PER_EPOCH)


def main() -> None:
    torch.set_num_threads(1)
    model = nn.Linear(8, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    loss_of = nn.MSELoss()
    FAULTS.begin()
    for epoch in range(EPOCHS):
        FAULTS.begin_epoch(epoch)
        for rows in DataLoader(Rows(), batch_size=1, num_workers=FAULTS.workers):
            optimizer.zero_grad()
            loss = loss_of(model(rows), torch.ones(1, 1))
            loss.backward()
            FAULTS.compute()
            optimizer.step()


if __name__ == "__main__":
    main()
