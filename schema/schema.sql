-- lapscope's database: one file a rank (rank-N.db), or many ranks in one file (node-HOST.db, `lapscope merge`).
-- The data dictionary in prose, with the definitions of every time, is README.md beside this file.
--
-- Times are whole nanoseconds. A column ending in _begin_ns counts from its rank's rank.epoch_ns (CLOCK_MONOTONIC);
-- other columns ending in _ns are durations. Sizes are bytes. Ranks are ranks in MPI_COMM_WORLD unless named comm_rank.
-- A row's rank is that of its operation. NULL means not known or not applicable, never zero.

PRAGMA application_id = 1279349584;  -- 'LAPP'
PRAGMA user_version = 12;            -- format; raised by every change that an older reader would misread

CREATE TABLE rank (
  rank           INTEGER PRIMARY KEY,    -- key in this file; the world rank, but in a file of several worlds or lives
  world          INTEGER NOT NULL,       -- which MPI_COMM_WORLD: 1 was launched, higher ones spawned, in the launcher's order
  world_rank     INTEGER NOT NULL,       -- rank in it
  life           INTEGER NOT NULL,       -- 1; higher when the same rank of the same job started MPI again after an exec
  world_size     INTEGER NOT NULL,       -- of that MPI_COMM_WORLD
  host           TEXT    NOT NULL,
  pid            INTEGER NOT NULL,
  command        TEXT    NOT NULL,       -- command line, words separated by blanks
  executable     TEXT    NOT NULL,       -- absolute path
  mpi_abi        TEXT    NOT NULL,       -- openmpi, mpich, mpiabi
  mpi_library    TEXT    NOT NULL,       -- MPI_Get_library_version, first line
  mpi_standard   TEXT    NOT NULL,       -- MPI_Get_version, as "3.1"
  thread_level   INTEGER NOT NULL,       -- granted: 0 single, 1 funneled, 2 serialized, 3 multiple
  lapscope_version TEXT  NOT NULL,
  job            TEXT    NOT NULL,       -- identity of the job, the same on all its ranks
  epoch_ns       INTEGER NOT NULL,       -- CLOCK_MONOTONIC of this host when recording began
  epoch_unix_ns  INTEGER NOT NULL,       -- the same moment in CLOCK_REALTIME
  clock          TEXT    NOT NULL,       -- tsc, monotonic
  init_end_ns    INTEGER NOT NULL,       -- since epoch_ns: when MPI_Init returned
  end_ns         INTEGER NOT NULL,       -- since epoch_ns: when MPI_Finalize was entered; else the last thing recorded, which is no later than the end
  ended          TEXT    NOT NULL CHECK (ended IN ('finalize', 'abort', 'exit', 'killed')),
  lost_records   INTEGER NOT NULL,       -- records that could not be kept (spool could not grow); 0 in a healthy run
  unknown_requests INTEGER NOT NULL,     -- requests completed whose start lapscope did not see
  summarized     INTEGER NOT NULL,       -- not 0: of a part of the run only the tally tells, as 1 LAPSCOPE_MAX_MB left no room for all, 2 the disk was full, 3 the limit on file sizes was reached, 4 LAPSCOPE_RECORD=sums
  spool_bytes    INTEGER NOT NULL,
  gone_ns        INTEGER                 -- since epoch_ns: abort, exit: it ended; killed: it was seen to be gone, so that it ended between end_ns and this; NULL: not seen, or finalize
);

CREATE TABLE processor (                 -- what the thread that called MPI_Init got, from there to MPI_Finalize; no row: not known
  rank         INTEGER PRIMARY KEY,
  run_ns       INTEGER NOT NULL,         -- on a processor
  wait_ns      INTEGER NOT NULL,         -- able to run, and without one
  switches     INTEGER NOT NULL,         -- times it let go of the processor
  preemptions  INTEGER NOT NULL,         -- times it was taken away
  allowed      INTEGER NOT NULL,         -- processors that it may use
  online       INTEGER NOT NULL          -- processors of the host
);

