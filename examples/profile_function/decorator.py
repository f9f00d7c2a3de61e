# SPDX-License-Identifier: MIT
"""profile_function: the decorator, its files, and the table in them.

Left out by the text and added here: what the two functions do, and the retriever's vectors."""

import glob
import pstats

from tare import profile_function

VECTORS = {word: [float(len(word) * k % 7) for k in range(64)] for word in "iron vitamin protein sugar salt water".split()}


def _encode(word):
    return VECTORS.get(word, VECTORS["water"])


@profile_function(name="embed_query")
def embed_query(query):
    rows = [_encode(word) for word in query.split()]
    return [sum(column) / len(rows) for column in zip(*rows)]


@profile_function(name="get_response")
async def get_response(query):
    close = max(VECTORS, key=lambda word: sum(a * b for a, b in zip(VECTORS[word], embed_query(query))))
    return f"It is about {close}."


if __name__ == "__main__":
    import asyncio

    embed_query("how much iron and vitamin is in spinach")
    print(asyncio.run(get_response("how much sugar is in an apple")))
    for path in sorted(glob.glob("profiling_results/*")):
        print(path)
    print(open(glob.glob("profiling_results/embed_query_*.txt")[0]).read())
    pstats.Stats(glob.glob("profiling_results/embed_query_*.prof")[0]).sort_stats("cumulative").print_stats(3)
