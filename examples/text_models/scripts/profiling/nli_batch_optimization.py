# SPDX-License-Identifier: MIT
"""Find the batch size of the NLI service, with the answers validated."""

import pathlib
import sys

from tare.__main__ import main

if __name__ == "__main__":
    sys.exit(main(["nli-batch", "--output-dir", str(pathlib.Path(__file__).parent / "results"), *sys.argv[1:]]))