CREATE TABLE starvation (                -- intervals in which that thread was able to run and did not; none where it always ran
  rank         INTEGER NOT NULL,
  begin_ns     INTEGER NOT NULL,
  end_ns       INTEGER NOT NULL,
  wait_ns      INTEGER NOT NULL          -- able to run, and without a processor, in all of the interval; where in it is not known
);

CREATE TABLE option      (rank INTEGER NOT NULL, name TEXT NOT NULL, value TEXT NOT NULL, source TEXT NOT NULL,  -- default, environment, rejected
                          PRIMARY KEY (rank, name)) WITHOUT ROWID;
CREATE TABLE environment (rank INTEGER NOT NULL, name TEXT NOT NULL, value TEXT NOT NULL, PRIMARY KEY (rank, name)) WITHOUT ROWID;
CREATE TABLE cvar        (rank INTEGER NOT NULL, name TEXT NOT NULL, value TEXT NOT NULL, PRIMARY KEY (rank, name)) WITHOUT ROWID;  -- control variables about protocols

CREATE TABLE thread (
  id       INTEGER PRIMARY KEY,
  rank     INTEGER NOT NULL,
  number   INTEGER NOT NULL,             -- 0 is the thread that called MPI_Init, then in order of first MPI call
  tid      INTEGER NOT NULL,             -- of the operating system
  mpi_ns   INTEGER NOT NULL,             -- time inside recorded MPI calls, unsuccessful tests included
  calls    INTEGER NOT NULL              -- intercepted calls
);

-- What interposer/calls.def says of each call, so that a database explains itself. README.md has the words; further ones may
-- come without another format.
CREATE TABLE call_name (
  id        INTEGER PRIMARY KEY,
  name      TEXT NOT NULL,               -- MPI_Isend, whatever language it was called from
  family    TEXT NOT NULL,               -- POINT_TO_POINT, COLLECTIVE, ...: the sections of calls.def
  role      TEXT NOT NULL,               -- POST, INIT, COMPLETE, BLOCK, PROBE, MANAGE, CONTROL, BOUND
  usual_kind TEXT NOT NULL,              -- operation.kind of its rows; MPI_Start: other, its rows have that of the request
  transfers TEXT,                        -- point to point: send, receive, both, started (whatever the request is for)
  mode      TEXT,                        -- of what is sent: standard, buffered, synchronous, ready; partitioned, also of receives
  counted   INTEGER NOT NULL,            -- 0: its rows tell of bytes that are counted in others, as those that make a persistent request
  needs     TEXT,                        -- collectives: whom a member waits for: all, root, all_at_root, lower, neighbors
  completes TEXT,                        -- requests that it waits or tests for: one, all, any, some
  blocking  TEXT NOT NULL                -- the call that does the same and returns when it is done; its own name where there is none
);

CREATE TABLE module (                    -- an executable or shared object in the process
  id       INTEGER PRIMARY KEY,
  rank     INTEGER NOT NULL,
  path     TEXT    NOT NULL,
  build_id TEXT    NOT NULL,             -- hexadecimal; empty when the file has none
  base     INTEGER NOT NULL,             -- load address minus the address in the file
  size     INTEGER NOT NULL              -- bytes mapped
);

CREATE TABLE call_path (
  id        INTEGER PRIMARY KEY,
  rank      INTEGER NOT NULL,
  truncated INTEGER NOT NULL             -- 1 when LAPSCOPE_CALLPATH_DEPTH cut it
);

CREATE TABLE frame (                     -- a return address of a call path
  call_path_id INTEGER NOT NULL,
  depth        INTEGER NOT NULL,  -- 0 is the caller of MPI
  module_id    INTEGER,           -- NULL outside every module
  address      INTEGER NOT NULL,  -- in the module's own numbering (run-time address minus module.base)
  PRIMARY KEY (call_path_id, depth)
) WITHOUT ROWID;

