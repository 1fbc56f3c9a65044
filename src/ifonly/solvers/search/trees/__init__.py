"""The exact search for tree ensembles: boxes of cells, leaves as bits."""
