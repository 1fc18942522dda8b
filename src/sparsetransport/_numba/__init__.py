"""All that touches Numba: how functions are compiled and kept, named tuples by address, what functions answer."""
