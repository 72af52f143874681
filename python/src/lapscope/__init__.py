"""Runs that lapscope recorded, as Arrow tables and dicts.

>>> import lapscope
>>> with lapscope.open("runs/a") as run:
...     print(run.messages().num_rows, run.report()["summary"])
"""

from .command import Command
from .errors import CommandNotFound, Error, RunError
from .run import Run, open

__all__ = ["Command", "CommandNotFound", "Error", "Run", "RunError", "open"]
