# SPDX-License-Identifier: MIT
"""Memory of the embedding service over iterations, with a test for leaks."""

import pathlib
import sys

from tare.__main__ import main

if __name__ == "__main__":
    sys.exit(main(["embedding", "memory", "--output-dir", str(pathlib.Path(__file__).parent / "results"), *sys.argv[1:]]))
