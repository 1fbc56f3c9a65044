"""Query answering on points: checked searches, disjunctions by branching, diverse answers, reasons, missing numbers."""
