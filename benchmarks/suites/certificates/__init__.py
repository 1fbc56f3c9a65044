"""Certificates: what they cost and whether all are valid (`costs`), and the command that asks."""

from benchmarks.suites.certificates.command import command as command
