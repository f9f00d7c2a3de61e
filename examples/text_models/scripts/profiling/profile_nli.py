# SPDX-License-Identifier: MIT
"""Profile the NLI service: throughput, latency and memory by batch size. --model names the service; --help says how."""

import pathlib
import sys

from tare import NLIProfiler  # noqa: F401 - so that `from scripts.profiling.profile_nli import NLIProfiler` works, too
from tare.__main__ import main

if __name__ == "__main__":
    sys.exit(main(["nli", "--output-dir", str(pathlib.Path(__file__).parent / "results"), *sys.argv[1:]]))
