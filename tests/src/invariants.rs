//! What holds in every database, whatever the program did.

use lapscope_data::db::USER_VERSION;
use rusqlite::Connection;

use crate::rows::value;

/// Each query counts the rows that break its rule.
const RULES: &[(&str, &str)] = &[
    ("no record is lost", "SELECT count(*) FROM rank WHERE lost_records <> 0"),
    ("a request's post and end are in order", "SELECT count(*) FROM requests WHERE post_ns < 0 OR overlap_window_ns < 0"),
    (
        "a request's times inside MPI fit between its post and its end",
        "SELECT count(*) FROM requests WHERE mpi_ns < 0 OR mpi_ns > overlap_window_ns",
    ),
    (
        LAST_CALL,
        "SELECT count(*) FROM call c
         LEFT JOIN (SELECT completion_id, count(*) AS rows FROM request GROUP BY completion_id) r ON r.completion_id = c.id
         WHERE c.completed < coalesce(r.rows, 0)
            OR c.completed > coalesce(r.rows, 0) AND (SELECT max(summarized) FROM rank) = 0",
    ),
    (
        "a request that ended names the call that ended it, and only such a one",
        "SELECT count(*) FROM requests WHERE (ended = 'pending') <> (completion_id IS NULL) OR ended IS NULL",
    ),
    ("calls have no way to end", "SELECT count(*) FROM calls WHERE duration_ns < 0 OR begin_ns < 0"),
    (
        "a thread's calls follow each other",
        "SELECT count(*) FROM (SELECT begin_ns, lag(begin_ns + duration_ns)
            OVER (PARTITION BY thread_id ORDER BY id) AS before FROM call) WHERE begin_ns < before",
    ),
    (
        "requests are in the order of their ends",
        "SELECT count(*) FROM (SELECT completion_id, lag(completion_id) OVER (ORDER BY id) AS before FROM request)
         WHERE completion_id < before",
    ),
    (
        "unsuccessful tests have a first and a last",
        "SELECT count(*) FROM request WHERE (unsuccessful_tests = 0) <> (first_unsuccessful_test_ns IS NULL) OR first_unsuccessful_test_ns > last_unsuccessful_test_ns
            OR last_incomplete_ns > last_unsuccessful_test_ns",
    ),
    (
        "every row has a call path with frames, unless there are none at all",
        "SELECT count(*) FROM operation o WHERE EXISTS (SELECT 1 FROM call_path)
            AND NOT EXISTS (SELECT 1 FROM frame WHERE call_path_id = o.call_path_id)",
    ),
    (
        "frames lie in modules of their rank",
        "SELECT count(*) FROM frame f JOIN call_path p ON p.id = f.call_path_id LEFT JOIN module m ON m.id = f.module_id
         WHERE f.depth = 0 AND (m.id IS NULL OR m.rank <> p.rank OR m.path = '')
            AND p.id NOT IN (SELECT call_path_id FROM sample)", // the library may be gone when samples are read
    ),
    (
        "communicators and threads are defined",
        "SELECT (SELECT count(*) FROM operation WHERE communicator_id NOT IN (SELECT id FROM communicator))
              + (SELECT count(*) FROM request WHERE thread_id NOT IN (SELECT id FROM thread))
              + (SELECT count(*) FROM call WHERE thread_id NOT IN (SELECT id FROM thread))",
    ),
    (
        "a message that came fits into the room that was given",
        "SELECT count(*) FROM operation WHERE kind = 'recv' AND bytes > posted_bytes AND call_id NOT IN
            (SELECT id FROM call_name WHERE role = 'PROBE')",
    ),
    (
        "peers are world ranks",
        "SELECT count(*) FROM operation o JOIN rank r ON r.rank = o.rank WHERE o.peer NOT BETWEEN 0 AND r.world_size - 1",
    ),
    (
        "a thread's time inside MPI is at least that of its calls",
        "SELECT count(*) FROM thread t WHERE t.mpi_ns * 1.001 + 100000 <
            (SELECT ifnull(sum(duration_ns), 0) FROM call WHERE thread_id = t.id)",
    ),
    (
        "injected tests that found something are some of them, and so are interrupts that came too early",
        "SELECT count(*) FROM injection WHERE found > tests OR idle_ns > test_ns OR deferred > interrupts",
    ),
    (
        "requests are injected for where an injector is, as often as it says, and not where the policy is against it",
        "SELECT (SELECT count(*) FROM request WHERE injection_arm IS NOT NULL AND NOT EXISTS (SELECT 1 FROM injector))
              + (SELECT count(*) FROM injection WHERE policy = 0 AND (requests > 0 OR tests > 0))
              + ((SELECT ifnull(sum(requests), 0) FROM injection) <> (SELECT count(*) FROM request WHERE injection_arm = 1))",
    ),
    (
        "a watched word lies in its buffer, and is of a rank that watches",
        "SELECT (SELECT count(*) FROM watch WHERE offset >= buffer_bytes)
              + (SELECT count(*) FROM watch w JOIN operation o ON o.id = w.operation_id WHERE o.rank NOT IN (SELECT rank FROM watcher))",
    ),
    (
        "a watched word was touched by somebody, or was not touched",
        "SELECT count(*) FROM watch WHERE (result = 'untouched') <> (toucher IS NULL)
            OR (hits = 0 AND toucher = 'program') OR (result = 'often' AND side <> 'send') OR (let_go IS NOT NULL AND result <> 'untouched')",
    ),
    (
        "the times of a watched word are in order",
        "SELECT count(*) FROM watch WHERE away_mpi_ns > away_ns OR edge_begin_ns < begin_ns OR (side = 'send' AND edge_begin_ns <> begin_ns)",
    ),
    (
        "a watched word is of a request or a call that is there",
        "SELECT count(*) FROM watch WHERE (thread_id, begin_ns) NOT IN (SELECT thread_id, post_begin_ns FROM request)
            AND (thread_id, begin_ns) NOT IN (SELECT thread_id, begin_ns FROM call)",
    ),
    (
        "what marks a region has a name, what marks a step or the first pause has none, and nothing else marks anything",
        "SELECT (SELECT max(0, count(*) - count(DISTINCT rank)) FROM mark WHERE level = 0) + count(*)
           FROM mark WHERE level NOT IN (-1, 0, 1, 2) OR (name IS NULL) <> (level IN (0, 2)) OR length(name) = 0
            OR thread_id NOT IN (SELECT id FROM thread)",
    ),
    (
        "a thread's marks are in order, from MPI_Init on",
        "SELECT (SELECT count(*) FROM (SELECT begin_ns, lag(begin_ns) OVER (PARTITION BY thread_id ORDER BY rowid) AS before FROM mark)
                 WHERE begin_ns < before)
              + (SELECT count(*) FROM mark m JOIN rank r ON r.rank = m.rank WHERE m.begin_ns < r.init_end_ns)",
    ),
    ("nothing was summarized", "SELECT count(*) FROM rank WHERE summarized <> 0"),
];

/// The rule that need not hold for the last call of a killed process, which it left between two of its records.
const LAST_CALL: &str =
    "a call says how many requests it completed, with those that a long run leaves out";

fn broken_rules(database: &Connection, left_out: &str) -> Result<(), String> {
    let mut broken = Vec::new();
    let sound = value(database, "PRAGMA integrity_check");
    if sound != "ok" {
        broken.push(format!("integrity: {sound}"));
    }
    let found = value(database, "PRAGMA user_version");
    if found != USER_VERSION.to_string() {
        broken.push(format!("the format is {found}, another than the schema's"));
    }
    for (rule, query) in RULES.iter().filter(|(rule, _)| *rule != left_out) {
        let count = value(database, query);
        if count != "0" {
            broken.push(format!("broken {count} times: {rule}"));
        }
    }
    if broken.is_empty() {
        Ok(())
    } else {
        Err(broken.join("\n"))
    }
}

/// Checks every rule; `Err` names those that are broken.
pub fn check(database: &Connection) -> Result<(), String> {
    broken_rules(database, "")
}

/// [`check`] for a process that was killed at any instant.
pub fn check_of_killed(database: &Connection) -> Result<(), String> {
    broken_rules(database, LAST_CALL)
}
