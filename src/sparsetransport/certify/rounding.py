"""Rounding margins: what is subtracted from a computed bound, so that it is never above an optimum by rounding."""

UNIT = 2.0**-52  # of a floating-point number: twice what one operation may be off by


def below(value: float, size: float, terms: int) -> float:
    """A number below a sum that was computed as ``value``, of so many terms whose absolute values add up to ``size``.

    Each term is off by a few units, and adding it up by no more than a unit of the sum for every term.
    """
    return value - UNIT * (terms + 8) * size
