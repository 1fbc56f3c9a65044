"""The numba kernels of the search; each has a plain twin in the tests."""
