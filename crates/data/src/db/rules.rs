//! What values a column may have, for every table, once: of this are made the check of a file that is opened, and that of
//! the rows that `lapscope merge` copies. Rows of the big tables are checked by their types as they are read (`check`).

use crate::model::bounds::{LATEST_EPOCH_NS, LONGEST_NS, MOST, MOST_BYTES, MOST_ROWS};

/// What a column may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rule {
    /// A duration or a moment since the rank's epoch.
    Time,
    /// A sum of differences of times: they may be negative.
    TimeSum,
    /// A moment since 1970, or since a host was started.
    Epoch,
    /// Calls, requests, tests.
    Count,
    /// Sizes, and sums of them.
    Bytes,
    /// A number that has to fit into 32 bits: of ranks, of a place.
    Number,
    /// As `Number`, and not 0.
    Ordinal,
    /// 0 or 1.
    Flag,
    /// A class of sizes of 64 bits.
    SizeClass,
    /// A number of 32 bits of either sign.
    Level,
    /// Any integer.
    Integer,
    Text,
    Word(&'static [&'static str]),
    /// A row of that table.
    Row(&'static str),
    /// The key of a rank.
    Rank,
    /// Only of the table itself: SQLite's key.
    Key,
}

use Rule::{
    Bytes, Count, Epoch, Flag, Integer, Key, Level, Number, Ordinal, Rank, Row, SizeClass, Text,
    Time, TimeSum, Word,
};

