"""The inner loops of the search for tree ensembles, compiled by numba: flat arrays in, flat arrays out."""
