# SPDX-License-Identifier: MIT
"""What longer texts cost the embedding service."""

import pathlib
import sys

from tare.__main__ import main

if __name__ == "__main__":
    sys.exit(main(["embedding", "text-lengths", "--output-dir", str(pathlib.Path(__file__).parent / "results"), *sys.argv[1:]]))