CREATE TABLE communicator (
  id          INTEGER PRIMARY KEY,
  rank        INTEGER NOT NULL,
  identity    INTEGER NOT NULL,          -- the same on all its members: hash of its world ranks in order
  ordinal     INTEGER NOT NULL,          -- how many of that identity this rank had made before
  kind        TEXT    NOT NULL,          -- intra, inter
  size        INTEGER NOT NULL,          -- of the local group
  remote_size INTEGER NOT NULL,          -- of the remote group; 0 for intra
  comm_rank   INTEGER NOT NULL,          -- of this rank in it
  name        TEXT    NOT NULL           -- MPI_COMM_WORLD, MPI_COMM_SELF; else the call that made it
);

CREATE TABLE communicator_member (       -- left out where world rank = comm_rank for all members
  communicator_id INTEGER NOT NULL,
  remote          INTEGER NOT NULL,      -- 1 in the remote group of an inter-communicator
  comm_rank       INTEGER NOT NULL,
  world_rank      INTEGER,               -- NULL when not in MPI_COMM_WORLD (spawned)
  PRIMARY KEY (communicator_id, remote, comm_rank)
) WITHOUT ROWID;

-- What repeats: one row for each distinct combination, which many request and call rows share.
CREATE TABLE operation (
  id                   INTEGER PRIMARY KEY,
  rank                 INTEGER NOT NULL,
  call_id              INTEGER NOT NULL,  -- call_name.id
  call_path_id         INTEGER,           -- call_path.id of the post or of the blocking call; NULL with LAPSCOPE_CALLPATH=off
  communicator_id      INTEGER,
  kind                 TEXT NOT NULL CHECK (kind IN ('send', 'recv', 'collective', 'rma', 'io', 'generalized', 'other')),
  bytes                INTEGER NOT NULL,  -- transferred: count times datatype size; a receive's actual size
  peer                 INTEGER,           -- world rank: destination, actual source; root of a rooted collective; NULL unknown
  tag                  INTEGER,           -- actual tag; NULL for collectives
  posted_peer          INTEGER,           -- comm_rank as the application gave it; -1 MPI_ANY_SOURCE, -2 MPI_PROC_NULL
  posted_tag           INTEGER,           -- as given; -1 MPI_ANY_TAG
  posted_bytes         INTEGER NOT NULL,  -- as given: for a receive, the room in the buffer
  ended                TEXT,              -- requests: waited, tested, freed, cancelled, failed, pending; NULL for calls
  init_operation_id    INTEGER,           -- of MPI_Start and MPI_Startall: operation.id of the call that made the persistent request
  receive_operation_id INTEGER            -- of requests that also receive (MPI_Isendrecv): operation.id of that half
);

CREATE TABLE call (                      -- a call that blocked, completed something, or managed communicators
  id                   INTEGER PRIMARY KEY,  -- in the order in which each thread's calls ended
  operation_id         INTEGER NOT NULL,
  thread_id            INTEGER NOT NULL,
  begin_ns             INTEGER NOT NULL,
  duration_ns          INTEGER,          -- NULL: had not returned when the process ended
  user_ns              INTEGER,          -- CPU time of the thread in the program and its libraries; NULL unless LAPSCOPE_CPU_TIME=on
  system_ns            INTEGER,          -- CPU time of the thread in the kernel; likewise
  completed            INTEGER NOT NULL, -- requests that it completed
  receive_operation_id INTEGER           -- the receiving half of MPI_Sendrecv
);

