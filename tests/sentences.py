"""Ten sentence pairs written for the tests, with their links, and an encoder that needs no model."""

import zlib

import numpy as np

PAIRS = [
    ("a gardener waters the roses", "the roses are watered by a gardener", "0-5 1-6 2-3 3-0 4-1"),
    ("old bridges need repair", "repair is needed for old bridges", "0-4 1-5 2-2 3-0"),
    ("she painted a wooden fence", "she paints wooden fences", "0-0 1-1 3-2 4-3"),
    ("trains stop here every hour", "every hour a train stops here", "0-3 1-4 2-5 3-0 4-1"),
    ("nobody answered the telephone", "the telephone was not answered", "1-4 2-0 3-1"),
    ("cheese is made from milk", "from milk cheese is made", "0-2 1-3 2-4 3-0 4-1"),
    ("the lake froze in december", "in december the lake was frozen", "0-2 1-3 2-5 3-0 4-1"),
    ("two brothers founded this bakery", "this bakery was founded by two brothers", "0-5 1-6 2-3 3-0 4-1"),
    ("birds sing before sunrise", "before sunrise birds are singing", "0-2 1-4 2-0 3-1"),
    ("we lost our luggage yesterday", "yesterday our luggage got lost", "1-4 2-1 3-2 4-0"),
]


def gold(text):
    """Links from their text."""
    return frozenset((int(i), int(j)) for i, j in (link.split("-") for link in text.split()))


def letters(words):
    """One vector a word, from its beginnings and letter pairs: words with the same stem are alike."""
    vectors = np.zeros((len(words), 256))
    for row, word in enumerate(words):
        marked = f"<{word}>"
        parts = [marked[:k] for k in (3, 4, 5)] + [marked[k : k + 2] for k in range(len(marked) - 1)]
        for part in parts:
            vectors[row, zlib.crc32(part.encode()) % 256] += 1.0
    return vectors


letters.name = "letters"
