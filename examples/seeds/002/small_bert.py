# SPDX-License-Identifier: MIT
"""A BERT-shaped encoder of one layer with random weights, saved as models/bert-base-uncased: what seed 002's examples load.

The text takes the model for granted. It is built from PyTorch's own modules, so that the saved file needs nothing of this one."""

import os
import sys

import torch
from torch import nn


def build(vocabulary=1000, width=32, layers=1):
    encoder = nn.TransformerEncoderLayer(width, 4, 4 * width, batch_first=True, activation="gelu")
    return nn.Sequential(nn.Embedding(vocabulary, width), nn.TransformerEncoder(encoder, layers), nn.Linear(width, 2))


def save(folder):
    torch.manual_seed(0)
    os.makedirs(folder, exist_ok=True)
    torch.save(build().eval(), os.path.join(folder, "model.pt"))


if __name__ == "__main__":
    for folder in sys.argv[1:] or ["models/bert-base-uncased", "models/latest"]:
        save(folder)