CREATE TABLE request (                   -- one request, from post to end; ordered by completion_id
  id                         INTEGER PRIMARY KEY,
  operation_id               INTEGER NOT NULL,
  completion_id              INTEGER,           -- call.id of the call that ended it; NULL: never ended
  thread_id                  INTEGER NOT NULL,  -- that posted it
  post_begin_ns              INTEGER NOT NULL,
  post_ns                    INTEGER NOT NULL,  -- time in the posting call
  mpi_ns                     INTEGER,           -- time of the posting thread inside other MPI calls between the post and the completing call; NULL when another thread completed it
  outstanding_bytes          INTEGER NOT NULL,  -- bytes of earlier sends to that peer not yet complete at the post; 0 for receives
  unsuccessful_tests         INTEGER NOT NULL,  -- unsuccessful tests that covered it
  first_unsuccessful_test_ns INTEGER,           -- since post_begin_ns
  last_unsuccessful_test_ns  INTEGER,           -- since post_begin_ns
  last_incomplete_ns         INTEGER,           -- since post_begin_ns: last time it was itself seen incomplete (MPI_Testall over several tells nothing of one)
  first_complete_ns          INTEGER,           -- since post_begin_ns: first time a test saw it complete without ending it (MPI_Request_get_status)
  injection_arm              INTEGER            -- NULL: lapscope injects nothing for it; 0 it would, but not in this slot of an A/B run; 1 it does
);

CREATE TABLE open_wait (                 -- requests that a call which never returned had been given, to wait for them or test them
  call_row_id INTEGER NOT NULL,          -- call.id
  request_id  INTEGER NOT NULL,          -- request.id
  certain     INTEGER NOT NULL,          -- 0: the handles of several requests were last seen at the same place, and it was given one of these
  PRIMARY KEY (call_row_id, request_id)
) WITHOUT ROWID;

CREATE TABLE counter (                   -- what LAPSCOPE_COUNTERS asked for
  rank        INTEGER NOT NULL,
  number      INTEGER NOT NULL,          -- from 0, in the order in which they were asked for
  name        TEXT    NOT NULL,          -- as PAPI has it
  description TEXT    NOT NULL,          -- PAPI's; may be empty
  unit        TEXT    NOT NULL,          -- PAPI's; empty: plain counts
  problem     TEXT,                      -- why it could not be counted; NULL: it was
  PRIMARY KEY (rank, number)
) WITHOUT ROWID;

CREATE TABLE call_counter (              -- what was counted on the calling thread during a call
  call_row_id INTEGER NOT NULL,          -- call.id
  number      INTEGER NOT NULL,          -- counter.number
  value       INTEGER NOT NULL,
  PRIMARY KEY (call_row_id, number)
) WITHOUT ROWID;

CREATE TABLE request_counter (           -- what was computed while a request was under way: counted on the posting thread outside of MPI, from the end of the post to the begin of the completing call
  request_id  INTEGER NOT NULL,
  number      INTEGER NOT NULL,          -- counter.number
  value       INTEGER NOT NULL,
  PRIMARY KEY (request_id, number)
) WITHOUT ROWID;

CREATE TABLE detail (                    -- where a rank recorded rows, when it did not all the time: in slots of the wall clock, drawn alike on all ranks
  rank        INTEGER NOT NULL,
  slot        INTEGER NOT NULL,          -- number of the slot: the same on all ranks
  stage       INTEGER NOT NULL,          -- 0: all from the begin of the recording on; k: slots drawn with probability 4^-k, those of a later stage among those of an earlier one
  begin_ns    INTEGER NOT NULL,
  end_ns      INTEGER NOT NULL,
  cut         INTEGER NOT NULL           -- 1: it was given up before the slot's end, as room ran short
);

CREATE TABLE left_out (                  -- messages and collectives without a row, where rows of the same may follow: so that the k-th send is still known from the k-th
  operation_id INTEGER NOT NULL,
  count        INTEGER NOT NULL,
  begin_ns     INTEGER NOT NULL,         -- the first of these posts, or begins of blocking calls
  end_ns       INTEGER NOT NULL          -- the last of them
);

CREATE TABLE mark (                      -- calls of MPI_Pcontrol that mark something, of each thread in the order of time
  rank         INTEGER NOT NULL,
  thread_id    INTEGER NOT NULL,
  begin_ns     INTEGER NOT NULL,
  level        INTEGER NOT NULL,         -- 1: a region begins; -1: it ends; 2: a step begins; 0: recording is paused for the first time
  name         TEXT                      -- of the region: what stood behind the level; NULL: there was none
);

