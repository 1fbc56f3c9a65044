"""The paper's experiments, figure by figure: `plans` says what is asked, `draw` and `page` show what came of it."""
