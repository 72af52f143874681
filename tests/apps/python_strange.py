"""What a reader of Python's frames could stumble over, with calls of MPI in the midst of it: code that dies, frames of every kind,
tracing, handlers of signals, forks, threads, greenlets where they are, an interpreter within the interpreter.

Prints nothing but what is the same with and without lapscope.
"""

import asyncio
import atexit
import gc
import os
import random
import signal
import sys
import threading
import types
import warnings

from mpi4py import MPI

world, me = MPI.COMM_WORLD, MPI.COMM_SELF
NEWER = sys.version_info >= (3, 12)
sent = 0


def call():
    me.Barrier()


def message(size):
    global sent
    sent += 1
    tag, out, into = sent % 30000, os.urandom(size), bytearray(size)
    receive = me.Irecv([into, MPI.BYTE], 0, tag)
    me.Send([out, MPI.BYTE], 0, tag)
    receive.Wait()
    assert into == out


def made_anew():
    for number in range(300):
        source = "\n" * (number % 7) + f"def f(a):\n  return comm.Barrier() or a\nassert f({number}) == {number}"
        exec(compile(source, f"made{number % 11}.py", "exec"), {"comm": me})
        if number % 50 == 0:
            gc.collect()


def deep(levels):
    if levels:
        return deep(levels - 1)
    call()


def yielding(levels):
    if levels:
        yield from yielding(levels - 1)
    call()
    yield levels


async def awaiting(levels):
    if levels:
        await awaiting(levels - 1)
    await asyncio.sleep(0)
    call()


async def gathered():
    await asyncio.gather(*[awaiting(number % 9) for number in range(30)])


def traced():
    def trace(*_):
        call()
        return trace

    for switch in (sys.settrace, sys.setprofile):
        switch(trace)
        try:
            deep(5)
        finally:
            switch(None)


def signals():
    came = []

    def handler(*_):
        came.append(1)
        message(10)
        deep(3)

    signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
    while len(came) < 20:
        message(1000)
    signal.setitimer(signal.ITIMER_REAL, 0)


def forked():
    for _ in range(3):
        child = os.fork()
        if child == 0:
            made = [compile("a + b", f"made{number}", "eval") for number in range(100)]
            del made
            os._exit(0)
        call()
        assert os.waitpid(child, 0)[1] == 0


def in_threads():
    if MPI.Query_thread() < MPI.THREAD_MULTIPLE:
        return

    def work(comm, seed):
        draw = random.Random(seed)

        def down(levels):
            down(levels - 1) if levels else comm.Barrier()

        for _ in range(50):
            exec(compile("\n" * draw.randrange(9) + "comm.Barrier()", f"thread{seed}", "exec"), {"comm": comm})
            down(draw.randrange(60))

    comms = [me.Dup() for _ in range(4)]
    threads = [threading.Thread(target=work, args=it) for it in zip(comms, range(4))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for comm in comms:
        comm.Free()


class Cycle:
    def __init__(self):
        self.own = self

    def __del__(self):
        call()


class Meta(type):
    def __getattr__(cls, name):
        call()
        return 7


def strange_code():
    changes = [
        {"co_name": "näme ☃ with blanks", "co_filename": "/tmp/☃ dir/…\n.py"},
        {"co_name": "x" * 5000, "co_filename": "y" * 10000},
        {"co_name": "", "co_filename": "", "co_firstlineno": 2**28 + 5},
    ] + [{"co_linetable": b""}] * (sys.version_info >= (3, 10))
    for change in changes:
        types.FunctionType(call.__code__.replace(**change), globals())()
    assert Meta("M", (), {}).anything == 7
    assert sorted(range(9), key=lambda number: (call(), -number)[1])[0] == 8
    [call() for _ in range(3)]
    eval("call()")


def greenlets():
    try:
        import greenlet
    except ImportError:
        return

    def run(levels):
        for _ in range(5):
            deep(levels)
            greenlet.getcurrent().parent.switch()
            call()

    all_of_them = [greenlet.greenlet(run) for _ in range(8)]
    for turn in range(6):
        for number, one in enumerate(all_of_them):
            one.switch(7 * number) if turn == 0 else one.switch()


def interpreter_within():
    try:
        interpreters = __import__("_interpreters" if sys.version_info >= (3, 13) else "_xxsubinterpreters")
    except ImportError:
        return
    one = interpreters.create()
    interpreters.run_string(one, "def f(n):\n  return f(n - 1) if n else 1\nassert f(4)")
    interpreters.destroy(one)


warnings.simplefilter("ignore")  # of forks beside threads: with a process's number
sys.setrecursionlimit(30000)
threading.stack_size(256 << 20)
strange_code()
for what in (made_anew, traced, signals, forked, in_threads, greenlets, interpreter_within):
    what()
    call()
assert list(yielding(40))[-1] == 40
asyncio.run(gathered())
for _ in range(20):
    Cycle()
gc.collect()
thread = threading.Thread(target=deep, args=(3000 if NEWER else 20000,))
thread.start()
thread.join()
world.Barrier()
if world.rank == 0:
    print("passed", flush=True)
atexit.register(call)
last = Cycle()