-- Calls that would be too many as rows: unsuccessful tests, and what is not in the rows of a run longer than LAPSCOPE_MAX_MB holds.
CREATE TABLE tally (
  rank              INTEGER NOT NULL,
  thread_id         INTEGER NOT NULL,
  call_id           INTEGER NOT NULL,
  call_path_id      INTEGER,
  reason            TEXT    NOT NULL CHECK (reason IN ('unsuccessful_test', 'summary')),
  size_class        INTEGER NOT NULL,  -- k: bytes in [2^(k-1), 2^k); 0: no bytes
  count             INTEGER NOT NULL,
  bytes             INTEGER NOT NULL,
  inside_ns         INTEGER NOT NULL,  -- time in these calls; requests: in the posting calls
  exposed_ns        INTEGER NOT NULL,  -- requests: their share of the completing calls (duration / requests completed)
  mpi_ns            INTEGER NOT NULL,  -- requests: sum of request.mpi_ns
  overlap_window_ns INTEGER NOT NULL   -- requests: sum of the time from the end of the post to the begin of the completing call
);

CREATE TABLE injector (                  -- a rank that LAPSCOPE_INJECT asked to make tests of its own
  rank          INTEGER PRIMARY KEY,
  mode          TEXT    NOT NULL,        -- calls, timer, thread, auto; sends: nothing is injected, sends are copied in slots
  problem       TEXT,                    -- why it injected nothing, or stopped; NULL: there was none
  clock         TEXT,                    -- what interrupts the program under timer: perf, cputime
  ab_slot_ns    INTEGER,                 -- length of the slots of CLOCK_REALTIME that are on or off; NULL without LAPSCOPE_INJECT_AB
  test_ns       INTEGER,                 -- a test that finds nothing
  interrupt_ns  INTEGER,                 -- an interrupt without a test: the kernel's part and ours
  check_ns      INTEGER,                 -- finding out whether MPI may be entered where the program was interrupted
  spent_ns      INTEGER NOT NULL,        -- cost so far that bought nothing: interrupts, and tests as far as they found nothing
  automatic     TEXT                     -- mode auto: what was tried and decided, JSON as in auto-HOST.jsonl; NULL otherwise
);

CREATE TABLE injection (                 -- what was injected while requests of a call site were pending; with several, the latest posted
  rank         INTEGER NOT NULL,
  thread_id    INTEGER NOT NULL,  -- that posted them
  call_id      INTEGER NOT NULL,
  call_path_id INTEGER,           -- call_path.id of the post
  policy       INTEGER NOT NULL,  -- 0: LAPSCOPE_INJECT_POLICY switches it off
  requests     INTEGER NOT NULL,  -- requests posted with injection on
  tests        INTEGER NOT NULL,
  found        INTEGER NOT NULL,  -- tests that moved something, by the time that they took
  test_ns      INTEGER NOT NULL,  -- in all tests
  idle_ns      INTEGER NOT NULL,  -- in tests that found nothing
  interrupts   INTEGER NOT NULL,
  deferred     INTEGER NOT NULL,  -- interrupts at places where MPI could not be entered
  interrupt_ns INTEGER NOT NULL   -- in interrupts, tests left out
);

