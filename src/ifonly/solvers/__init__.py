"""Solvers of the nearest-counterfactual problem: branch and bound (`search`), the paper's mixed-integer programs
(`mip`) and satisfiability methods (`smt`), and what these share (`common`)."""
