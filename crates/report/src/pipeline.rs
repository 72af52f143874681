//! From files to documents: opens a run, reads it, and has it analysed.

pub mod collective_sites;
pub mod filters;
pub mod overlap;
pub mod pictures;
pub mod reach;
pub mod report;
pub mod resources;
pub mod view;
pub mod whatif;

use std::collections::{BTreeSet, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Result;

use self::filters::check_ranks;
use self::resources::{check_fits_whole, Resources};
use crate::calibration;
use lapscope_advise::problem::{find_problems_of, in_short};
use lapscope_data::db::{
    find_run, for_each_file, list_files, rows_to_scan, Census, DbError, NoSink, PerFile, RunFiles,
};
use lapscope_data::files::machine_memory;
use lapscope_data::job::{as_run, JobRun};
use lapscope_data::model::{CallPath, Frame, Rank, RankInfo};
use lapscope_data::pending::read_pending;
use lapscope_data::places::{group::Grouping, FilePlaces, Places};
use lapscope_data::recovery::{recover_run, Copies};
use lapscope_data::say;
use lapscope_data::symbols::NameFrames;
use lapscope_data::symbols::Symbols;
use lapscope_data::text::progress::Progress;
use lapscope_measure::injection::Injection;
use lapscope_measure::reach::document::{Reach, ReachInputs};
use lapscope_measure::reference::Reference;
use lapscope_trace::problem::{Problem, ProblemKind};
use lapscope_trace::samples::{self, RunSamples};
use lapscope_trace::stretch::{StretchChoice, Windows};
use lapscope_trace::sums::aggregate::{Aggregator, FileSums};
use lapscope_trace::sums::combine::RunSums;
use lapscope_trace::wrappers::{Uses, WrapperOptions, Wrappers};
use lapscope_trace::{injected, watched, ReadProgress, Trace, WithSinks};
use lapscope_watch::pending::groups::{find_outside, RankOutside};
use lapscope_watch::pending::{collect_pending, FilePending, PendingItem};

/// The files of a run, after what killed ranks left was turned into databases, and after every file was checked. All
/// commands that read a run do so through this, and tell of the same problems.
pub struct OpenRun {
    /// The databases among them are those that can be believed.
    pub files: RunFiles,
    census: Census,
    /// Spools that could not be turned into databases, and links that are not followed, and why.
    not_recovered: Vec<Problem>,
    in_part: Vec<Problem>,
    /// What functions only pass on to MPI, once [`OpenRun::find_wrappers`] has looked.
    pub wrappers: Wrappers,
    /// Names frames of its places; what was looked up once is kept.
    pub symbols: Symbols,
    /// Those of all files, until they are numbered.
    unnumbered: Vec<(PathBuf, FilePlaces)>,
    /// Places of all files, and what makes a site in them; `None`: they were not numbered yet.
    places: Arc<Places>,
    grouping: Option<Grouping>,
    pub resources: Resources,
    /// What of the run counts, where not all of it does.
    pub stretch: Option<StretchChoice>,
    /// Which reference times are wanted; see [`calibration::reference`].
    pub reference: Option<String>,
    /// Copies of spools whose ranks may still run elsewhere, and what was made of records of jobs.
    _copies: Vec<Copies>,
}

impl OpenRun {
    /// # Errors
    /// There is no run, or nothing in it can be read yet.
    pub fn open(named: Option<&Path>) -> Result<OpenRun> {
        OpenRun::open_all(&[find_run(named)?])
    }

    /// As [`OpenRun::open`], several of them as one run.
    ///
    /// # Errors
    /// As [`OpenRun::open`].
    pub fn open_all(roots: &[PathBuf]) -> Result<OpenRun> {
        let mut files = RunFiles::default();
        let (mut not_recovered, mut all_copies) = (Vec::new(), Vec::new());
        for root in roots {
            let (of_root, copies, problems) = with_recovered(root)?;
            files.root = of_root.root;
            files.databases.extend(of_root.databases);
            all_copies.push(copies);
            not_recovered.extend(problems);
        }
        if files.databases.is_empty() {
            let why = in_short(&not_recovered);
            anyhow::bail!("{}: no data yet: {}", files.root.display(), why.join("; "));
        }
        let (mut census, unnumbered) = Census::take_with(&files.databases, FilePlaces::read);
        if census.files.is_empty() {
            return Err(census.failed.swap_remove(0).into());
        }
        files.databases.clone_from(&census.files);
        let unnumbered = files.databases.iter().cloned().zip(unnumbered).collect();
        Ok(OpenRun {
            files,
            census,
            not_recovered,
            in_part: Vec::new(),
            wrappers: Wrappers::default(),
            symbols: Symbols::default(),
            unnumbered,
            places: Arc::default(),
            grouping: None,
            resources: Resources::default(),
            stretch: None,
            reference: None,
            _copies: all_copies,
        })
    }

    /// Looks for functions that only pass on to MPI: from then on what is read names their callers. `typed`: what `--wrapper`
    /// said.
    ///
    /// # Errors
    /// No file could be read.
    pub fn find_wrappers(&mut self, typed: &[String]) -> Result<()> {
        self.number_places();
        let asked = WrapperOptions::new(typed);
        self.wrappers = Wrappers::find(&Uses::from(&*self.places), &asked, &mut self.symbols);
        for name in asked.names.iter().filter(|name| !self.wrappers.has(name)) {
            say!("--wrapper {name}: no such function was seen to call MPI");
        }
        Ok(())
    }

    /// Once.
    fn number_places(&mut self) {
        if self.grouping.is_some() {
            return;
        }
        let files: HashSet<&PathBuf> = self.files.databases.iter().collect();
        let mut read = std::mem::take(&mut self.unnumbered);
        read.retain(|(path, _)| files.contains(path));
        let places = Places::number_files(read);
        self.symbols = Symbols::new(places.modules.clone());
        self.places = Arc::new(places);
        self.grouping = Some(Grouping::Address);
    }

    /// The places of the run. Its call sites get their numbers when they are first wanted otherwise than by their addresses.
    ///
    /// # Errors
    /// No file could be read.
    pub fn places(&mut self, grouping: Grouping) -> Result<Arc<Places>> {
        self.number_places();
        if self.grouping == Some(Grouping::Address) {
            let places = Arc::make_mut(&mut self.places);
            let Places { paths, modules, .. } = places;
            self.wrappers.set_callers(paths, modules, &mut self.symbols);
            places.group(grouping, &mut self.symbols);
            self.grouping = Some(grouping);
        }
        Ok(Arc::clone(&self.places))
    }

    /// What to know before believing what was read: of all files, of what reading them found, and of what had not ended.
    pub fn problems(&mut self, pending: &[PendingItem]) -> Vec<Problem> {
        let mut problems = self.not_recovered.clone();
        problems.extend(self.in_part.iter().cloned());
        let found = find_problems_of(&self.census.infos(), &self.census.failed, pending);
        problems.extend(found);
        for problem in problems.iter_mut().filter(|it| it.kind == ProblemKind::CutPaths) {
            problem.message += &self.cut_at();
        }
        problems
    }

    /// " (search x.c:20, …)": where paths are cut. Their innermost frame is the caller of MPI.
    fn cut_at(&mut self) -> String {
        const NAMED: usize = 4;
        self.number_places();
        let is_cut = |path: &&CallPath| path.truncated && path.frames.len() == 1;
        let frames = self.places.paths.iter().filter(is_cut).map(|path| path.frames[0]);
        let frames: BTreeSet<Frame> = frames.collect();
        let mut at: Vec<String> = Vec::new();
        for &frame in &frames {
            at.extend(self.symbols.name(frame).first().map(|name| name.short()));
        }
        at.dedup();
        let more = if at.len() > NAMED { ", …" } else { "" };
        at.truncate(NAMED);
        if at.is_empty() {
            String::new()
        } else {
            format!(": {}{more}", at.join(", "))
        }
    }

    /// Leaves out files that turned out to be unreadable.
    ///
    /// # Errors
    /// The first of them, when no file is left.
    pub fn leave_out(&mut self, mut failed: Vec<DbError>) -> Result<()> {
        self.census.without(&failed);
        self.files.databases.clone_from(&self.census.files);
        if self.census.files.is_empty() && !failed.is_empty() {
            return Err(failed.swap_remove(0).into());
        }
        self.census.failed.append(&mut failed);
        Ok(())
    }

    /// What transfers take undisturbed, and sentences about these times; `own`: by the run's own transfers.
    ///
    /// # Errors
    /// Those that are wanted are not there, or cannot be read.
    pub fn reference_times(
        &self,
        trace: &Trace,
        own: Reference,
    ) -> Result<(Reference, Vec<String>)> {
        calibration::reference(self.reference.as_deref(), trace, &self.files, own)
    }

    /// Rows of calls and requests in all files, about.
    pub fn rows(&self) -> u64 {
        self.census.rows
    }

    /// The name of the run as the user would type it.
    pub fn name(&self) -> String {
        self.files.root.to_string_lossy().into_owned()
    }

    /// Reads everything once and sums it up. Files that cannot be read are among the problems from then on.
    ///
    /// # Errors
    /// No file could be read.
    pub fn sum(&mut self, grouping: Grouping) -> Result<RunSums> {
        self.sum_within(grouping, None)
    }

    /// As [`OpenRun::sum`], of what begins in these windows.
    ///
    /// # Errors
    /// No file could be read.
    pub fn sum_within(&mut self, grouping: Grouping, windows: Option<&Windows>) -> Result<RunSums> {
        let places = self.places(grouping)?;
        let progress = Progress::of_files(self.files.databases.len());
        let per_file = for_each_file(&self.files.databases, |database, mut definitions| {
            let of_file = places.of_file(&database.path);
            let rows = rows_to_scan(&database.connection);
            progress.expect(rows.map_err(DbError::reading(&database.path))?);
            let read = |rows| progress.add(rows);
            let sums = FileSums::read(database, of_file, &mut definitions, windows, &read)?;
            Ok((definitions, sums))
        })?;
        self.leave_out(per_file.failed)?;
        Ok(RunSums::combine(Arc::clone(&places), per_file.read))
    }

    /// As [`OpenRun::sum`], and puts the same rows together across ranks.
    ///
    /// # Errors
    /// No file could be read.
    pub fn sum_and_trace(&mut self) -> Result<(RunSums, Trace)> {
        let places = self.places(Grouping::Line)?;
        let read = {
            let progress = Progress::of_files(self.files.databases.len());
            let told = |rows| follow(&progress, rows);
            Trace::read_with(&self.files.databases, &places, Some(Aggregator::new), &told)?
        };
        let sums = read.sinks.into_iter().map(|(definitions, sums)| (definitions, sums.finish()));
        self.leave_out(read.failed)?;
        Ok((RunSums::combine(Arc::clone(&places), sums.collect()), read.trace))
    }

    /// Reads everything once and puts it together across ranks.
    ///
    /// # Errors
    /// No file could be read, or one of `ranks` is not in it.
    pub fn trace(&mut self, ranks: &[Rank], grouping: Grouping) -> Result<Trace> {
        let places = self.places(grouping)?;
        let WithSinks { trace, failed, .. } = {
            let progress = Progress::of_files(self.files.databases.len());
            let told = |rows| follow(&progress, rows);
            Trace::read_with::<NoSink>(&self.files.databases, &places, None, &told)?
        };
        self.leave_out(failed)?;
        let known = trace.ranks.iter().map(|trace| trace.info().rank);
        check_ranks("--ranks", ranks.iter().copied(), known, &self.name())?;
        Ok(trace)
    }

    /// As [`OpenRun::trace`], for what needs all ranks at once, however large the run is.
    ///
    /// # Errors
    /// As [`OpenRun::trace`], or this machine's memory does not hold it.
    pub fn whole_trace(&mut self, ranks: &[Rank], grouping: Grouping) -> Result<Trace> {
        check_fits_whole(self.rows(), machine_memory())?;
        self.trace(ranks, grouping)
    }

    /// Reads and names what did not end.
    ///
    /// # Errors
    /// No file could be read.
    pub fn pending(&mut self) -> Result<Pending> {
        self.pending_with(|_| true)
    }

    /// As [`OpenRun::pending`], of files with such a rank.
    ///
    /// # Errors
    /// As [`OpenRun::pending`].
    pub fn pending_with(&mut self, is_one: impl Fn(&RankInfo) -> bool) -> Result<Pending> {
        let places = self.places(Grouping::Address)?;
        let per_file = for_each_file(&self.census.files_with(is_one), |database, definitions| {
            let rows = read_pending(database, places.of_file(&database.path), &definitions)?;
            Ok(FilePending { definitions, rows })
        });
        // files that are not looked at may be left
        let per_file =
            per_file.unwrap_or_else(|error| PerFile { read: Vec::new(), failed: vec![error] });
        self.leave_out(per_file.failed)?;
        let infos = || per_file.read.iter().flat_map(|file| &file.definitions.ranks);
        let ranks = infos().map(|info| info.rank).collect();
        let items = collect_pending(&per_file.read, &places, &mut self.symbols);
        let outside = find_outside(infos(), &items);
        Ok(Pending { items, outside, ranks })
    }

    /// Reads what was injected, where ranks were asked to. Files of which that cannot be read are among the problems; what
    /// else they hold counts.
    pub fn injection(&mut self, ranks: &[Rank]) -> Option<Injection> {
        const NOT_READ: &str = "what was injected is not read";
        match self.places(Grouping::Line) {
            Ok(places) => {
                let databases = self.census.asked_to_inject();
                let (files, failed) = injected::read_files(&databases, &places, ranks);
                self.read_in_part(NOT_READ, failed);
                Injection::of_files(&files, &places, &mut self.symbols)
            }
            Err(error) => {
                let message = format!("{NOT_READ}: {error:#}");
                self.in_part.push(Problem::new(ProblemKind::DamagedFile, message, vec![]));
                None
            }
        }
    }

    /// Says what posts and waits of these ranks, or of all, could be moved, where buffers were watched. As
    /// [`OpenRun::injection`].
    pub fn reach(&mut self, ranks: &[Rank], known: ReachInputs<'_>) -> Option<Reach> {
        let databases = self.census.asked_to_watch();
        let (watches, failed) = watched::read_files(&databases, &known.trace.places, ranks);
        self.read_in_part("what was watched is not read", failed);
        Reach::of_watches(watches, known, &mut self.symbols)
    }

    /// The samples of these ranks, or of all. They have no moments, so that a stretch has none of them. As
    /// [`OpenRun::injection`].
    pub fn samples(&mut self, ranks: &[Rank], places: &Places) -> RunSamples {
        if self.stretch.is_some() {
            return RunSamples::default();
        }
        let (found, failed) = samples::read_files(&self.census.asked_to_sample(), places, ranks);
        self.read_in_part("where the program computes is not read", failed);
        found
    }

    /// Whether buffers were watched.
    pub fn is_watched(&self) -> bool {
        !self.census.asked_to_watch().is_empty()
    }

    /// Has it among the problems that buffers were watched, and that this is not looked at in parts.
    pub fn reach_left_out(&mut self) -> Option<Reach> {
        if !self.census.asked_to_watch().is_empty() {
            let message = "what was watched is left out: the run is looked at in parts; more --memory looks at all of it at once";
            self.in_part.push(Problem::new(ProblemKind::NotWatched, message, vec![]));
        }
        None
    }

    /// As [`OpenRun::injection`], where all of the run counts: it compares times of the whole of it.
    pub fn injection_counted(&mut self, ranks: &[Rank]) -> Option<Injection> {
        if self.stretch.is_none() {
            return self.injection(ranks);
        }
        if self.is_injection_left_out() {
            self.in_part.push(Problem::new(
                ProblemKind::NoMoments,
                "what injected tests gained is left out: it is of all of the run; without --from, --to and --step it is said",
                vec![],
            ));
        }
        None
    }

    /// Whether ranks were asked to inject, and only a stretch counts.
    pub fn is_injection_left_out(&self) -> bool {
        self.stretch.is_some() && !self.census.asked_to_inject().is_empty()
    }

    /// Has it among the problems that buffers were watched, and that this is of all of the run.
    pub fn reach_of_stretch(&mut self) -> Option<Reach> {
        if !self.census.asked_to_watch().is_empty() {
            let message = "what was watched is left out: it is of all of the run; without --from, --to and --step it is said";
            self.in_part.push(Problem::new(ProblemKind::NotWatched, message, vec![]));
        }
        None
    }

    /// Has files among the problems whose other rows count.
    pub fn read_in_part(&mut self, what: &str, failed: Vec<DbError>) {
        let problem = |error: DbError| {
            Problem::new(ProblemKind::DamagedFile, format!("{what}: {error}"), vec![])
        };
        self.in_part.extend(failed.into_iter().map(problem));
    }
}

/// Shows how far reading is.
pub fn follow(progress: &Progress, rows: ReadProgress) {
    match rows {
        ReadProgress::Expected(rows) => progress.expect(rows),
        ReadProgress::Read(rows) => progress.add(rows),
    }
}

/// Records of a job as a run: where one is named, or a directory that has nothing else. `None`: it is another run.
fn of_job_records(root: &Path) -> Result<Option<(RunFiles, Copies, Vec<Problem>)>> {
    if root.is_dir() && !matches!(list_files(root), Err(DbError::Empty(_))) {
        return Ok(None);
    }
    let Some(JobRun { copies, notes }) = as_run(root)? else { return Ok(None) };
    let files =
        RunFiles { root: root.into(), databases: copies.databases.clone(), ..RunFiles::default() };
    let problem = |note| Problem::new(ProblemKind::Summarized, note, vec![]);
    Ok(Some((files, copies, notes.into_iter().map(problem).collect())))
}

/// The files of a run, what killed ranks left among them.
fn with_recovered(root: &Path) -> Result<(RunFiles, Copies, Vec<Problem>)> {
    if let Some(job) = of_job_records(root)? {
        return Ok(job);
    }
    let mut files = list_files(root)?;
    let (mut copies, mut problems) = (Copies::default(), Vec::new());
    if !files.spools.is_empty() {
        let left = match recover_run(root, true) {
            Ok(summary) => {
                copies = summary.copies;
                summary.left
            }
            Err(error) => vec![format!("{error:#}")],
        };
        let not_recovered = |line| Problem::new(ProblemKind::NotRecovered, line, vec![]);
        problems.extend(left.into_iter().map(not_recovered));
        files = list_files(root)?;
        files.databases.extend(copies.databases.iter().cloned());
    }
    let left_out = |it: &DbError| Problem::new(ProblemKind::DamagedFile, it.to_string(), vec![]);
    problems.extend(files.left_out.iter().map(left_out));
    Ok((files, copies, problems))
}

/// What did not end.
pub struct Pending {
    pub items: Vec<PendingItem>,
    pub outside: Vec<RankOutside>,
    /// Ranks whose files could be read.
    pub ranks: Vec<Rank>,
}
