"""From records to documents: tables in the terminal, docs/paper.md, and the table of docs/performance.md."""
