# SPDX-License-Identifier: MIT
"""Layers computed again in the backward pass: what that saves and costs, and where it is refused. Memory does not depend on the machine's speed."""

import importlib.util

import numpy
import pytest

if importlib.util.find_spec("torch") is None:
    pytest.skip("no torch (make deps)", allow_module_level=True)
import torch

import tare

torch.set_num_threads(1)


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = torch.nn.Linear(64, 600), torch.nn.Linear(600, 64)

    def forward(self, x):
        return x + self.down(torch.nn.functional.gelu(self.up(x)))


def trained(model):
    optimizer = torch.optim.SGD(model.parameters(), 1e-3)

    def step(batch):
        optimizer.zero_grad()
        loss = model(batch).square().mean()
        loss.backward()
        optimizer.step()
        return loss

    step.model, step.optimizer = model, optimizer
    return step


def test_checkpointing_states_what_it_saves_and_what_it_costs(python, root):
    """In a process of its own: free memory that others left in the heap would be used again, and hide what is saved."""
    done = python(
        f"""
        import sys
        sys.path.insert(0, {str(root / "tests" / "python")!r})
        import tare
        import torch
        from test_py_tune_checkpoint import Block, trained

        service = tare.OptimizedFineTuningService(tare.DataOptimizationConfig(budget_s=90, timeout_s=300))
        model = torch.nn.Sequential(*(Block() for _ in range(6)))
        before = {{name: value.clone() for name, value in model.state_dict().items()}}
        tuned = service.checkpointing(trained(model), torch.randn(512, 64))
        assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items()) and "forward" not in vars(model[0])
        assert tuned.verdict == "confirmed" and tuned.plan["checkpointing"] == [str(i) for i in range(6)], str(tuned)
        assert 1.2 < tuned.ci[0] <= tuned.ci[1] <= tuned.bound * 1.05, str(tuned)
        assert "the time" in tuned.reasons[0] and "memory is the limit" in tuned.reasons[-1]
        assert not service._to_use("checkpointing", tuned)
        service.config.memory_limit = "1GiB"
        assert service._to_use("checkpointing", tuned)
        print("good")
        """
    )
    assert done.stdout == "good\n"


def test_checkpointing_is_refused_with_its_reason():
    service = tare.OptimizedFineTuningService(tare.DataOptimizationConfig(budget_s=5, timeout_s=60))
    batch = torch.randn(8, 64)
    normed = torch.nn.Sequential(*(torch.nn.Sequential(Block(), torch.nn.BatchNorm1d(64)) for _ in range(2)))
    for step, why in ((lambda b: b.sum(), "no .model"), (trained(torch.nn.Linear(64, 64)), "no repeated blocks"), (trained(normed), "BatchNorm")):
        tuned = service.checkpointing(step, batch)
        assert tuned.verdict == "refused" and why in tuned.reasons[0], tuned.reasons

    class Draws(Block):
        def forward(self, x):
            return super().forward(x) * float(numpy.random.default_rng().random())

    tuned = service.checkpointing(trained(torch.nn.Sequential(Draws(), Draws())), batch)
    assert tuned.verdict == "different_data" and "losses differ" in tuned.reasons[0], str(tuned)


def test_what_can_be_computed_again():
    from tare._tune_service import recomputable, recomputing

    class Deep(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = torch.nn.ModuleList(torch.nn.Sequential(Block(), Block()) for _ in range(3))
            self.head = torch.nn.Sequential(torch.nn.Linear(64, 8), torch.nn.ReLU())

    assert list(recomputable(Deep())) == ["layers.0", "layers.1", "layers.2"]
    plain = torch.nn.Sequential(*(torch.nn.Linear(8, 8) for _ in range(5)))
    blocks = recomputable(plain)
    assert list(blocks) == [""] and recomputable(torch.nn.Sequential(torch.nn.Linear(8, 8))) == {}
    x = torch.randn(3, 8, requires_grad=True)
    whole = torch.autograd.grad(plain(x).sum(), x)[0]
    with recomputing(blocks):
        assert torch.equal(torch.autograd.grad(plain(x).sum(), x)[0], whole)
    assert "forward" not in vars(plain)
