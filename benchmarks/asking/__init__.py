"""Putting one question to one method, on time, and recording what came of it."""
