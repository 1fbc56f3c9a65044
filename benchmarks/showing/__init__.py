"""From records to tables, fits and plots."""
