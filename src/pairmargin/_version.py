"""The version, in a file that nothing heavy stands beside."""

__version__ = "0.1.0"
