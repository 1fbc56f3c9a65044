"""Kernels of the search for networks with smooth activations."""
