#!/usr/bin/env python3
"""An engine that runs the tasks of a run one after the other and measures each: what n workers would take follows from that, on a
machine of any size. `large.py` names it as LAPSCOPE_PYTHON, with --engine dask; docs/parts.md has what an engine is told and says.

Parts are given to tasks as Dask's are for LAPSCOPE_BENCH_WORKERS. Processor seconds go to the file that LAPSCOPE_BENCH_TIMES names: for
each stage a line of JSON, the list of its tasks' and what putting their answers together took.
"""

import json
import os
import subprocess
import sys
import tempfile


def measured(words, given, written):
    """Runs a command from file to file; processor seconds."""
    with open(given, "rb") as source, open(written, "wb") as sink:
        process = subprocess.Popen(words, stdin=source, stdout=sink, env={**os.environ, "RAYON_NUM_THREADS": "1"})
        _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        say({"failed": f"{' '.join(words)}: exit code {process.returncode}"})
        sys.exit(1)
    return usage.ru_utime + usage.ru_stime


def say(word):
    print(json.dumps(word), flush=True)


def stage(lapscope, request, work):
    """Answers one stage; what its tasks took, and what their answers took to be put together."""
    own = []
    parts = request["parts"]
    each = -(-len(parts) // (2 * int(os.environ["LAPSCOPE_BENCH_WORKERS"])))
    answers = os.path.join(work, "answers")
    with open(answers, "wb") as together:
        for batch in [parts[at : at + each] for at in range(0, len(parts), each)]:
            answer = os.path.join(work, "answer")
            ranks = [f"--ranks={places}" for places in batch]
            own.append(measured([lapscope, "part", *ranks], request["question"], answer))
            with open(answer, "rb") as one:
                together.write(one.read())
            say({"done": len(batch)})
    merged = measured([lapscope, "part", "--merge"], answers, request["answer"])
    return {"tasks": own, "merge": merged}


def main():
    lapscope = sys.argv[sys.argv.index("--lapscope") + 1]
    say("ready")
    with tempfile.TemporaryDirectory() as work, open(os.environ["LAPSCOPE_BENCH_TIMES"], "w") as times:
        for line in sys.stdin:
            if not line.strip():
                break
            print(json.dumps(stage(lapscope, json.loads(line), work)), file=times, flush=True)
            say("answered")


main()
