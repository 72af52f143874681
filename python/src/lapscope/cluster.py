"""Dask's side of an engine: a cluster, and parts that are submitted to it."""

from __future__ import annotations

import contextlib
import logging
import os
import tempfile
import time
from concurrent.futures import CancelledError
from typing import Any, Callable, Iterator, List

import cloudpickle
from dask.system import CPU_COUNT
from distributed import Client, KilledWorker, LocalCluster, as_completed

from . import tasks
from .errors import Error

#: A cluster on this machine, as it is named to :func:`connected`.
LOCAL = "local"

#: Seconds until a scheduler has to answer, and until its first worker has to be there.
ANSWERS_WITHIN, WORKERS_WITHIN = 5, 60

#: Answers that are put together by one task. More of them wait for more answers before anything can be freed; fewer make more
#: processes.
TOGETHER = 8

#: Tasks that the parts of a stage are given to, for each thread of a worker: a process reads the question once for all of its parts.
TASKS = 2

#: Parts that one task is given at the most: workers may join later.
PARTS = 16

#: Attempts at a task beyond the first.
RETRIES = 3

cloudpickle.register_pickle_by_value(tasks)


class EngineError(Error):
    """Dask cannot do it; the message says why, and the way out."""


@contextlib.contextmanager
def connected(scheduler: str, tell: Callable[[str], None]) -> Iterator[Client]:
    """A client of a scheduler (``tcp://HOST:PORT``) or of a cluster on this machine, which ends with it.

    Args:
        tell: what the user hears when it takes long.

    Raises:
        EngineError: no scheduler answers, or it has no worker.
    """
    if scheduler != LOCAL:
        with _client(scheduler) as client:
            _await_workers(client, scheduler, tell)
            yield client
        return
    # Encrypted, as other users of a shared machine could otherwise have these workers run what they like.
    with tempfile.TemporaryDirectory(prefix="lapscope-dask-") as directory, LocalCluster(
        n_workers=CPU_COUNT,
        threads_per_worker=1,
        processes=True,
        dashboard_address=None,
        local_directory=directory,
        security=True,
        silence_logs=logging.ERROR,
    ) as cluster, Client(cluster) as client:
        yield client


def _client(scheduler: str) -> Client:
    try:
        return Client(scheduler, timeout=ANSWERS_WITHIN)
    except (OSError, ValueError) as error:
        said = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise EngineError(
            f"no Dask scheduler answers at {scheduler} within {ANSWERS_WITHIN} s ({said}); start one (dask scheduler) and name the "
            "address that it prints as dask://HOST:PORT, or use --engine dask for a cluster on this machine"
        ) from error


def _await_workers(client: Client, scheduler: str, tell: Callable[[str], None]) -> None:
    if client.nthreads():
        return
    tell(f"waiting for a first worker of {scheduler}")
    ends = time.monotonic() + WORKERS_WITHIN
    while not client.nthreads():
        if time.monotonic() > ends:
            raise EngineError(
                f"the Dask scheduler at {scheduler} has no workers after {WORKERS_WITHIN} s; start some (dask worker {scheduler}), "
                "of an adaptive cluster one at least (minimum=1)"
            )
        time.sleep(0.2)


def _call(name: str) -> Callable[[Any, Any], bytes]:
    """A function of :mod:`lapscope.tasks` that is found in what was asked: small, and, as a closure, by value."""

    def call(what: Any, asked: Any) -> bytes:
        import cloudpickle

        answer: bytes = cloudpickle.loads(asked[name])(what, asked)
        return answer

    return call


_part, _merge = _call("part"), _call("merge")


class Parts:
    """Stages of one run."""

    def __init__(self, client: Client, run: str, lapscope: str) -> None:
        directory = os.getcwd()
        try:
            files = tasks.files_of(directory, run)
        except OSError as error:
            raise EngineError(f"{run}: {error.strerror}") from error
        self._client = client
        self._job: tasks.Job = {
            "lapscope": lapscope,
            "version": tasks.version_of(lapscope),
            "run": run,
            "directory": directory,
            "files": files,
        }

    def check(self) -> None:
        """Whether all workers can look at the run.

        Raises:
            EngineError: some cannot.
        """
        said = self._client.run(tasks.trouble, self._job, on_error="return")
        # a worker that went away meanwhile answers with an exception; parts are given to those that are left
        wrong = sorted({why for why in said.values() if isinstance(why, str)})
        if wrong:
            more = f" (so it is on {len(wrong)} machines or more)" if len(wrong) > 1 else ""
            raise EngineError(wrong[0] + more)

    def ask(self, question: bytes, parts: List[str], done: Callable[[int], None]) -> bytes:
        """Asks every part, and puts the answers together in a tree.

        Args:
            question: as standard input of ``lapscope part``.
            parts: places of ranks, as ``0-15,17``.
            done: told how many parts more were done.

        Raises:
            EngineError: a part failed for good.
        """
        submit = self._client.submit
        stage: tasks.Asked = {
            "job": self._job,
            "question": question,
            "part": cloudpickle.dumps(tasks.part),
            "merge": cloudpickle.dumps(tasks.merge),
        }
        # as the result of a task: when the worker that holds it is killed, Dask makes it again, and others pass it on
        asked = submit(lambda stage: stage, stage, pure=False)
        del stage
        most = TASKS * max(1, sum(self._client.nthreads().values()))
        together = min(PARTS, -(-len(parts) // most))
        batches = [parts[at : at + together] for at in range(0, len(parts), together)]
        level = [submit(_part, batch, asked, retries=RETRIES, pure=False) for batch in batches]
        sizes = {future.key: len(batch) for future, batch in zip(level, batches)}
        running, height = as_completed(level), 0
        while height == 0 or len(level) > 1:
            # what can be put together goes before further parts, so that few answers are in memory at a time
            height += 1
            groups = [level[at : at + TOGETHER] for at in range(0, len(level), TOGETHER)]
            level = [submit(_merge, group, asked, retries=RETRIES, pure=False, priority=height) for group in groups]
        answer = level[0]
        del asked, groups, level
        for future in running:
            if future.status != "finished":
                self._result(future)
            done(sizes[future.key])
        return self._result(answer)

    @staticmethod
    def _result(future: Any) -> bytes:
        try:
            answer = future.result()
        except KilledWorker as error:
            raise EngineError(
                "a part ended every worker that looked at it, as where memory is short: let --memory be smaller, or give the "
                f"workers more ({error})"
            ) from error
        except CancelledError as error:
            # nothing here cancels a task: Dask does where it loses its scheduler, which knows all of them
            raise EngineError(
                "the Dask scheduler is gone, or has let go of what it was asked: start it again, where it and its workers have the memory "
                "that parts take, or use --engine dask for a cluster on this machine"
            ) from error
        except Exception as error:
            raise EngineError(f"{error} (tried {RETRIES + 1} times)") from error
        assert isinstance(answer, bytes)
        return answer
