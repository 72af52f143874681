-- What `lapscope bench` measured: one file of all its runs. The database of a single recorded run is made from tables.def.
--
-- A run printed tables (examples/README.md); a row of one, in one quantity, is a point. A name ends in its unit: _us microseconds,
-- _percent, bytes. Values are medians over repetitions, low and high the first and third quartile.

PRAGMA application_id = 1279349570;  -- 'LAPB'
PRAGMA user_version = 2;             -- format; raised by every change that an older reader would misread

CREATE TABLE fact (                    -- of the whole: created, host, processors, processor, kernel, lapscope, load, command
  name  TEXT PRIMARY KEY,
  value TEXT NOT NULL
);

CREATE TABLE mpi (
  mpi      INTEGER PRIMARY KEY,
  name     TEXT NOT NULL,              -- openmpi, mpich, or as --mpi named it
  version  TEXT NOT NULL,              -- what the library says of itself
  compiler TEXT NOT NULL,
  launcher TEXT NOT NULL
);

CREATE TABLE run (
  run       INTEGER PRIMARY KEY,       -- in the order in which they were started
  mpi       INTEGER NOT NULL REFERENCES mpi (mpi),
  link      TEXT    NOT NULL,          -- shared_memory, slow_link
  inject    TEXT    NOT NULL,          -- off, timer, thread
  program   TEXT    NOT NULL,          -- directory under examples; calibrate: lapscope's own
  arguments TEXT    NOT NULL,          -- of the program, separated by blanks
  settings  TEXT    NOT NULL,          -- NAME=VALUE that only this run had, separated by blanks
  ranks     INTEGER NOT NULL,
  seconds   REAL    NOT NULL,          -- from launch to end
  problem   TEXT                       -- why there are no tables; NULL: there are
);

CREATE TABLE series (                  -- a table that a run printed
  series INTEGER PRIMARY KEY,
  run    INTEGER NOT NULL REFERENCES run (run),
  name   TEXT    NOT NULL              -- overlap, steps, progress, …
);

CREATE TABLE attribute (               -- what a table was measured with: side=send
  series INTEGER NOT NULL REFERENCES series (series),
  name   TEXT    NOT NULL,
  value  TEXT    NOT NULL,
  PRIMARY KEY (series, name)
) WITHOUT ROWID;

CREATE TABLE point (
  series       INTEGER NOT NULL REFERENCES series (series),
  place        INTEGER NOT NULL,       -- of the row in its table, from 0
  quantity     TEXT    NOT NULL,       -- name of the column
  value        REAL,                   -- what the program itself measured, or was told to do; NULL: it printed -
  low          REAL,                   -- NULL: without spread
  high         REAL,
  outside      REAL,                   -- the same quantity as lapscope has it of the same run; NULL: not compared
  outside_low  REAL,
  outside_high REAL,
  PRIMARY KEY (series, place, quantity)
) WITHOUT ROWID;

CREATE TABLE threshold (               -- what `lapscope thresholds` says of a run
  run                    INTEGER NOT NULL REFERENCES run (run),
  what                   TEXT    NOT NULL, -- post: MPI_Isend itself blocks; needs_receiver_progress: it waits for its receiver to be inside MPI; rendezvous: for its receive; cumulative: bytes on their way together
  largest_eager_bytes INTEGER,
  smallest_waiting_bytes INTEGER,
  verdict                TEXT    NOT NULL,
  sentence               TEXT    NOT NULL,
  PRIMARY KEY (run, what)
);

CREATE TABLE segment (                 -- timelines: what a rank did in one repetition, on a clock that the ranks share
  run      INTEGER NOT NULL REFERENCES run (run),
  tag      INTEGER NOT NULL,           -- the row of the table whose messages these are
  rank     INTEGER NOT NULL,
  begin_ns INTEGER NOT NULL,           -- since the first post of that repetition
  end_ns   INTEGER NOT NULL,
  what     TEXT    NOT NULL            -- name of the MPI call; compute
);

CREATE TABLE advice (                  -- the first pieces of advice of `lapscope report` on a run
  run      INTEGER NOT NULL REFERENCES run (run),
  place    INTEGER NOT NULL,           -- 0: the one with the most time at stake
  cure     TEXT    NOT NULL,           -- as in docs/json.md
  share    REAL    NOT NULL,           -- of the run time of all ranks, an upper bound
  sentence TEXT    NOT NULL,
  PRIMARY KEY (run, place)
) WITHOUT ROWID;
