"""From records to documents: tables in the terminal, docs/paper, PERFORMANCE.md."""
