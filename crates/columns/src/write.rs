//! Writes all tables of a run, nodes and tables side by side.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{bail, Result};
use lapscope_data::symbols::NameFrames;
use lapscope_report::pipeline::overlap::Prepared;
use lapscope_trace::{Direction, Endpoint, Half, Trace, NONE};
use rayon::prelude::*;

use super::calls::CallRow;
use super::directory::partition;
use super::messages::MessageRow;
use super::ranks::RankRow;
use super::requests::RequestRow;
use super::run::{FirstLook, RunRows};
use super::sites::SiteRow;
use super::table::{Column, TableFile};
use super::{calls, messages, ranks, requests, sites};

/// Those with a file for each node, and those with one file.
pub const TABLES: [&str; 5] = ["requests", "calls", "messages", "ranks", "sites"];

/// Who is told how far writing is, and says whether to go on.
pub struct WriteProgress<'a> {
    /// So many more rows were written.
    pub wrote: &'a (dyn Fn(u64) + Sync),
    /// Asked now and then.
    pub is_stopped: &'a (dyn Fn() -> bool + Sync),
}

/// Rows of one table of one node, or of a table that has one file.
enum Task {
    Requests,
    Calls,
    Messages,
}

/// Writes everything into `directory`.
///
/// # Errors
/// A file of the run cannot be read any more or one of the tables not written, or `told` wants to stop.
pub fn write(
    prepared: &Prepared,
    names: &mut dyn NameFrames,
    directory: &Path,
    told: &WriteProgress<'_>,
) -> Result<()> {
    let trace = &prepared.view.trace;
    write_sites(trace, names, &directory.join("sites.parquet"))?;
    let scratch = directory.join("causes");
    let found = FirstLook::look(prepared, scratch, told.wrote)?;
    let mut number = 0;
    prepared.view.each_part(|part| {
        let run = RunRows::prepare(prepared, part, &found)?;
        if number == 0 {
            write_ranks(&run, trace, &directory.join("ranks.parquet"))?;
        }
        number += 1;
        write_part(&run, number - 1, directory, told)
    })?;
    match found {
        FirstLook::InMemory(_) => Ok(()),
        FirstLook::Files(scratch) => Ok(std::fs::remove_dir_all(scratch)?),
    }
}

/// Requests, calls and messages of the ranks in the focus of `run`, which is part `number`.
fn write_part(
    run: &RunRows<'_>,
    number: usize,
    directory: &Path,
    told: &WriteProgress<'_>,
) -> Result<()> {
    let mut nodes: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
    for place in run.trace().focus() {
        nodes.entry(run.rank(place).node).or_default().push(place);
    }
    let mut tasks = Vec::new();
    for (&node, ranks) in &nodes {
        let partition = partition(&run.rank(ranks[0]).info().host, node as usize);
        for (task, table) in [Task::Requests, Task::Calls, Task::Messages].into_iter().zip(TABLES) {
            let file = format!("part-{number}.parquet");
            let path = directory.join(table).join(&partition).join(file);
            tasks.push((task, ranks.as_slice(), path));
        }
    }
    tasks.into_par_iter().try_for_each(|(task, ranks, path)| {
        let part = NodeFile { run, ranks, path, told };
        match task {
            Task::Requests => part.write_requests(),
            Task::Calls => part.write_calls(),
            Task::Messages => part.write_messages(),
        }
    })
}

fn write_sites(trace: &Trace, names: &mut dyn NameFrames, path: &Path) -> Result<()> {
    let places = &trace.places;
    let mut file = TableFile::create(path, sites::columns())?;
    for site in places.site_ids() {
        let frame = places.site(site).frame.map(|frame| names.name(frame).swap_remove(0));
        let name = frame.as_ref().map(|frame| frame.short());
        file.push(SiteRow { id: site.number(), call: places.call(site), frame, name })?;
    }
    file.finish()
}

/// `trace` knows all ranks, and rows of them where it is the whole run.
fn write_ranks(run: &RunRows<'_>, trace: &Trace, path: &Path) -> Result<()> {
    let mut file = TableFile::create(path, ranks::columns())?;
    for (place, rank) in trace.ranks.iter().enumerate() {
        file.push(RankRow { key: run.key(place), rank })?;
    }
    file.finish()
}

