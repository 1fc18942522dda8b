"""All use of Numba: how functions are compiled and kept on disk, named tuples by address, what functions return."""
