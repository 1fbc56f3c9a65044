"""The numba kernels of the search; each has a plain Python counterpart in the tests."""
