"""The engine behind ``lapscope report --engine dask``, which starts it: ``python -m lapscope.engine``.

Both talk in lines of JSON. On standard input it is asked for one stage after another::

    {"question": PATH, "parts": ["0-15", "16-31"], "answer": PATH}

and ends at an empty line, or when there is no more to read. On standard output it says ``"ready"`` once, and of each stage
``{"done": N}`` when N parts more are done, then ``"answered"``, when the answer is in its file. ``{"failed": WHY}`` may come at
any time, and is the last word. Nothing else is printed there. docs/parts.md describes questions and answers.
"""

from __future__ import annotations

import argparse
import contextlib
import errno
import json
import os
import queue
import signal
import sys
import tempfile
import threading
import warnings
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Dict, Iterator, Optional, Sequence, Type

from .errors import Error

#: What Dask says is shown where something failed, so many characters of it.
SHOWN = 4000


class Talk:
    """Lines from and to the command."""

    def __init__(self, out: IO[str], source: IO[str]) -> None:
        self._out = out
        self._source = source
        self._stages: queue.SimpleQueue[Optional[Dict[str, Any]]] = queue.SimpleQueue()
        self._works = False
        threading.Thread(target=self._listen, daemon=True).start()

    def say(self, what: Any) -> None:
        """Raises BrokenPipeError when nobody listens any more."""
        print(json.dumps(what), file=self._out, flush=True)

    def stages(self) -> Iterator[Dict[str, Any]]:
        """What is asked, until nothing is any more; who asked may also end in the middle of it, which is as Ctrl-C."""
        while True:
            stage = self._stages.get()
            if stage is None:
                return
            self._works = True
            yield stage
            self._works = False

    def _listen(self) -> None:
        for line in self._source:
            if not line.strip():
                break
            self._stages.put(json.loads(line))
        self._stages.put(None)
        if self._works:
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)


class Quiet:
    """Keeps what Dask and its workers print: it is shown where something fails, and is nobody's business otherwise."""

    def __enter__(self) -> Quiet:
        sys.stderr.flush()
        self._shown = os.dup(2)
        self._kept = tempfile.TemporaryFile()
        os.dup2(self._kept.fileno(), 2)
        return self

    def __exit__(
        self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        sys.stderr.flush()
        os.dup2(self._shown, 2)
        os.close(self._shown)
        self._kept.close()

    def tell(self, sentence: str) -> None:
        """To the user, at once."""
        os.write(self._shown, f"lapscope: {sentence}\n".encode())

    def show(self) -> None:
        """What was kept."""
        sys.stderr.flush()
        size = self._kept.seek(0, os.SEEK_END)
        self._kept.seek(max(0, size - SHOWN))
        os.write(self._shown, self._kept.read())


def main(arguments: Optional[Sequence[str]] = None) -> int:
    """Runs the engine; the code with which the process ends."""
    parser = argparse.ArgumentParser(prog="python -m lapscope.engine", description="Parts of a run, looked at by Dask.")
    parser.add_argument("--scheduler", required=True, help="local, or tcp://HOST:PORT")
    parser.add_argument("--run", required=True, help="run directory or database")
    parser.add_argument("--lapscope", required=True, help="the command")
    options = parser.parse_args(arguments)
    # Whatever prints to standard output, it does not get between the lines.
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    for ending in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(ending, signal.default_int_handler)
    warnings.simplefilter("ignore")
    talk = Talk(out, sys.stdin)
    with Quiet() as quiet:
        try:
            return serve(talk, quiet, options)
        except KeyboardInterrupt:
            return 128 + signal.SIGINT
        except BrokenPipeError:
            return 1
        except Error as error:
            why = str(error)
        except ImportError as error:
            why = f"{sys.executable} has no Dask ({error}); install it: {sys.executable} -m pip install dask distributed cryptography"
        except Exception as error:
            why = f"Dask failed: {type(error).__name__}: {error}"
            if is_without_room(error):
                why = f"{tempfile.gettempdir()} has no room left: make some, or let TMPDIR name a place on another disk"
            else:
                quiet.show()
        with contextlib.suppress(BrokenPipeError):
            talk.say({"failed": why})
        return 1


def is_without_room(error: Optional[BaseException]) -> bool:
    """Whether what it came from is that a disk is full."""
    while error is not None and not (isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)):
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return error is not None


def serve(talk: Talk, quiet: Quiet, options: argparse.Namespace) -> int:
    """Answers stages until no more are asked."""
    # Dask takes a second to come; what is wrong with the arguments is said before
    from .cluster import Parts, connected

    with connected(options.scheduler, quiet.tell) as client:
        try:
            parts = Parts(client, options.run, options.lapscope)
            parts.check()
            talk.say("ready")
            for stage in talk.stages():
                question = Path(stage["question"]).read_bytes()
                answer = parts.ask(question, stage["parts"], lambda more: talk.say({"done": more}))
                Path(stage["answer"]).write_bytes(answer)
                talk.say("answered")
        finally:
            # nothing gets between the end of the cluster
            for ending in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                signal.signal(ending, signal.SIG_IGN)
    return 0


if __name__ == "__main__":
    sys.exit(main())
