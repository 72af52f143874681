//! Records become rows. A record that has not been replaced since it was read costs a stat.

use std::collections::{HashMap, HashSet};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use rayon::prelude::*;
use rusqlite::{params, params_from_iter, Transaction, TransactionBehavior};

use super::node::{places, summed};
use super::walk::{read, walk, FileState};
use super::{JobTable, JobsDatabase, ListedNode, ListedSite, MERGE_JOB};
use crate::job::NodeRecord;

/// Records of a transaction: others wait for its end.
const BATCH: usize = 1000;

/// How far clocks of a node may be apart, in seconds, before a record is not believed.
const CLOCK_SLACK: f64 = 60.0;

/// Of one user and one identity: nodes are of one job as far as they ran at the same time. (Launchers name a job by the number of a
/// process, or of a port, which another one has later.)
const NODES_OF_JOBS: &str = "FROM (
    SELECT *, sum(is_first) OVER (ORDER BY began_unix_ns, host) AS launch FROM (
        SELECT *, coalesce(began_unix_ns > max(written_unix_ns) OVER (
            ORDER BY began_unix_ns, host ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 1) AS is_first
        FROM node WHERE user = ?1 AND job = ?2))
    GROUP BY launch";

/// What an import did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Imported {
    /// Records that are new, or have been replaced since they were read last.
    pub records: u64,
    pub unchanged: u64,
    /// What could not be read, each a sentence.
    pub problems: Vec<String>,
}

/// A record as rows.
struct NodeRows {
    node: ListedNode,
    sites: Vec<ListedSite>,
}

impl JobsDatabase {
    /// Takes over all records below `folders` that are new, or have been replaced, and are not older than asked for. `progress` is
    /// told how many there are, and each time how many more were read.
    ///
    /// # Errors
    /// The database cannot be written.
    pub fn import(
        &mut self,
        folders: &[PathBuf],
        since_unix_ns: Option<i64>,
        progress: &dyn Fn(u64, u64),
    ) -> Result<Imported> {
        let mut imported = Imported::default();
        let since = since_unix_ns.unwrap_or(i64::MIN);
        let known = self.known()?;
        let mut wanted = Vec::new();
        for folder in folders {
            // as a path from the root it is the same wherever it is named from
            let folder = folder.canonicalize().unwrap_or_else(|_| folder.clone());
            walk(
                &folder,
                &mut |path, state| {
                    let is_known = known.get(&*path.to_string_lossy()) == Some(&state);
                    match is_known || state.modified_ns < since {
                        true => imported.unchanged += 1,
                        false => wanted.push(path),
                    }
                },
                &mut |path, error| imported.problems.push(format!("{}: {error}", path.display())),
            );
        }
        drop(known);
        wanted.sort_unstable(); // folders may be named twice, or within each other
        wanted.dedup();
        progress(wanted.len() as u64, 0);
        for batch in wanted.chunks(BATCH) {
            let rows: Vec<_> = batch.par_iter().map(|path| rows_of(path)).collect();
            let mut good = Vec::with_capacity(rows.len());
            for row in rows {
                match row {
                    Ok(row) => good.extend(row),
                    Err(error) => imported.problems.push(format!("{error:#}")),
                }
            }
            imported.records += good.len() as u64;
            self.write(&good)?;
            progress(0, batch.len() as u64);
        }
        Ok(imported)
    }

