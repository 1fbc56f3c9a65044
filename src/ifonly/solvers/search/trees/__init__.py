"""Branch and bound for tree ensembles: boxes of cells, leaves as bits."""
