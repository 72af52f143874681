"""What can go wrong."""

from __future__ import annotations


class Error(Exception):
    """Of all errors of this package."""


class CommandNotFound(Error):
    """There is no command ``lapscope``, or it cannot be started."""


class RunError(Error):
    """There is no run, or it cannot be read; the message is what the command said."""