/// One file of a node's rows.
struct NodeFile<'a> {
    run: &'a RunRows<'a>,
    /// Places of the node's ranks.
    ranks: &'a [usize],
    path: PathBuf,
    told: &'a WriteProgress<'a>,
}

impl<'a> NodeFile<'a> {
    fn write_requests(&self) -> Result<()> {
        let mut out = self.create(requests::columns())?;
        for &rank in self.ranks {
            let overlapped = self.run.overlapped(rank)?;
            for half in self.run.trace().halves(rank) {
                if half.operation.is_request && !half.operation.is_second_half {
                    let receive = self.second_half(&half);
                    let achieved = overlapped.achieved(&half);
                    out.push(RequestRow::new(self.run, half, receive, achieved))?;
                }
            }
        }
        out.finish()
    }

    fn write_calls(&self) -> Result<()> {
        let mut out = self.create(calls::columns())?;
        for &rank in self.ranks {
            let trace = self.run.rank(rank);
            let receives = self.receives(rank);
            for index in 0..trace.calls.len() {
                let receive = receives.get(&index).map(|&half| self.run.trace().half(rank, half));
                out.push(CallRow::new(self.run, rank, index, receive))?;
            }
            for index in 0..trace.other_calls.len() {
                out.push(CallRow::other(self.run, rank, index))?;
            }
        }
        out.finish()
    }

    fn write_messages(&self) -> Result<()> {
        let mut out = self.create(messages::columns())?;
        for &rank in self.ranks {
            for send in self.run.trace().halves(rank) {
                let is_send = send.operation.direction == Direction::Send;
                let partner = self.run.trace().partner(&send).filter(|_| is_send);
                if let Some(receive) = partner {
                    out.push(MessageRow::new(self.run, send, receive))?;
                }
            }
        }
        out.finish()
    }

    fn create<R>(&self, columns: Vec<Column<R>>) -> Result<CountedFile<'_, R>> {
        let file = TableFile::create(&self.path, columns)?;
        Ok(CountedFile { file, told: self.told, held: 0 })
    }

    /// The half that receives, which stands behind the one that sends.
    fn second_half(&self, first: &Half<'a>) -> Option<Half<'a>> {
        let trace = self.run.trace();
        let next = first.index + 1;
        let is_there = next < trace.ranks[first.rank].endpoints.len();
        let second = is_there.then(|| trace.half(first.rank, next))?;
        let is_of_it = second.operation.is_second_half
            && second.call == first.call
            && second.post_begin == first.post_begin;
        is_of_it.then_some(second)
    }

    /// By the place of a blocking call its half that receives, of those that do both: it stands behind the one that sends.
    fn receives(&self, rank: usize) -> BTreeMap<usize, usize> {
        let trace = self.run.rank(rank);
        let is_blocking = |endpoint: &Endpoint| {
            !trace.operations[endpoint.operation as usize].is_request && endpoint.call != NONE
        };
        let both = trace.endpoints.windows(2).zip(1..);
        both.filter(|(two, _)| two[0].call == two[1].call && is_blocking(&two[1]))
            .map(|(two, second)| (two[1].call as usize, second))
            .collect()
    }
}

/// A file whose rows are told of, and which is not written to its end when that is not wanted any more.
struct CountedFile<'a, R> {
    file: TableFile<R>,
    told: &'a WriteProgress<'a>,
    held: u64,
}

impl<R> CountedFile<'_, R> {
    fn push(&mut self, row: R) -> Result<()> {
        self.held += 1;
        if self.file.push(row)? {
            self.tell()?;
        }
        Ok(())
    }

    fn tell(&mut self) -> Result<()> {
        (self.told.wrote)(std::mem::take(&mut self.held));
        if (self.told.is_stopped)() {
            bail!("interrupted");
        }
        Ok(())
    }

    fn finish(mut self) -> Result<()> {
        self.tell()?;
        self.file.finish()
    }
}
