# SPDX-License-Identifier: MIT
"""ModelMonitor: latency, memory and the GPU of a model while it answers."""

from tare import ModelMonitor

monitor = ModelMonitor("retriever", slower_than=0.5)


@monitor
def embed_query(query):
    return [sum(ord(letter) * k for letter in query) % 97 for k in range(384)]


if __name__ == "__main__":
    for number in range(300):
        embed_query(f"question {number}")
    with monitor.inference(units=32):  # a batch counts as many
        for number in range(32):
            sum(range(1000))
    print(monitor)
    print(monitor.save())
