"""What compiled functions return: a number has one meaning, whichever function it comes from.

Those for why a loop ended are named as the members of `Status` that users see.
"""

# of the masses on a support
SOLVED = 0  # they are optimal
UNBOUNDED = 1  # the objective falls without bound
DEPENDS = 2  # a new entry depends on the others, and nothing was changed
UNSETTLED = 3  # a new entry is in the factor without mass

# of a loop: why it ended,
BUDGET_USED = 4
LOCAL = 5  # no pair that is free helps
OPTIMAL = 6  # no pair helps, free or not

# or why it came back before its end
PAUSED = 7  # steps or effort are spent
NEEDS_ROOM = 8  # for entries, steps, or columns of lazy Gram matrices
NEEDS_LINKS = 9  # room for links that scenarios share, or for columns
UNFINISHED = 10  # a problem of a batch is left to be solved alone

# of an exchange that was tried
BETTER = 11
WORSE = 12
