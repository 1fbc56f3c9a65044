"""The search for networks with smooth activations."""
