# SPDX-License-Identifier: MIT
"""What the examples share: a data set, some data, a model. Small, so that each example takes seconds."""

import atexit
import os
import shutil
import tempfile

import torch
from torch.utils.data import DataLoader, Dataset

import tare

torch.set_num_threads(1)
os.chdir(tempfile.mkdtemp(prefix="tuning-"))  # profiles and caches of the examples
atexit.register(shutil.rmtree, os.getcwd(), True)


class YourDataset(Dataset):
    """Sentences as numbers, in memory."""

    def __init__(self, size=512):
        self.rows = torch.randint(0, 1000, (size, 32), generator=torch.Generator().manual_seed(1))

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        return self.rows[i]


def make_step(training_config):
    """One training step of a small language model, by the name of gpt2."""
    model = torch.nn.Sequential(torch.nn.Embedding(1000, 32), torch.nn.Linear(32, 1000))
    optimizer = torch.optim.AdamW(model.parameters(), training_config.get("learning_rate", 1e-3))

    def step(batch):
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(batch[:, :-1]).flatten(0, 1), batch[:, 1:].flatten())
        loss.backward()
        optimizer.step()
        return loss

    step.model, step.optimizer = model, optimizer
    return step


tare.OptimizedFineTuningService.register("gpt2", make_step)

sample_data = [f"  Sample TEXT number {i}  " for i in range(64)]
data = [f"  A text, number {i}, to be prepared  " for i in range(2000)]
dataset = YourDataset()
dataset_size = len(dataset)
data_chunks = [data[i : i + 500] for i in range(0, len(data), 500)]

with open("large_file.txt", "w") as file:
    file.write("one line of many\n" * 50_000)


def load_large_dataset():
    return [float(i) for i in range(300_000)]


def process_data(items):
    return [str(item).strip() for item in items]


def process_batch(batch):
    return batch.float().mean()


def complex_processing(text):
    return sorted(text.lower().split())


def specific_function():
    return sum(i * i for i in range(200_000))
