"""Costs and kernels: what moving mass costs, and what missing the marginals costs."""
