"""From the records of the search to certificates that the checker accepts."""
