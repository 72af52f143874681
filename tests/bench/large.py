#!/usr/bin/env python3
"""What large runs take: wall time, processor time and memory of lapscope on made runs, as a whole and in parts; and that the answer
is the same, to the byte. Beside it what SQLite takes to read the same rows once, which nobody who reads them can be below.

    make large-bench        or        tests/bench/large.py [--build target/release] [--work DIR] [CASE]...

Cases: 16 (1 and 10 million requests of 16 ranks), 1000 (10 million of 1,000 ranks, and what workers of an engine would take, in
simulation), 1024 (1, 10 and 100 million requests of 1,024 ranks, 4 GB of disk), 10000
(10,000 ranks of 1,000 requests, in 10,000 and in 157 files). Nothing is asserted of times; an answer that differs ends it with 1.
"""

import argparse
import hashlib
import heapq
import json
import os
import resource
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time

COLLECTIVES = ["--collective-every", "1000"]


def run(words, out, **environment):
    """Wall seconds, processor seconds and the most resident memory in MB of a command that ends well."""
    begin = time.monotonic()
    process = subprocess.Popen(words, stdout=out, stderr=subprocess.DEVNULL, env={**os.environ, **environment})
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        sys.exit(f"{' '.join(words)}: exit code {process.returncode}")
    return time.monotonic() - begin, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def read_by_sqlite(path):
    """Processor seconds of a sum over all columns of calls and requests."""
    before = resource.getrusage(resource.RUSAGE_SELF)
    for entry in os.scandir(path):
        database = sqlite3.connect(f"file:{entry.path}?mode=ro", uri=True)
        for table in ["call", "request"]:
            columns = [row[1] for row in database.execute(f"PRAGMA table_info({table})")]
            database.execute(f"SELECT {', '.join(f'sum({column})' for column in columns)} FROM {table}").fetchone()
        database.close()
    after = resource.getrusage(resource.RUSAGE_SELF)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def on_workers(count, tasks):
    """When the last of so many workers is done, which take one task after the other."""
    workers = [0.0] * count
    for task in tasks:
        heapq.heapreplace(workers, workers[0] + task)
    return max(workers)


class Case:
    def __init__(self, build, work):
        self.lapscope = os.path.join(build, "lapscope")
        self.synthetic = os.path.join(build, "examples/synthetic")
        self.work = work
        self.is_same = True
        self.limit = None

    def made(self, ranks, requests, *more):
        """A run; the one before goes."""
        path = os.path.join(self.work, "run")
        shutil.rmtree(path, ignore_errors=True)
        words = [self.synthetic, path, str(ranks), str(requests // ranks), *more]
        subprocess.run(words, check=True)
        size = sum(entry.stat().st_size for entry in os.scandir(path))
        print(f"== {requests:,} requests of {ranks:,} ranks, {len(os.listdir(path)):,} files, {size / 1e6:,.0f} MB")
        self.limit = read_by_sqlite(path)
        print(f"  SQLite reads the rows in {self.limit:.1f} s of processors")
        return path

    def digest(self, words, **environment):
        """A hash of what a command says, and what it takes as `run` has it."""
        with tempfile.TemporaryFile() as out:
            taken = run([self.lapscope, *words, "--format", "json"], out, **environment)
            out.seek(0)
            return hashlib.sha256(out.read()).hexdigest(), taken

    def engine(self, path, workers):
        """Prints what a report takes as a whole on one processor, and what it would on so many workers of an engine with four parts
        each, every task measured by itself (`simulated.py`)."""
        whole, (_, alone, _) = self.digest(["report", path], RAYON_NUM_THREADS="1")
        times = os.path.join(self.work, "times")
        engine = os.path.join(os.path.dirname(os.path.abspath(__file__)), "simulated.py")
        words = ["report", path, "--engine", "dask", "--parts", str(4 * workers)]
        same, (_, own, _) = self.digest(
            words,
            RAYON_NUM_THREADS="1",
            LAPSCOPE_PYTHON=engine,
            LAPSCOPE_BENCH_TIMES=times,
            LAPSCOPE_BENCH_WORKERS=str(workers),
        )
        with open(times) as lines:
            stages = [json.loads(line) for line in lines]
        in_tasks = sum(sum(stage["tasks"]) for stage in stages)
        rest = own - in_tasks  # wait4 counts the engine and what it ran, too
        path_of = rest + sum(on_workers(workers, stage["tasks"]) for stage in stages)
        print(f"  {workers} workers: {in_tasks:.1f} s of processors, {in_tasks / alone:.2f} times the {alone:.1f} s of one process")
        print("    by stage: " + ", ".join(f"{sum(stage['tasks']):.1f}" for stage in stages))
        print(f"    beside them {rest:.1f} s: the command itself, putting answers together")
        print(f"    critical path {path_of:.1f} s, {alone / path_of:.2f} times quicker", flush=True)
        self.say_whether_same("report", {whole, same})

    def answers(self, path, command, ways):
        """Prints what each way takes, and whether all say the same."""
        digests = set()
        for way in ways:
            digest, (wall, cpu, memory) = self.digest([command, path, *way])
            digests.add(digest)
            name = " ".join(way) or "as a whole, or as memory allows"
            print(
                f"  {command:8} {name:32} {wall:7.1f} s  {cpu:7.1f} s of processors, {cpu / self.limit:4.1f} times SQLite's  "
                f"{memory:6.0f} MB",
                flush=True,
            )
        self.say_whether_same(command, digests)

    def say_whether_same(self, command, digests):
        self.is_same &= len(digests) == 1
        if len(digests) > 1:
            print(f"  {command}: THE ANSWERS DIFFER")


def ranks_16(case):
    for requests in [1_000_000, 10_000_000]:
        path = case.made(16, requests, *COLLECTIVES)
        for command in ["report", "overlap"]:
            case.answers(path, command, [[], ["--memory", "300M"]])


def ranks_1000(case):
    path = case.made(1000, 10_000_000, *COLLECTIVES, "--ranks-per-node", "64")
    case.answers(path, "report", [[], ["--memory", "300M"], ["--parts", "8"]])
    for workers in [2, 4, 8]:
        case.engine(path, workers)


def ranks_1024(case):
    for requests in [1_000_000, 10_000_000, 100_000_000]:
        path = case.made(1024, requests, *COLLECTIVES, "--ranks-per-node", "64")
        case.answers(path, "report", [["--memory", "300M"], ["--parts", "7"], ["--parts", "64"], ["--memory", "1G"]])


def ranks_10000(case):
    shape = ["--collective-every", "100", "--ranks-per-node", "64"]
    for files in ["node", "rank"]:
        path = case.made(10_000, 10_000_000, *shape, "--files", files)
        case.answers(path, "report", [[], ["--memory", "500M"]])


CASES = {"16": ranks_16, "1000": ranks_1000, "1024": ranks_1024, "10000": ranks_10000}


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--build", default="target/release")
    parser.add_argument("--work")
    parser.add_argument("case", nargs="*", choices=[[], *CASES])
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=arguments.work) as work:
        case = Case(arguments.build, work)
        for name in arguments.case or CASES:
            CASES[name](case)
    sys.exit(0 if case.is_same else 1)


main()
