"""Choosing a support by a rule, for any quadratic and any matroid: it knows nothing of transport."""
