"""What the commands that read a run take: processor time of lapscope builds, in turn, on made runs.

    python3 tests/bench/read.py [--requests N]... [--turns N] target/release [OTHER/target/release]

Each is a folder with `lapscope` and `examples/synthetic`, which makes the runs that this build reads: of 8 ranks, and for `sql` of 64
files. Printed are medians over the turns, and the second build's as a share of the first's.
"""

import argparse
import os
import resource
import statistics
import subprocess
import tempfile

QUERY = "SELECT rank, call, count, ns FROM time_by_call ORDER BY ns DESC LIMIT 10"


def processor_time(words):
    """Seconds of user and system time of a command that ends well."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def commands(run, many, merged):
    return {
        "report": ["report", run],
        "overlap": ["overlap", run],
        "diff": ["diff", run, run],
        "merge": ["merge", run, "-o", merged],
        "sql, 64 files": ["sql", many, QUERY],
    }


def measure(builds, requests, turns, work):
    """Medians by command and build."""
    lines = []
    merged = os.path.join(work, "merged.db")
    for number, build in enumerate(builds):
        run, many = (os.path.join(work, f"{name}-{number}") for name in ("run", "many"))
        synthetic = os.path.join(build, "examples/synthetic")
        subprocess.run([synthetic, run, "8", str(requests // 8)], check=True)
        subprocess.run([synthetic, many, "64", str(max(requests // 64 // 4, 1))], check=True)
        lines.append(commands(run, many, merged))
    for command in lines[0]:
        times = [[] for _ in builds]
        for _ in range(turns):
            for number, build in enumerate(builds):
                if os.path.exists(merged):
                    os.remove(merged)
                words = [os.path.join(build, "lapscope"), *lines[number][command]]
                times[number].append(processor_time(words))
        yield command, [statistics.median(of_build) for of_build in times]


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--requests", type=int, action="append")
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("build", nargs="+")
    arguments = parser.parse_args()
    for requests in arguments.requests or [1_000_000, 10_000_000]:
        print(f"== {requests:,} requests of 8 ranks, medians of {arguments.turns} turns")
        with tempfile.TemporaryDirectory() as work:
            for command, times in measure(arguments.build, requests, arguments.turns, work):
                share = f"   {100 * times[1] / times[0]:.0f} %" if len(times) > 1 else ""
                print(f"  {command:14}" + "".join(f"  {time:6.2f} s" for time in times) + share)


main()
