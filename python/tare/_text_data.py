# SPDX-License-Identifier: MIT
"""Texts and pairs of texts to profile with when none are given: made from a few word lists, the same on every machine, with labels that
are right by construction. They stand for length and variety, not for anybody's data."""

from __future__ import annotations

import random
from typing import Any

_TOPICS = {
    "sport": (
        ("the striker", "our goalkeeper", "the home team", "a young runner", "the coach", "the referee"),
        ("scored twice in the second half", "trained hard before the final match", "won the race by a hair",
         "lost the cup on penalties", "celebrated with the fans in the stadium", "was injured early in the season"),
    ),
    "cooking": (
        ("the chef", "my grandmother", "a good baker", "the recipe", "this kitchen", "the soup"),
        ("needs fresh basil and ripe tomatoes", "calls for a pinch of salt and a lot of patience",
         "simmers slowly until the onions are sweet", "fills the house with the smell of bread",
         "tastes better with butter and garlic", "rests in the oven for an hour"),
    ),
    "astronomy": (
        ("the telescope", "a distant galaxy", "the space probe", "the comet", "an amateur astronomer", "the moon of that planet"),
        ("was photographed above the southern sky", "crossed the orbit of the outer planets",
         "revealed a faint ring of dust around the star", "sent its last signal from deep space",
         "is brighter than the models of the universe predict", "follows an ellipse around the sun"),
    ),
    "finance": (
        ("the central bank", "the quarterly report", "an investor", "the stock market", "the insurance company", "our accountant"),
        ("raised the interest rate by a quarter of a percent", "warned of losses in foreign currencies",
         "moved the savings into government bonds", "paid a dividend to the shareholders",
         "expects prices to fall next year", "closed the books with a small profit"),
    ),
    "medicine": (
        ("the surgeon", "a new vaccine", "the patient", "the clinic", "the night nurse", "the blood test"),
        ("showed no side effects in the trial", "recovered quickly after the operation",
         "treats infections of the lung", "measured a lower heart rate than the day before",
         "was sent to hospital with a high fever", "prevents the disease in most children"),
    ),
    "travel": (
        ("the night train", "our guide", "the old harbour", "a ferry", "the mountain hotel", "the tourist office"),
        ("leaves for the islands every morning", "offers rooms with a view of the valley",
         "was crowded with visitors in summer", "led us through narrow streets to the castle",
         "sells tickets for the museum and the bus", "arrived two hours late because of snow"),
    ),
}  # fmt: skip
_LINKS = ("and", "while", "although", "because", "so")

_WHO = (
    ("A man", "A person"), ("A woman", "A person"), ("A dog", "An animal"), ("A cat", "An animal"), ("Two children", "Some people"),
    ("A nurse", "A person"), ("A horse", "An animal"), ("The musicians", "Some people"),
)  # fmt: skip
_DOES = (
    ("sleeping on a bench", "running up a hill"), ("standing in the rain", "sitting indoors by a fire"),
    ("eating breakfast at a table", "swimming in the sea"), ("waiting quietly at the station", "dancing on a stage"),
    ("looking out of the window", "resting with closed eyes"), ("walking through the snow", "lying on a warm beach"),
)  # fmt: skip
_MORE = (
    "", " near the old town hall", " early in the morning, before the shops open", " in front of a crowd of tourists with cameras",
    " next to a red car whose engine is still running after the long drive from the coast",
)  # fmt: skip
_REASONS = ("is late for an appointment", "has won a prize", "is thinking of a friend", "was there yesterday as well")


def sample_texts(count: int, seed: int = 0) -> tuple[list[str], list[str]]:
    """(texts, topic of each): sentences of some 6 to 60 words."""
    chance = random.Random(seed)
    topics = list(_TOPICS)
    labels = [topics[number % len(topics)] for number in range(count)]
    return [_sentence(chance, *_TOPICS[topic]) for topic in labels], labels


def _sentence(chance: random.Random, subjects: Any, predicates: Any) -> str:
    clauses = [f"{chance.choice(subjects)} {chance.choice(predicates)}" for _ in range(chance.choice((1, 1, 2, 2, 3, 6)))]
    text = clauses[0]
    for clause in clauses[1:]:
        text += f", {chance.choice(_LINKS)} {clause}"
    return text[0].upper() + text[1:] + "."


def sample_pairs(count: int, seed: int = 0) -> tuple[list[tuple[str, str]], list[str]]:
    """(pairs of premise and hypothesis, label of each): entailment, neutral and contradiction in turn."""
    chance = random.Random(seed)
    made = [_pair(chance, number % 3) for number in range(count)]
    return [pair for pair, _ in made], [label for _, label in made]


def _pair(chance: random.Random, kind: int) -> tuple[tuple[str, str], str]:
    (who, wider), (does, other), more = chance.choice(_WHO), chance.choice(_DOES), chance.choice(_MORE)
    verb = "are" if who.endswith("s") or who.startswith("Two") else "is"
    premise = f"{who} {verb} {does}{more}."
    reason = chance.choice(_REASONS)
    hypotheses = (
        (f"{wider} {verb} {does}.", "entailment"),
        (f"{who} {verb} {does} and {reason if verb == 'is' else 'know each other well'}.", "neutral"),
        (f"{who} {verb} {other}.", "contradiction"),
    )
    hypothesis, label = hypotheses[kind]
    return (premise, hypothesis), label


def cycled(items: list[Any], count: int) -> list[Any]:
    """The first `count` items, from the start again when there are fewer."""
    if not items:
        raise ValueError("there is nothing to profile with: the list of items is empty")
    return [items[number % len(items)] for number in range(count)]