/// A column: its name, with `?` behind it where NULL is a value, and what it may hold.
pub type ColumnRule = (&'static str, Rule);

const OPERATION: Rule = Row("operation");
const PATH: Rule = Row("call_path");
const THREAD: Rule = Row("thread");
const CALL_NAME: Rule = Row("call_name");
const KINDS: Rule = Word(&["send", "recv", "collective", "rma", "io", "generalized", "other"]);
const ENDS: Rule = Word(&["waited", "tested", "freed", "cancelled", "failed", "pending"]);
const SETTING: &[ColumnRule] = &[("rank", Rank), ("name", Text), ("value", Text)];

/// Tables, smallest first, and their columns. What is not here is only printed.
pub const TABLES: &[(&str, &[ColumnRule])] = &[
    (
        "rank",
        &[
            ("rank", Number),
            ("world", Ordinal),
            ("world_rank", Number),
            ("life", Ordinal),
            ("world_size", Ordinal),
            ("host", Text),
            ("pid", Integer),
            ("command", Text),
            ("executable", Text),
            ("mpi_abi", Text),
            ("mpi_library", Text),
            ("mpi_standard", Text),
            ("thread_level", Integer),
            ("lapscope_version", Text),
            ("job", Text),
            ("epoch_ns", Epoch),
            ("epoch_unix_ns", Epoch),
            ("init_end_ns", Time),
            ("end_ns", Time),
            ("ended", Word(&["finalize", "abort", "exit", "killed"])),
            ("lost_records", Count),
            ("unknown_requests", Count),
            ("summarized", Number),
            ("gone_ns?", Time),
        ],
    ),
    (
        "processor",
        &[
            ("rank", Rank),
            ("run_ns", Time),
            ("wait_ns", Time),
            ("switches", Count),
            ("preemptions", Count),
            ("allowed", Number),
            ("online", Number),
        ],
    ),
    ("starvation", &[("rank", Rank), ("begin_ns", Time), ("end_ns", Time), ("wait_ns", Time)]),
    (
        "call_name",
        &[
            ("id", Key),
            ("name", Text),
            ("family", Text),
            ("role", Text),
            ("usual_kind", Text),
            ("transfers?", Text),
            ("mode?", Text),
            ("counted", Flag),
            ("needs?", Text),
            ("completes?", Text),
            ("blocking", Text),
        ],
    ),
    ("option", SETTING),
    ("environment", SETTING),
    ("cvar", SETTING),
    (
        "thread",
        &[
            ("id", Key),
            ("rank", Rank),
            ("number", Number),
            ("tid", Integer),
            ("mpi_ns", Time),
            ("calls", Count),
        ],
    ),
    ("module", &[("id", Key), ("rank", Rank), ("path", Text), ("build_id", Text)]),
    ("call_path", &[("id", Key), ("rank", Rank), ("truncated", Flag)]),
    (
        "frame",
        &[
            ("call_path_id", PATH),
            ("depth", Number),
            ("module_id?", Row("module")),
            ("address", Integer),
        ],
    ),
    (
        "communicator",
        &[
            ("id", Key),
            ("rank", Rank),
            ("identity", Integer),
            ("ordinal", Number),
            ("kind", Word(&["intra", "inter"])),
            ("size", Number),
            ("remote_size", Number),
            ("comm_rank", Number),
            ("name", Text),
        ],
    ),
    (
        "communicator_member",
        &[
            ("communicator_id", Row("communicator")),
            ("remote", Flag),
            ("comm_rank", Number),
            ("world_rank?", Number),
        ],
    ),
    (
        "counter",
        &[
            ("rank", Rank),
            ("number", Number),
            ("name", Text),
            ("description", Text),
            ("unit", Text),
            ("problem?", Text),
        ],
    ),
    (
        "tally",
        &[
            ("rank", Rank),
            ("thread_id", THREAD),
            ("call_id", CALL_NAME),
            ("call_path_id?", PATH),
            ("reason", Word(&["unsuccessful_test", "summary"])),
            ("size_class", SizeClass),
            ("count", Count),
            ("bytes", Bytes),
            ("inside_ns", Time),
            ("exposed_ns", Time),
            ("mpi_ns", TimeSum),
            ("overlap_window_ns", TimeSum),
        ],
    ),
    (
        "copied_sends",
        &[
            ("rank", Rank),
            ("problem?", Text),
            ("ab_slot_ns?", Time),
            ("limit_bytes", Bytes),
            ("sends", Count),
            ("bytes", Bytes),
            ("at_once", Count),
            ("no_memory", Count),
            ("datatype", Count),
            ("most_bytes", Bytes),
            ("at_finalize", Count),
            ("failed", Count),
        ],
    ),
    (
        "injector",
        &[
            ("rank", Rank),
            ("mode", Text),
            ("problem?", Text),
            ("clock?", Text),
            ("ab_slot_ns?", Time),
            ("test_ns?", Time),
            ("interrupt_ns?", Time),
            ("check_ns?", Time),
            ("spent_ns", Time),
            ("automatic?", Text),
        ],
    ),
    (
        "injection",
        &[
            ("rank", Rank),
            ("thread_id", THREAD),
            ("call_id", CALL_NAME),
            ("call_path_id?", PATH),
            ("policy", Flag),
            ("requests", Count),
            ("tests", Count),
            ("found", Count),
            ("test_ns", Time),
            ("idle_ns", Time),
            ("interrupts", Count),
            ("deferred", Count),
            ("interrupt_ns", Time),
        ],
    ),
    (
        "operation",
        &[
            ("id", Key),
            ("rank", Rank),
            ("call_id", CALL_NAME),
            ("call_path_id?", PATH),
            ("communicator_id?", Row("communicator")),
            ("kind", KINDS),
            ("bytes", Bytes),
            ("peer?", Number),
            ("tag?", Integer),
            ("posted_peer?", Integer),
            ("posted_tag?", Integer),
            ("posted_bytes", Bytes),
            ("ended?", ENDS),
            ("init_operation_id?", OPERATION),
            ("receive_operation_id?", OPERATION),
        ],
    ),
    (
        "watcher",
        &[
            ("rank", Rank),
            ("problem?", Text),
            ("words", Number),
            ("hit_ns?", Time),
            ("set_ns?", Time),
            ("spent_ns", Time),
            ("other_cpu_ns?", Time),
        ],
    ),
    (
        "detail",
        &[
            ("rank", Rank),
            ("slot", Count),
            ("stage", Number),
            ("begin_ns", Time),
            ("end_ns", Time),
            ("cut", Flag),
        ],
    ),
    (
        "left_out",
        &[("operation_id", OPERATION), ("count", Count), ("begin_ns", Time), ("end_ns", Time)],
    ),
    (
        "mark",
        &[
            ("rank", Rank),
            ("thread_id", THREAD),
            ("begin_ns", Time),
            ("level", Level),
            ("name?", Text),
        ],
    ),
    ("watch_left_out", &[("rank", Rank), ("reason", Text), ("buffers", Count)]),
    (
        "watch",
        &[
            ("id", Key),
            ("operation_id", OPERATION),
            ("thread_id", THREAD),
            ("side", Word(&["send", "receive"])),
            ("begin_ns", Time),
            ("edge_begin_ns", Time),
            ("buffer_bytes", Bytes),
            ("offset", Bytes),
            ("result", Word(&["touched", "untouched", "often"])),
            ("away_ns", Time),
            ("away_mpi_ns", Time),
            ("hits", Count),
            ("toucher?", Word(&["program", "mpi"])),
            ("call_path_id?", PATH),
            ("let_go?", Word(&["reused", "ended", "late", "stack"])),
            ("on_stack", Flag),
            ("sparse", Flag),
            ("copy_path_id?", PATH),
        ],
    ),
];

/// The tables that are checked row by row as they are read.
pub const BIG_TABLES: &[(&str, &[ColumnRule])] = &[
    (
        "call",
        &[
            ("id", Key),
            ("operation_id", OPERATION),
            ("thread_id", THREAD),
            ("begin_ns", Time),
            ("duration_ns?", Time),
            ("user_ns?", Time),
            ("system_ns?", Time),
            ("completed", Count),
            ("receive_operation_id?", OPERATION),
        ],
    ),
    (
        "request",
        &[
            ("id", Key),
            ("operation_id", OPERATION),
            ("completion_id?", Row("call")),
            ("thread_id", THREAD),
            ("post_begin_ns", Time),
            ("post_ns", Time),
            ("mpi_ns?", Time),
            ("outstanding_bytes", Bytes),
            ("unsuccessful_tests", Count),
            ("first_unsuccessful_test_ns?", Time),
            ("last_unsuccessful_test_ns?", Time),
            ("last_incomplete_ns?", Time),
            ("first_complete_ns?", Time),
            ("injection_arm?", Flag),
        ],
    ),
    (
        "open_wait",
        &[("call_row_id", Row("call")), ("request_id", Row("request")), ("certain", Flag)],
    ),
    ("call_counter", &[("call_row_id", Row("call")), ("number", Number), ("value", Integer)]),
    ("request_counter", &[("request_id", Row("request")), ("number", Number), ("value", Integer)]),
];

impl Rule {
    /// The least and the greatest integer that it lets through; `None` where that does not tell all, or it is no integer.
    pub fn bounds(self) -> Option<(i64, i64)> {
        match self {
            Time => Some((0, LONGEST_NS)),
            TimeSum => Some((-LONGEST_NS, LONGEST_NS)),
            Epoch => Some((0, LATEST_EPOCH_NS)),
            Count => Some((0, MOST)),
            Bytes => Some((0, MOST_BYTES)),
            Number => Some((0, i64::from(i32::MAX))),
            Ordinal => Some((1, i64::from(i32::MAX))),
            Flag => Some((0, 1)),
            SizeClass => Some((0, 64)),
            Level => Some((i64::from(i32::MIN), i64::from(i32::MAX))),
            Key => Some((0, MOST_ROWS)),
            Integer => Some((i64::MIN, i64::MAX)),
            Text | Word(_) | Row(_) | Rank => None,
        }
    }

    /// SQL that is true where `column` of a table in `schema` is as it should be.
    fn holds(self, schema: &str, column: &str) -> String {
        if let Some((least, most)) = self.bounds() {
            let is_integer = format!("typeof({column}) = 'integer'");
            return match (least, most) {
                (i64::MIN, i64::MAX) => is_integer,
                _ => format!("{is_integer} AND {column} BETWEEN {least} AND {most}"),
            };
        }
        match self {
            Word(words) => {
                let words: Vec<String> = words.iter().map(|word| format!("'{word}'")).collect();
                format!("{column} IN ({})", words.join(", "))
            }
            Row(table) => format!("{column} IN (SELECT id FROM {schema}.{table})"),
            Rank => format!("{column} IN (SELECT rank FROM {schema}.rank)"),
            _ => format!("typeof({column}) = 'text'"),
        }
    }
}

/// SQL that is true where everything in a row is as it should be, and one that names the first column that is not.
pub fn conditions(schema: &str, columns: &[ColumnRule]) -> (String, String) {
    let each: Vec<(&str, String)> = columns
        .iter()
        .map(|(name, rule)| match name.strip_suffix('?') {
            Some(name) => (name, format!("({name} IS NULL OR {})", rule.holds(schema, name))),
            None => (*name, format!("({})", rule.holds(schema, name))),
        })
        .collect();
    let all: Vec<&str> = each.iter().map(|(_, condition)| condition.as_str()).collect();
    let cases: Vec<String> = each
        .iter()
        .map(|(name, condition)| format!("WHEN ({condition}) IS NOT TRUE THEN '{name}'"))
        .collect();
    (all.join(" AND "), format!("CASE {} END", cases.join(" ")))
}

/// What is wrong about a value that breaks the rule of its column, for people.
pub fn describe(table: &str, column: &str) -> String {
    let columns = TABLES.iter().chain(BIG_TABLES).find(|(name, _)| *name == table);
    let rule = columns.and_then(|(_, columns)| {
        columns.iter().find(|(name, _)| name.trim_end_matches('?') == column)
    });
    match rule.map(|(_, rule)| *rule) {
        Some(Time) => "a time from 0 to 2^56 ns, 2 years, is expected".to_owned(),
        Some(TimeSum) => "a sum of times up to 2^56 ns, 2 years, is expected".to_owned(),
        Some(Epoch) => "a moment up to the year 2190 is expected".to_owned(),
        Some(Count) => format!("a number from 0 to {MOST} is expected"),
        Some(Bytes) => format!("a number from 0 to {MOST_BYTES} is expected"),
        Some(Number) => "a number from 0 to 2147483647 is expected".to_owned(),
        Some(Ordinal) => "a number from 1 to 2147483647 is expected".to_owned(),
        Some(SizeClass) => "a number from 0 to 64 is expected".to_owned(),
        Some(Level) => "a number of 32 bits is expected".to_owned(),
        Some(Flag) => "0 or 1 is expected".to_owned(),
        Some(Key) => format!("a number from 0 to {MOST_ROWS} is expected"),
        Some(Integer) => "a whole number is expected".to_owned(),
        Some(Text) => "text is expected".to_owned(),
        Some(Word(words)) => format!("one of {} is expected", words.join(", ")),
        Some(Row(of)) => format!("there is no such row in {of}"),
        Some(Rank) => "there is no such rank in the file".to_owned(),
        None => "it cannot be".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema;

    /// A table or column that nobody told the rules about would be believed.
    #[test]
    fn every_table_has_rules_and_their_columns_exist() {
        let relations = schema::relations().unwrap();
        for relation in relations.iter().filter(|relation| relation.kind == "table") {
            let rules = TABLES.iter().chain(BIG_TABLES).find(|(name, _)| *name == relation.name);
            let (name, columns) = rules.unwrap_or_else(|| panic!("{}: no rules", relation.name));
            let known = relation.column_names();
            for (column, _) in *columns {
                let column = column.trim_end_matches('?').to_owned();
                assert!(known.contains(&column), "{name}.{column}");
            }
            let (some, all) = (columns.len(), known.len());
            assert!(some == all || ["rank", "option", "module"].contains(name), "{name}");
        }
    }
}