CREATE TABLE copied_sends (              -- a rank on which LAPSCOPE_BUFFER_SENDS had sends go from copies
  rank          INTEGER PRIMARY KEY,
  problem       TEXT,                    -- why it copied nothing from some moment on; NULL: there was no problem
  ab_slot_ns    INTEGER,                 -- length of the slots of CLOCK_REALTIME that are on or off; NULL without LAPSCOPE_INJECT_AB
  limit_bytes   INTEGER NOT NULL,        -- LAPSCOPE_BUFFER_SENDS: larger ones were not looked at
  sends         INTEGER NOT NULL,        -- that went from a copy
  bytes         INTEGER NOT NULL,        -- of them
  at_once       INTEGER NOT NULL,        -- of them: complete when they were posted; the others might have blocked
  no_memory     INTEGER NOT NULL,        -- that went as they were, because LAPSCOPE_BUFFER_SENDS_MB was in use
  datatype      INTEGER NOT NULL,        -- that went as they were, because their data could not be copied
  most_bytes    INTEGER NOT NULL,        -- memory of copies under way, the most at once
  at_finalize   INTEGER NOT NULL,        -- copies under way when the program called MPI_Finalize
  failed        INTEGER NOT NULL         -- copies that MPI could not complete
);

CREATE TABLE watcher (                   -- a rank that LAPSCOPE_REACH asked to watch buffers
  rank         INTEGER PRIMARY KEY,
  problem      TEXT,                     -- why it watched nothing, or stopped; NULL: there was none
  words        INTEGER NOT NULL,         -- words that a thread could watch at once
  hit_ns       INTEGER,                  -- what an access to a watched word costs the program, measured at the start
  set_ns       INTEGER,                  -- what watching a word, and letting it go, costs; likewise
  spent_ns     INTEGER NOT NULL,         -- cost so far
  other_cpu_ns INTEGER                   -- CPU time of threads on which nothing was watched, as they made no MPI call: what they touched was not seen; NULL: not known
);

CREATE TABLE watch_left_out (            -- buffers that were sent or received and not watched
  rank         INTEGER NOT NULL,
  reason       TEXT    NOT NULL,         -- see README.md; further ones may come without another format
  buffers      INTEGER NOT NULL,
  PRIMARY KEY (rank, reason)
) WITHOUT ROWID;

CREATE TABLE watch (                     -- a word of a buffer, from the moment at which MPI let go of the buffer
  id            INTEGER PRIMARY KEY,
  operation_id  INTEGER NOT NULL,        -- that sent or received the buffer: the request's as posted, or the blocking call's
  thread_id     INTEGER NOT NULL,        -- that posted it, or made the blocking call
  side          TEXT    NOT NULL CHECK (side IN ('send', 'receive')),
  begin_ns      INTEGER NOT NULL,        -- request.post_begin_ns, or call.begin_ns of a blocking call: with thread_id it says which row
  edge_begin_ns INTEGER NOT NULL,        -- sends: begin_ns; receives: when the call that completed it returned
  buffer_bytes  INTEGER NOT NULL,        -- from the buffer's first byte to its last
  offset        INTEGER NOT NULL,        -- of the word in it
  result        TEXT    NOT NULL CHECK (result IN ('touched', 'untouched', 'often')),
  away_ns       INTEGER NOT NULL,        -- touched: from the last write to the post, or from completion to the first touch. untouched: at least; as long as it was watched. often (sends): at most; from the last write that was counted to the post
  away_mpi_ns   INTEGER NOT NULL,        -- of it, the thread was inside MPI
  hits          INTEGER NOT NULL,        -- accesses seen
  toucher       TEXT CHECK (toucher IN ('program', 'mpi')),  -- NULL: untouched. mpi: inside an MPI call, which call_path_id then is
  call_path_id  INTEGER,                 -- of the instruction behind the one that touched: depth 0 is it, further frames where they were certain
  let_go        TEXT CHECK (let_go IN ('reused', 'ended', 'late', 'stack')),  -- untouched receives: another call took the buffer; MPI_Finalize; watched long enough; the function that had it on its stack returned
  on_stack      INTEGER NOT NULL,        -- 1: the buffer is on the thread's stack: once its function returned, others may touch the same words
  sparse        INTEGER NOT NULL,        -- 1: its datatype has gaps: words are of the first and last bytes of elements only
  copy_path_id  INTEGER                  -- NULL: the buffer itself. Else one step further: the instruction that copied the buffer's word, as call_path_id has them: receives: watched was where it copied to; sends: what it copied from
);
