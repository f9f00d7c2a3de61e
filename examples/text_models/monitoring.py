# SPDX-License-Identifier: MIT
"""Monitoring: one quick check of the service, logged."""

import logging

from tare import NLIProfiler


class StructuredLogger:
    """The event and its values on one line, as the services' logger writes them."""

    def info(self, event, **values):
        logging.info("%s %s", event, " ".join(f"{name}={value:.2f}" for name, value in values.items()))


def main(model=None):
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    logger = StructuredLogger()

    profiler = NLIProfiler(model, budget="1s")
    metrics = profiler.profile_batch_size(batch_size=16, num_pairs=10)

    # Log to monitoring system
    logger.info(
        "nli_performance_check",
        throughput=metrics["throughput_pairs_per_sec"],
        latency=metrics["latency_ms_per_pair"],
        memory=metrics["memory_delta_mb"]
    )


if __name__ == "__main__":
    import sys

    main(*sys.argv[1:])
