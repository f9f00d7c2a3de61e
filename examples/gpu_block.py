"""What a GPU does in some training steps of a small network, by module: with tare.gpu(), in the running program.

    python gpu_block.py        # needs torch; without a GPU it says why there is nothing, and trains on the processor
"""

import torch

import tare

device = "cuda" if torch.cuda.is_available() else "cpu"
net = torch.nn.Sequential(torch.nn.Linear(512, 2048), torch.nn.GELU(), torch.nn.LayerNorm(2048), torch.nn.Linear(2048, 10)).to(device)
optimizer = torch.optim.AdamW(net.parameters())
x, wanted = torch.randn(256, 512, device=device), torch.randint(0, 10, (256,), device=device)


def step():
    optimizer.zero_grad()
    torch.nn.functional.cross_entropy(net(x), wanted).backward()
    optimizer.step()


step()  # what happens once is not in the block
with tare.gpu(modules={"net": net}, ops=True) as g:
    for _ in range(20):
        step()

if g.unknown.get("gpu"):
    print(f"nothing of a GPU: {g.unknown['gpu']}")
else:
    print(f"busy {g.busy:.0%}; kernels by module:")
    for row in g.modules[:8]:
        print(f"{row['total_ns'] / 1e6:8.2f} ms  {row['count']:5} runs  {row['module'] or '-':8} {row['phase'] or ''}")
    g.print()
