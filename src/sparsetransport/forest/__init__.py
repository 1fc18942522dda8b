"""Delta kernels without a quadratic term: links without a cycle, the network simplex, local search on trees."""
