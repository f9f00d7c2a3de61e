# SPDX-License-Identifier: MIT
"""Profile the embedding service by batch size."""

import pathlib
import sys

from tare.__main__ import main

if __name__ == "__main__":
    sys.exit(main(["embedding", "batch-sizes", "--output-dir", str(pathlib.Path(__file__).parent / "results"), *sys.argv[1:]]))
