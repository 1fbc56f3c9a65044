"""What is asked about: data sets with a split, and networks trained on them."""
