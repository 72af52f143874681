//! `lapscope requests`: single requests.

use std::collections::HashSet;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Result;
use serde_json::json;

use crate::args::RequestsArgs;
use lapscope_advise::problem::module_problems;
use lapscope_data::db::{for_each_file, Database, DbError, FileDefinitions};
use lapscope_data::model::RankInfo;
use lapscope_data::places::{group::Grouping, CallPathId, Places};
use lapscope_data::symbols::Symbols;
use lapscope_data::text::style::Style;
use lapscope_data::JSON_VERSION;
use lapscope_report::pipeline::filters::{check_calls, check_ranks};
use lapscope_report::pipeline::OpenRun;
use lapscope_report::requests::{
    merge_top, paths_mentioning, Filter, PlaceNames, Request, RequestRanking, Requests,
};
use lapscope_show::format::rows::{Objects, RowWriter};
use lapscope_show::format::{self, warn_of_data, Document};
use lapscope_show::render;

/// No world has more.
const MOST_RANKS: i64 = 10_000_000;

/// Prints requests: the first in an order, or all, streamed.
///
/// # Errors
/// There is no run here, no file of it can be read, or standard output fails.
pub fn run(args: &RequestsArgs) -> Result<ExitCode> {
    let mut open = OpenRun::open(args.read.run.as_deref())?;
    open.find_wrappers(&args.wrappers.names)?;
    check(args, &mut open)?;
    let selection = Selection::new(args, &mut open)?;
    let mut answer =
        RequestsOutput { args, open: &mut open, selection, top: None, failed: Vec::new() };
    if order(args) != RequestRanking::Stored || !args.read.format.streams() {
        answer.find_top()?;
    }
    format::print(&mut answer, args.read.format)?;
    let RequestsOutput { failed, .. } = answer;
    open.leave_out(failed)?;
    let mut problems = open.problems(&[]);
    problems.extend(module_problems(open.symbols.troubles()));
    warn_of_data(&problems);
    Ok(ExitCode::SUCCESS)
}

/// # Errors
/// A filter names what there is not.
fn check(args: &RequestsArgs, open: &mut OpenRun) -> Result<()> {
    if args.ranks.chosen().is_empty() && args.calls.is_empty() && args.peer.is_none() {
        return Ok(());
    }
    // Files that cannot be read are named when their requests are read.
    let database = |path: &PathBuf| Database::open(path).ok();
    let read = open.files.databases.iter().filter_map(database);
    let files: Vec<Vec<RankInfo>> =
        read.filter_map(|database| FileDefinitions::read_ranks(&database).ok()).collect();
    if files.is_empty() {
        return Ok(());
    }
    let infos = || files.iter().flatten();
    let ranks = infos().map(|info| info.rank);
    check_ranks("--ranks", args.ranks.chosen(), ranks, &open.name())?;
    // The other end may have left no file.
    let worlds = infos().flat_map(|info| {
        (0..info.world_size.clamp(0, MOST_RANKS)).map(|number| info.rank.neighbor(number))
    });
    check_ranks("--peer", args.peer, worlds.chain(infos().map(|info| info.rank)), &open.name())?;
    let places = open.places(Grouping::Address)?;
    check_calls(&args.calls, places.calls.iter().map(|call| call.name.as_str()))
}

/// Which requests are wanted, and their places.
struct Selection {
    filter: Filter,
    /// With --source: the call paths wanted.
    paths: Option<HashSet<CallPathId>>,
    places: Arc<Places>,
}

impl Selection {
    fn new(args: &RequestsArgs, open: &mut OpenRun) -> Result<Selection> {
        let places = open.places(Grouping::Address)?;
        let mentioning = |text: &String| paths_mentioning(&places, text, &mut open.symbols);
        let paths = args.source.as_ref().map(mentioning);
        Ok(Selection { filter: filter(args), paths, places })
    }

    fn is_wanted_path(&self) -> impl Fn(Option<CallPathId>) -> bool + '_ {
        let wanted = self.paths.as_ref();
        move |path| wanted.map_or(true, |wanted| path.is_some_and(|path| wanted.contains(&path)))
    }
}

fn filter(args: &RequestsArgs) -> Filter {
    Filter {
        ranks: args.ranks.chosen(),
        calls: args.calls.clone(),
        kind: args.kind,
        peer: args.peer,
        tag: args.tag,
        min_bytes: args.min_bytes,
        max_bytes: args.max_bytes,
        ended: args.ended,
    }
}

