"""A module of its own, since the workers of a cluster must be able to import it."""

import os
import signal


class DiesOnce:
    """A budget that, asked for the plan of one shape, takes its process along; but only the first time."""

    def __init__(self, shape, marker):
        self.shape, self.marker = shape, marker

    def __call__(self, m, n):
        if (m, n) == self.shape and not self.marker.exists():
            self.marker.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return min(m, n)
