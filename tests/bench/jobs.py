#!/usr/bin/env python3
"""What records of many jobs take: made-up ones imported, imported again unchanged, and listed.

    tests/bench/jobs.py WORK LAPSCOPE MAKER [JOBS]      MAKER: target/release/examples/jobs; 100,000 jobs by default
"""

import os
import shutil
import subprocess
import sys
import time


def timed(words):
    begin = time.monotonic()
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL)
    return time.monotonic() - begin


def main():
    work, lapscope, maker = sys.argv[1:4]
    jobs = int(sys.argv[4]) if len(sys.argv) > 4 else 100_000
    records, database = os.path.join(work, "records"), os.path.join(work, "jobs.db")
    shutil.rmtree(work, ignore_errors=True)
    subprocess.run([maker, records, str(jobs)], check=True)
    ask = [lapscope, "jobs", "--database", database]
    first = timed([*ask, "--quiet", records])
    print(f"  {jobs:,} records imported in {first:.1f} s, {jobs / first:,.0f} a second; {os.path.getsize(database) / jobs:,.0f} bytes a job")
    print(f"  imported again, unchanged: {timed([*ask, '--quiet', records]):.2f} s")
    for words in (["--sort", "share"], ["--by", "executable"], ["--user", "1042", "--since", "2023-12-01"]):
        print(f"  listed {' '.join(words)}: {timed([*ask, *words]):.2f} s")
    other = [lapscope, "jobs", "--database", database + "2", "--quiet", records]
    begin = time.monotonic()
    two = [subprocess.Popen(other) for _ in range(2)]
    if any(process.wait() for process in two):
        sys.exit("two importers at once failed")
    print(f"  imported by two at once: {time.monotonic() - begin:.1f} s")


if __name__ == "__main__":
    main()