    /// Deletes jobs of which nothing was written since a moment. Returns how many.
    ///
    /// # Errors
    /// The database cannot be written.
    pub fn forget(&mut self, before_unix_ns: i64) -> Result<u64> {
        let transaction =
            self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let jobs =
            transaction.execute("DELETE FROM job WHERE written_unix_ns < ?1", [before_unix_ns])?;
        for table in ["node", "site"] {
            let sql = format!(
                "DELETE FROM {table} WHERE NOT EXISTS (SELECT 1 FROM job WHERE job.user = {table}.user AND job.job = {table}.job
                 AND {table}.began_unix_ns BETWEEN job.began_unix_ns AND job.written_unix_ns)"
            );
            transaction.execute(&sql, [])?;
        }
        transaction.commit()?;
        Ok(jobs as u64)
    }

    /// Files that were read, as they were then.
    fn known(&self) -> rusqlite::Result<HashMap<String, FileState>> {
        let sql = "SELECT file, file_bytes, file_modified_ns, file_inode FROM node";
        let mut statement = self.connection.prepare(sql)?;
        let rows = statement.query_map([], |row| {
            let state =
                FileState { bytes: row.get(1)?, modified_ns: row.get(2)?, inode: row.get(3)? };
            Ok((row.get(0)?, state))
        })?;
        rows.collect()
    }

    fn write(&mut self, rows: &[NodeRows]) -> rusqlite::Result<()> {
        let transaction =
            self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let mut jobs = HashSet::new();
        for row in rows {
            if write_node(&transaction, row)? {
                jobs.insert((row.node.user, row.node.job.as_str()));
            }
        }
        for (user, job) in jobs {
            transaction
                .prepare_cached("DELETE FROM job WHERE user = ?1 AND job = ?2")?
                .execute(params![user, job])?;
            transaction
                .prepare_cached(&format!("{MERGE_JOB} {NODES_OF_JOBS}"))?
                .execute(params![user, job])?;
        }
        transaction.commit()
    }
}

/// Writes a node's rows unless those of a later version are there already; whether it did.
fn write_node(transaction: &Transaction<'_>, rows: &NodeRows) -> rusqlite::Result<bool> {
    let NodeRows { node, sites } = rows;
    let key = params![node.user, node.job, node.host, node.began_unix_ns, node.written_unix_ns];
    let later = "SELECT 1 FROM node WHERE user = ?1 AND job = ?2 AND host = ?3 AND began_unix_ns = ?4 AND written_unix_ns > ?5";
    if transaction.prepare_cached(later)?.exists(key)? {
        return Ok(false);
    }
    let old = "DELETE FROM site WHERE user = ?1 AND job = ?2 AND host = ?3 AND began_unix_ns = ?4";
    let key = params![node.user, node.job, node.host, node.began_unix_ns];
    transaction.prepare_cached(old)?.execute(key)?;
    insert(transaction, node)?;
    sites.iter().try_for_each(|site| insert(transaction, site))?;
    Ok(true)
}

fn insert<T: JobTable>(transaction: &Transaction<'_>, row: &T) -> rusqlite::Result<()> {
    transaction.prepare_cached(&T::insert())?.execute(params_from_iter(row.values()))?;
    Ok(())
}

/// `None`: the file is not there any more.
fn rows_of(path: &Path) -> Result<Option<NodeRows>> {
    let name = || path.display().to_string();
    let (bytes, facts) = match read(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        other => other.with_context(name)?,
    };
    let record =
        NodeRecord::parse(&bytes).map_err(|error| anyhow::anyhow!("{} {error}", name()))?;
    let mut node = summed(&record, owner(facts.uid()).unwrap_or(record.record.user));
    check(&node).map_err(|problem| anyhow::anyhow!("{}: {problem}", name()))?;
    let state = FileState::of(&facts);
    node.file = path.to_string_lossy().into_owned();
    (node.file_bytes, node.file_modified_ns, node.file_inode) =
        (state.bytes, state.modified_ns, state.inode);
    let sites = places(&record, &node);
    Ok(Some(NodeRows { node, sites }))
}

/// Whose job it is by whom the file belongs to. `None`: to root, or to who runs this, who may have copied it.
fn owner(user: u32) -> Option<i64> {
    // SAFETY: it only answers.
    let own = unsafe { libc::geteuid() };
    (user != 0 && user != own).then_some(user.into())
}

/// What cannot be, whatever the ranks did.
fn check(node: &ListedNode) -> Result<(), String> {
    let lasted = (node.written_unix_ns.saturating_sub(node.began_unix_ns)) as f64 * 1e-9;
    if lasted < -CLOCK_SLACK || node.longest_seconds > lasted.max(0.0) + CLOCK_SLACK {
        return Err("ranks ran longer than the record was written".to_owned());
    }
    Ok(())
}
