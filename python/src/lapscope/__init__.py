"""Runs that lapscope recorded, as Arrow tables and dicts.

>>> import lapscope
>>> with lapscope.open("runs/a") as run:
...     print(run.messages().num_rows, run.report()["summary"])
"""

from typing import TYPE_CHECKING, Any

from .command import Command, check
from .errors import CommandNotFound, Error, RunError

if TYPE_CHECKING:
    from .run import Run, open, scaling

__all__ = ["Command", "CommandNotFound", "Error", "Run", "RunError", "check", "open", "scaling"]


def __getattr__(name: str) -> Any:
    """What needs Arrow is looked for when it is used: each of an engine's workers imports this package, and none needs Arrow."""
    if name in ("Run", "open", "scaling"):
        from . import run

        return getattr(run, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
