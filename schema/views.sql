-- Metrics that SQL can say, so that `sqlite3 rank-0.db` and the command line agree. Definitions: README.md.

CREATE VIEW requests AS                  -- every request with its operation spelled out; begin and end in ns since the rank's epoch
SELECT r.id, o.rank, t.number AS thread, n.name AS call, o.kind, o.bytes, o.peer, o.tag, o.communicator_id, o.call_path_id,
       r.post_begin_ns, r.post_begin_ns + r.post_ns AS post_end_ns,
       c.begin_ns AS completion_begin_ns, c.begin_ns + c.duration_ns AS completion_end_ns,
       r.post_ns, c.begin_ns - r.post_begin_ns - r.post_ns AS overlap_window_ns, r.mpi_ns,
       c.begin_ns - r.post_begin_ns - r.post_ns - r.mpi_ns AS compute_ns,
       c.duration_ns AS completion_ns, c.completed AS completed_together,
       cn.name AS completion_call, co.call_path_id AS completion_call_path_id, r.completion_id,
       r.outstanding_bytes, r.unsuccessful_tests, r.first_unsuccessful_test_ns, r.last_unsuccessful_test_ns, r.last_incomplete_ns, r.first_complete_ns,
       o.ended, o.posted_peer, o.posted_tag, o.posted_bytes, r.injection_arm, m.memory
FROM request r JOIN operation o ON o.id = r.operation_id JOIN call_name n ON n.id = o.call_id
     JOIN thread t ON t.id = r.thread_id
     LEFT JOIN call c ON c.id = r.completion_id LEFT JOIN operation co ON co.id = c.operation_id
     LEFT JOIN call_name cn ON cn.id = co.call_id LEFT JOIN request_memory m ON m.request_id = r.id;

CREATE VIEW calls AS                     -- every call row with its operation spelled out
SELECT c.id, o.rank, t.number AS thread, n.name AS call, n.family, n.role, o.kind, o.bytes, o.peer, o.tag,
       o.communicator_id, o.call_path_id, c.begin_ns, c.begin_ns + c.duration_ns AS end_ns, c.duration_ns, c.user_ns, c.system_ns,
       c.completed,
       ro.peer AS receive_peer, ro.tag AS receive_tag, ro.bytes AS receive_bytes, o.posted_peer, o.posted_tag, o.posted_bytes
FROM call c JOIN operation o ON o.id = c.operation_id JOIN call_name n ON n.id = o.call_id
     JOIN thread t ON t.id = c.thread_id LEFT JOIN operation ro ON ro.id = c.receive_operation_id;

CREATE VIEW pending AS                   -- what had not ended when the process did: requests, and the calls it was inside of
SELECT rank, thread, 'request' AS what, call, peer, tag, bytes, communicator_id, call_path_id, post_begin_ns AS begin_ns
FROM requests WHERE completion_id IS NULL
UNION ALL
SELECT rank, thread, 'call', call, peer, tag, bytes, communicator_id, call_path_id, begin_ns
FROM calls WHERE duration_ns IS NULL;

CREATE VIEW time_by_call AS              -- where a rank's MPI time went; each nanosecond once
SELECT rank, call, sum(count) AS count, sum(ns) AS ns FROM (
  SELECT o.rank, n.name AS call, 1 AS count, c.duration_ns AS ns
  FROM call c JOIN operation o ON o.id = c.operation_id JOIN call_name n ON n.id = o.call_id
  UNION ALL
  SELECT o.rank, n.name, 1, r.post_ns
  FROM request r JOIN operation o ON o.id = r.operation_id JOIN call_name n ON n.id = o.call_id
  UNION ALL
  SELECT t.rank, n.name, t.count, t.inside_ns FROM tally t JOIN call_name n ON n.id = t.call_id)
GROUP BY rank, call;

CREATE VIEW python_lines AS              -- frames that are lines of Python; line and column from 1, 0 where they are not known
SELECT f.call_path_id, f.depth, substr(m.build_id, length('python:') + 1) AS function, m.path AS file,
       f.address >> 12 AS line, f.address & 4095 AS column
FROM frame f JOIN module m ON m.id = f.module_id WHERE m.build_id LIKE 'python:%';
