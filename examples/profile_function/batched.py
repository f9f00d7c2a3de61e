# SPDX-License-Identifier: MIT
"""profile_function: which calls leave files, chosen by four conditions."""

import time

from tare import profile_function


@profile_function(name="embed_query", every=100, interval=0)  # each hundredth call
def embed_query(query):
    return [ord(letter) for letter in query]


@profile_function(name="generate", slower_than=0.05, sure=True, interval=0)  # only calls that took longer than 50 ms
def generate(prompt):
    time.sleep(0.06 if "long" in prompt else 0)
    return prompt.upper()


@profile_function(name="rank", at_exit=True)  # all calls in one pair, when the program ends
def rank(scores):
    return sorted(scores, reverse=True)


if __name__ == "__main__":
    for number in range(250):
        embed_query(f"question {number}")
        rank([number, 1, 2])
    for prompt in ("short", "a long one", "short"):
        generate(prompt)
    print(embed_query.profile)
    print(generate.profile)
    print(rank.profile)
