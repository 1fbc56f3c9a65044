"""What the paper's methods share: one person after another under limits, the box of a distance, bounds of the neurons,
the search on the distance, the repair of a solver's row, and the solvers of linear forms."""
