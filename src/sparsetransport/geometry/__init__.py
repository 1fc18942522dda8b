"""Costs of moving mass, and kernels that measure marginal errors."""
