"""The version of the package: one place, read by packaging and by every file that is written."""

__version__ = "0.1.0"
