#!/usr/bin/env python3
"""What a request would take in other layouts of a database, and what reading it would: of a rank's file, for instance of a made run.

    target/release/examples/synthetic /tmp/made 1 1000000 && tests/bench/layout.py /tmp/made/rank-0.db

Each layout has the rows of `call` and `request` behind the same columns, which any SQLite can read:

- rows: as schema/tables.def has them
- packed rows: three integers a row, which a view takes apart by shifts; values that do not fit go into a table of their own
- packed, pages compressed: as zlib makes them, level 1; only a reader that is ours could open that

Printed are bytes a request, and processor seconds of a sum over all columns in the order of ids, the least of three.
"""

import argparse
import os
import resource
import sqlite3
import tempfile
import zlib

PAGE = 4096
CALL = ["id", "operation_id", "thread_id", "begin_ns", "duration_ns", "completed"]
REQUEST = ["id", "operation_id", "completion_id", "thread_id", "post_begin_ns", "post_ns", "mpi_ns", "outstanding_bytes"]
# where a value lies in its integer: column, integer, shift, bits; the begin has one for itself
PLACES = {
    "call": [("operation_id", "a", 0, 20), ("duration_ns", "a", 20, 32), ("completed", "b", 0, 16), ("thread_id", "b", 16, 8)],
    "request": [
        ("operation_id", "a", 0, 20), ("post_ns", "a", 20, 20), ("outstanding_bytes", "a", 40, 23),
        ("mpi_ns", "b", 0, 24), ("completion_id", "b", 24, 32), ("thread_id", "b", 56, 7),
    ],
}
BEGIN = {"call": "begin_ns", "request": "post_begin_ns"}
COLUMNS = {"call": CALL, "request": REQUEST}


def rows_of(source, table):
    """The rows, NULL as 0."""
    wanted = ", ".join(f"coalesce({column}, 0)" for column in COLUMNS[table])
    return source.execute(f"SELECT {wanted} FROM {table} ORDER BY id").fetchall()


def as_rows(out, table, rows):
    columns = COLUMNS[table]
    out.execute(f"CREATE TABLE {table} (id INTEGER PRIMARY KEY, {', '.join(f'{name} INTEGER' for name in columns[1:])})")
    out.executemany(f"INSERT INTO {table} VALUES ({', '.join('?' * len(columns))})", rows)


def as_packed_rows(out, table, rows):
    columns, places = COLUMNS[table], PLACES[table]
    out.execute(f"CREATE TABLE {table}_packed (id INTEGER PRIMARY KEY, begin INTEGER, a INTEGER, b INTEGER)")
    out.execute(f"CREATE TABLE {table}_large (id INTEGER, name TEXT, value INTEGER)")
    for row in rows:
        row = dict(zip(columns, row))
        packed = {"a": 0, "b": 0}
        for name, into, shift, bits in places:
            fits = 0 <= row[name] < 1 << bits
            packed[into] |= (row[name] if fits else 0) << shift
            if not fits:
                out.execute(f"INSERT INTO {table}_large VALUES (?, ?, ?)", (row["id"], name, row[name]))
        out.execute(f"INSERT INTO {table}_packed VALUES (?, ?, ?, ?)", (row["id"], row[BEGIN[table]], packed["a"], packed["b"]))
    parts = [f"({into} >> {shift}) & {(1 << bits) - 1} AS {name}" for name, into, shift, bits in places]
    out.execute(f"CREATE VIEW {table} AS SELECT id, begin AS {BEGIN[table]}, {', '.join(parts)} FROM {table}_packed")


def read_seconds(path):
    """Processor seconds of a sum over all columns of both tables, the least of three."""
    database = sqlite3.connect(path)
    least = float("inf")
    for _ in range(3):
        before = resource.getrusage(resource.RUSAGE_SELF)
        for table, columns in COLUMNS.items():
            database.execute(f"SELECT {', '.join(f'sum({name})' for name in columns)} FROM {table}").fetchone()
        after = resource.getrusage(resource.RUSAGE_SELF)
        least = min(least, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return least


def deflated(path):
    """Bytes of its pages, each compressed, and processor seconds that inflating them takes."""
    with open(path, "rb") as file:
        pages = [zlib.compress(page, 1) for page in iter(lambda: file.read(PAGE), b"")]
    before = resource.getrusage(resource.RUSAGE_SELF).ru_utime
    for page in pages:
        zlib.decompress(page)
    return sum(map(len, pages)), resource.getrusage(resource.RUSAGE_SELF).ru_utime - before


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--rows", type=int, default=200_000, help="requests that are looked at, the first ones")
    parser.add_argument("database")
    asked = parser.parse_args()
    source = sqlite3.connect(f"file:{asked.database}?mode=ro", uri=True)
    rows = {"request": rows_of(source, "request")[: asked.rows]}
    last = max(row[REQUEST.index("completion_id")] for row in rows["request"])
    rows["call"] = [row for row in rows_of(source, "call") if row[0] <= last]
    requests = len(rows["request"])
    print(f"{requests:,} requests, {len(rows['call']):,} calls\n\n| layout | bytes a request | ns a request to read | of rows |\n|---|---|---|---|")
    with tempfile.TemporaryDirectory() as work:
        today = None
        for name, write in {"rows": as_rows, "packed rows": as_packed_rows}.items():
            path = os.path.join(work, name)
            with sqlite3.connect(path) as out:
                for table in COLUMNS:
                    write(out, table, rows[table])
            seconds = read_seconds(path) / requests
            today = today or seconds
            size = os.path.getsize(path)
            print(f"| {name} | {size / requests:.1f} | {seconds * 1e9:.0f} | {seconds / today:.2f} |", flush=True)
            if name == "packed rows":
                size, more = deflated(path)
                seconds += more / requests
                print(f"| {name}, pages compressed | {size / requests:.1f} | {seconds * 1e9:.0f} | {seconds / today:.2f} |", flush=True)


main()
