"""Runs mpi4py's own tests on this rank and writes what came of each, line by line, so that a rank that dies or hangs
has named the test it was in: run_suite.py <directory of the tests> <directory for rank-N.txt> [options of its main.py]"""

import os
import sys
import time
import traceback
import unittest

START = time.monotonic()


class Result(unittest.TestResult):
    """A line `begin <test> <seconds since the start>` and one `<outcome> <test>` for each test; tracebacks behind `|`."""

    def __init__(self, file):
        super().__init__()
        self.file = file

    def write(self, word, test, error=None):
        lines = [f"{word} {test.id()}"]
        if error:
            lines += [f"| {line}" for line in "".join(traceback.format_exception(*error)).splitlines()]
        self.file.write("\n".join(lines) + "\n")
        self.file.flush()

    def startTest(self, test):
        super().startTest(test)
        self.file.write(f"begin {test.id()} {time.monotonic() - START:.2f}\n")
        self.file.flush()

    def addSuccess(self, test):
        self.write("passed", test)

    def addFailure(self, test, error):
        super().addFailure(test, error)
        self.write("failed", test, error)

    def addError(self, test, error):
        super().addError(test, error)
        self.write("error", test, error)

    def addSkip(self, test, reason):
        self.write("skipped", test)

    def addExpectedFailure(self, test, error):
        self.write("failed-as-expected", test)

    def addUnexpectedSuccess(self, test):
        super().addUnexpectedSuccess(test)
        self.write("passed-unexpectedly", test)

    def addSubTest(self, test, subtest, error):
        super().addSubTest(test, subtest, error)
        if error:
            self.write("failed", subtest, error)


class Runner:
    def __init__(self, directory):
        self.directory = directory

    def run(self, tests):
        from mpi4py import MPI  # made ready by main.py, with its options

        with open(os.path.join(self.directory, f"rank-{MPI.COMM_WORLD.Get_rank()}.txt"), "w") as file:
            result = Result(file)
            tests(result)
            file.write("end\n")
        return result


tests, directory, *options = sys.argv[1:]
sys.dont_write_bytecode = True
sys.path.insert(0, tests)
import main

main.TestProgram(module=None, argv=["main.py", *options], testRunner=Runner(directory))
