# SPDX-License-Identifier: MIT
"""A BERT-shaped encoder of one layer with random weights, saved as models/bert-base-uncased: what the other examples here load.

The text takes the model for granted. It is built from PyTorch's own modules, so that the saved file needs nothing of this one."""

import os
import sys
from collections import OrderedDict

import torch
from torch import nn


def build(vocabulary=1000, width=16):
    return nn.Sequential(
        OrderedDict(
            embedding=nn.Embedding(vocabulary, width),
            attention=nn.TransformerEncoderLayer(width, 1, width, batch_first=True),
            mlp=nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)),
            head=nn.Linear(width, 2),
        )
    )


def save(folder):
    torch.manual_seed(0)
    os.makedirs(folder, exist_ok=True)
    torch.save(build().eval(), os.path.join(folder, "model.pt"))


if __name__ == "__main__":
    for folder in sys.argv[1:] or ["models/bert-base-uncased", "models/latest"]:
        save(folder)
