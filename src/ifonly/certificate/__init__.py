"""Certificates: the file format, and the checker, which loads without the rest of the library."""
