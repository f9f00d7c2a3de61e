# SPDX-License-Identifier: MIT
"""What a server may profile and tune: the operator's module of docs/operations.example.json. Replace each function by your own."""

import re
import unicodedata

VOCABULARY = 50257


def make_dataset(config):
    """Token ids of the texts, as a data set: byte by byte here, by your tokenizer in earnest."""
    import torch

    length = config.get("max_length", 512)
    return [torch.tensor(list(text.encode()[:length].ljust(length, b"\0"))) for text in config["texts"]]


def make_step(config):
    """One training step of a small language model; the real one is made from the model's files."""
    import torch

    torch.set_num_threads(1)  # steps are tried in forked children, where a pool of threads would be missing

    model = torch.nn.Sequential(torch.nn.Embedding(VOCABULARY, 16), torch.nn.Linear(16, 64))
    optimizer = torch.optim.AdamW(model.parameters(), lr=config.get("learning_rate", 5e-5))

    def step(batch):
        loss = model(batch).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    step.model, step.optimizer = model, optimizer
    return step


models = {"gpt2": make_step}


def normalize_text(text):
    return unicodedata.normalize("NFC", text).strip().lower()


def tokenize_text(text):
    return re.findall(r"\w+|\S", text)


def augment_text(tokens):
    return [*tokens, *reversed(tokens)]


def data_loading():
    """The operation that profile-operation knows by this name."""
    return [augment_text(tokenize_text(normalize_text("sample text %d" % i))) for i in range(2000)]
