"""Training on sentences of about ten words, padded to sixty-four.

Most of the computation is spent on padding.
"""

import torch
from digits import is_cured
from torch import nn

WORDS, LONGEST = 500, 64


class Network(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding0 = nn.Embedding(WORDS, 16, padding_idx=0)
        self.output = nn.Linear(16, 2)

    def forward(self, sentences: torch.Tensor) -> torch.Tensor:
        scores: torch.Tensor = self.output(self.embedding0(sentences).mean(dim=1))
        return scores


cured = is_cured()
torch.manual_seed(0)
network, loss_function = Network(), nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(network.parameters(), lr=0.01)
for _ in range(40):
    lengths = torch.randint(8, 13, (32,))
    # The cure is to fill up to the longest sentence of the batch only.
    width = int(lengths.max()) if cured else LONGEST
    sentences = torch.randint(1, WORDS, (32, width))
    sentences[torch.arange(width) >= lengths[:, None]] = 0
    labels = (sentences == 7).any(dim=1).long()
    optimizer.zero_grad()
    loss_function(network(sentences), labels).backward()
    optimizer.step()
