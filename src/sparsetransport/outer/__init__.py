"""The choice of the support: one loop, one file a rule, and the common case compiled."""
