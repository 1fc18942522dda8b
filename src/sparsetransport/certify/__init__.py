"""Proofs of quality: lower bounds that hold for every plan within a budget."""