fn top(args: &RequestsArgs) -> usize {
    args.read.format.top(args.top, 20)
}

fn order(args: &RequestsArgs) -> RequestRanking {
    let streams = top(args) == 0 && args.read.format.streams();
    args.sort.map_or(
        if streams { RequestRanking::Stored } else { RequestRanking::Completion },
        RequestRanking::from,
    )
}

/// Requests: the first in an order, or all as the files have them, which go out as they are read, so that memory does not
/// depend on how many there are.
struct RequestsOutput<'a> {
    args: &'a RequestsArgs,
    open: &'a mut OpenRun,
    selection: Selection,
    /// The first of so many; `None`: they are still to be read.
    top: Option<(Vec<Request>, u64)>,
    /// Files that could not be read.
    failed: Vec<DbError>,
}

impl Document for RequestsOutput<'_> {
    fn write_text(&mut self, out: &mut dyn Write, style: Style) -> Result<()> {
        let mut requests = Vec::new();
        let found = self.for_each(&mut |request| {
            requests.push(request);
            Ok(())
        })?;
        Ok(render::requests::write(out, &requests, found, style)?)
    }

    /// A request a line.
    fn write_json(&mut self, out: &mut dyn Write) -> Result<()> {
        let run = json!(self.open.name());
        write!(out, "{{\"json_version\":{JSON_VERSION},\"run\":{run},\"requests\":[")?;
        let mut before = "\n";
        let found = self.for_each(&mut |request| {
            out.write_all(before.as_bytes())?;
            before = ",\n";
            Ok(serde_json::to_writer(&mut *out, &request)?)
        })?;
        Ok(writeln!(out, "\n],\"found\":{found}}}")?)
    }

    fn write_rows(&mut self, rows: &mut dyn RowWriter) -> Result<()> {
        let mut rows = Objects::new(rows);
        self.for_each(&mut |request| Ok(rows.write(&request)?)).map(|_| ())
    }
}

impl RequestsOutput<'_> {
    fn find_top(&mut self) -> Result<()> {
        let (order, top) = (order(self.args), top(self.args));
        let selection = &self.selection;
        let per_file = for_each_file(&self.open.files.databases, |database, definitions| {
            let of_file = selection.places.of_file(&database.path);
            let is_wanted = selection.is_wanted_path();
            let requests =
                Requests::new(database, of_file, &definitions, &selection.filter, is_wanted)?;
            requests.top(order, top)
        })?;
        self.open.leave_out(per_file.failed)?;
        let (tops, found): (Vec<_>, Vec<u64>) = per_file.read.into_iter().unzip();
        let mut requests = merge_top(tops, top);
        let mut names = PlaceNames::new(&selection.places);
        for request in &mut requests {
            names.fill_in(request, &mut self.open.symbols);
        }
        self.top = Some((requests, found.into_iter().sum()));
        Ok(())
    }

    /// Returns how many were found.
    fn for_each(&mut self, take: &mut Take<'_>) -> Result<u64> {
        if let Some((requests, found)) = self.top.take() {
            requests.into_iter().try_for_each(take)?;
            return Ok(found);
        }
        let limit = match top(self.args) {
            0 => u64::MAX,
            top => top as u64,
        };
        let mut found = 0;
        for path in &self.open.files.databases {
            let symbols = &mut self.open.symbols;
            match stream_file(path, &self.selection, symbols, limit, &mut found, take) {
                Ok(result) => result?,
                Err(error) => self.failed.push(error),
            }
        }
        Ok(found)
    }
}

type Take<'a> = dyn FnMut(Request) -> Result<()> + 'a;

/// The outer error is of the file, the inner one of who takes the requests.
fn stream_file(
    path: &Path,
    selection: &Selection,
    symbols: &mut Symbols,
    limit: u64,
    found: &mut u64,
    take: &mut Take<'_>,
) -> Result<Result<()>, DbError> {
    let database = Database::open(path)?;
    let definitions = FileDefinitions::read(&database)?;
    let of_file = selection.places.of_file(path);
    let is_wanted = selection.is_wanted_path();
    let requests = Requests::new(&database, of_file, &definitions, &selection.filter, is_wanted)?;
    let mut names = PlaceNames::new(&selection.places);
    let mut taken = Ok(());
    requests.read(|mut request| {
        if *found >= limit {
            return false;
        }
        *found += 1;
        names.fill_in(&mut request, symbols);
        taken = take(request);
        taken.is_ok()
    })?;
    Ok(taken)
}
