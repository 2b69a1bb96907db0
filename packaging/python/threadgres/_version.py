"""The version of a source tree; the build writes the real one."""

__version__ = "0"
