//! The archive's definitions: they are written last, when it is known how many events each location has.

use std::collections::HashMap;

use anyhow::Result;
use lapscope_data::places::SiteId;
use lapscope_trace::{CommKey, DeviceWork};

use super::library::{c_text, Handle, Library};
use super::mpi::role;
use super::{Otf2, SITE};
use crate::definitions::Definitions;
use crate::regions::Region;
use crate::shown::ShownWindows;

/// A thread of a rank, or a kind of work of one of its GPUs.
pub(super) struct Location {
    pub place: usize,
    pub what: What,
    pub events: u64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum What {
    Thread(usize),
    Gpu(u32, DeviceWork),
}

impl What {
    fn is_first(self) -> bool {
        self == What::Thread(0)
    }

    /// As the location is called, of a rank of that name.
    fn named(self, rank: &str) -> String {
        match self {
            What::Thread(0) => rank.to_owned(),
            What::Thread(thread) => format!("{rank}, thread {thread}"),
            What::Gpu(device, work) => format!("{rank}, {}", work.of_gpu(device)),
        }
    }

    fn kind(self) -> u8 {
        match self {
            What::Thread(_) => CPU_THREAD,
            What::Gpu(..) => ACCELERATOR_STREAM,
        }
    }
}

/// Calls, and where they are made.
#[derive(Default)]
pub(super) struct Regions {
    /// By site: number of the region, and string that says where it is.
    of_sites: Vec<(u32, Option<u32>)>,
    /// Sites whose calls they are.
    calls: Vec<usize>,
    /// Names of those that programs marked, which stand behind calls.
    marked: Strings,
    strings: Strings,
}

/// Texts by number.
#[derive(Default)]
struct Strings {
    numbers: HashMap<String, u32>,
    texts: Vec<String>,
}

impl Strings {
    fn number(&mut self, text: &str) -> u32 {
        if let Some(&number) = self.numbers.get(text) {
            return number;
        }
        let number = self.texts.len() as u32;
        self.texts.push(text.to_owned());
        self.numbers.insert(text.to_owned(), number);
        number
    }
}

impl Regions {
    pub fn collect(run: &Definitions) -> Regions {
        let mut regions = Regions::default();
        let mut numbers: HashMap<&str, u32> = HashMap::new();
        for (index, site) in run.sites.iter().enumerate() {
            let number = *numbers.entry(&site.call.name).or_insert_with(|| {
                regions.calls.push(index);
                regions.calls.len() as u32 - 1
            });
            let place = site.name.as_ref().map(|name| regions.strings.number(name));
            regions.of_sites.push((number, place));
        }
        regions
    }

    /// Numbers of what a program marked: regions have one, steps, which may overlap with them, none.
    pub fn marked(&mut self, regions: &[Region]) -> Vec<Option<u32>> {
        let first = self.calls.len() as u32;
        let mut number = |region: &Region| first + self.marked.number(&region.name);
        let of = |region: &Region| (!region.is_step).then(|| number(region));
        regions.iter().map(of).collect()
    }

    /// What a GPU does is as if the program had marked it.
    pub fn of_device(&mut self, work: DeviceWork) -> u32 {
        self.calls.len() as u32 + self.marked.number(work.in_words())
    }

    pub fn of_site(&self, site: SiteId) -> (u32, Option<u32>) {
        self.of_sites[site.number() as usize]
    }
}

fn shown_of(places: &[u32], shown: &ShownWindows) -> Vec<u32> {
    places.iter().copied().filter(|&place| shown.has_rank(place as usize)).collect()
}

/// Members by their places, as far as they are shown: OTF2's ranks are places in these lists.
pub(super) struct Communicators {
    /// All ranks that are shown.
    all: Vec<u32>,
    /// The members of each of the run's communicators.
    members: Vec<Vec<u32>>,
}

impl Communicators {
    pub fn collect(run: &Definitions, shown: &ShownWindows) -> Communicators {
        Communicators {
            all: shown.places().map(|place| place as u32).collect(),
            members: run.communicators.iter().map(|(_, all)| shown_of(all, shown)).collect(),
        }
    }

    /// The communicator of a message from or to `own`, and the rank of the peer in it. Of a communicator that had no collective
    /// members are not known: its messages are those of one that has all ranks.
    pub fn of_message(
        &self,
        run: &Definitions,
        key: Option<&CommKey>,
        (own, peer): (usize, usize),
    ) -> Option<(u32, u32)> {
        let known = key.and_then(|key| run.communicator(*key));
        let own_members = known.map(|number| (number, &self.members[number as usize]));
        let rank_of = |members: &[u32], place: usize| members.binary_search(&(place as u32)).ok();
        if let Some((number, members)) = own_members {
            if let (Some(_), Some(peer)) = (rank_of(members, own), rank_of(members, peer)) {
                return Some((number, peer as u32));
            }
        }
        rank_of(&self.all, peer).map(|peer| (self.members.len() as u32, peer as u32))
    }

    /// The rank of the one at `place` in a communicator of the run.
    pub fn rank_in(&self, communicator: u32, place: usize) -> Option<u32> {
        let members = &self.members[communicator as usize];
        members.binary_search(&(place as u32)).ok().map(|rank| rank as u32)
    }
}

const NONE: u32 = u32::MAX;
const MPI: u8 = 4;
const USER: u8 = 1;
/// Role of what a program marked.
const CODE: u8 = 4;
const CLASS_PROCESS: u8 = 0;
const TYPE_STRING: u8 = 11;
const DOMAIN_MACHINE: u8 = 0;
const DOMAIN_SHARED_MEMORY: u8 = 1;
const GROUP_PROCESS: u8 = 1;
const CPU_THREAD: u8 = 1;
const ACCELERATOR_STREAM: u8 = 2;
const COMM_LOCATIONS: u8 = 4;
const COMM_GROUP: u8 = 5;

/// The writer of definitions, and strings that were not written yet.
struct Global<'a> {
    library: &'a Library,
    writer: Handle,
    strings: &'a mut Strings,
    /// How many of them were.
    written: usize,
}

impl Global<'_> {
    /// The number of a text, which is written first.
    fn text(&mut self, text: &str) -> Result<u32> {
        let number = self.strings.number(text);
        self.write_strings()?;
        Ok(number)
    }

    fn write_strings(&mut self) -> Result<()> {
        while let Some(text) = self.strings.texts.get(self.written) {
            let (text, number) = (c_text(text), self.written as u32);
            // SAFETY: the writer is open, and the text ends with a zero.
            self.library
                .check(unsafe { (self.library.string)(self.writer, number, text.as_ptr()) })?;
            self.written += 1;
        }
        Ok(())
    }

    fn check(&self, code: i32) -> Result<()> {
        self.library.check(code)
    }
}

impl Otf2 {
    pub(super) fn define(&mut self, run: &Definitions) -> Result<()> {
        let Otf2 { library, archive, regions, communicators, locations, .. } = self;
        // SAFETY: the archive is open.
        let writer = unsafe { (library.global_writer)(*archive) };
        let Regions { calls, strings, marked, .. } = regions;
        let mut global = Global { library, writer, strings, written: 0 };
        global.write_strings()?;
        global.general(run)?;
        global.nodes(run)?;
        global.regions(run, calls, &marked.texts)?;
        global.locations(run, locations)?;
        global.communicators(run, communicators, locations)?;
        // SAFETY: the writer is not used behind this.
        library.check(unsafe { (library.close_global_writer)(*archive, writer) })
    }
}

/// Each of these calls a function of the library with the writer, which is open, and numbers of what was defined before.
impl Global<'_> {
    fn general(&mut self, run: &Definitions) -> Result<()> {
        const PER_SECOND: u64 = 1_000_000_000;
        let (unix, length) = (run.unix_ns.max(0) as u64, run.length.max(0) as u64);
        let mpi = self.text("MPI")?;
        let site = self.text("site")?;
        let about = self.text("where the call is made")?;
        // SAFETY: see above.
        unsafe {
            self.check((self.library.clock)(self.writer, PER_SECOND, 0, length + 1, unix))?;
            self.check((self.library.paradigm)(self.writer, MPI, mpi, CLASS_PROCESS))?;
            self.check((self.library.attribute)(self.writer, SITE, site, about, TYPE_STRING))
        }
    }

    fn nodes(&mut self, run: &Definitions) -> Result<()> {
        let (machine, class) = (self.text("machine")?, self.text("node")?);
        // SAFETY: see above.
        unsafe {
            self.check((self.library.tree_node)(self.writer, 0, machine, machine, NONE))?;
            self.check((self.library.tree_domain)(self.writer, 0, DOMAIN_MACHINE))?;
        }
        for (number, name) in (1..).zip(&run.nodes) {
            let name = self.text(name)?;
            // SAFETY: see above.
            unsafe {
                self.check((self.library.tree_node)(self.writer, number, name, class, 0))?;
                self.check((self.library.tree_domain)(self.writer, number, DOMAIN_SHARED_MEMORY))?;
            }
        }
        Ok(())
    }

    fn regions(&mut self, run: &Definitions, calls: &[usize], marked: &[String]) -> Result<()> {
        for (number, &site) in (0..).zip(calls) {
            let call = &run.sites[site].call;
            let name = self.text(&call.name)?;
            let about = self.text(&call.family)?;
            let role = role(call);
            self.region(number, [name, about], (role, MPI))?;
        }
        for (number, name) in (calls.len() as u32..).zip(marked) {
            let name = self.text(name)?;
            self.region(number, [name, name], (CODE, USER))?;
        }
        Ok(())
    }

    /// A region by its name and what it is about, of no source file.
    fn region(
        &mut self,
        number: u32,
        [name, about]: [u32; 2],
        (role, paradigm): (u8, u8),
    ) -> Result<()> {
        // SAFETY: see above.
        self.check(unsafe {
            (self.library.region)(
                self.writer,
                number,
                name,
                name,
                about,
                role,
                paradigm,
                0,
                NONE,
                0,
                0,
            )
        })
    }

    fn locations(&mut self, run: &Definitions, locations: &[Location]) -> Result<()> {
        for (number, location) in (0..).zip(locations) {
            let rank = &run.ranks[location.place];
            let group = location.place as u32;
            let name = self.text(&rank.name)?;
            let own_name = self.text(&location.what.named(&rank.name))?;
            // SAFETY: see above.
            unsafe {
                if location.what.is_first() {
                    self.check((self.library.location_group)(
                        self.writer,
                        group,
                        name,
                        GROUP_PROCESS,
                        rank.node + 1,
                        NONE,
                    ))?;
                }
                self.check((self.library.location)(
                    self.writer,
                    number,
                    own_name,
                    location.what.kind(),
                    location.events,
                    group,
                ))?;
            }
        }
        Ok(())
    }

    /// The first group has the locations that take part in MPI, the others places in it.
    fn communicators(
        &mut self,
        run: &Definitions,
        communicators: &Communicators,
        locations: &[Location],
    ) -> Result<()> {
        let none = self.text("")?;
        let first = (0..).zip(locations).filter(|(_, location)| location.what.is_first());
        let of_mpi: Vec<u64> = first.map(|(number, _)| number).collect();
        self.group(0, none, COMM_LOCATIONS, &of_mpi)?;
        let Communicators { all, members } = communicators;
        for (number, members) in (0..).zip(members.iter().chain([all])) {
            let name = match run.communicators.get(number as usize) {
                Some((key, of_run)) => communicator_name(run, *key, of_run, number),
                None => "messages of communicators without collectives".to_owned(),
            };
            let name = self.text(&name)?;
            let place = |member: &u32| all.binary_search(member).map_or(0, |place| place as u64);
            let places: Vec<u64> = members.iter().map(place).collect();
            self.group(number + 1, none, COMM_GROUP, &places)?;
            // SAFETY: see above.
            self.check(unsafe {
                (self.library.communicator)(self.writer, number, name, number + 1, NONE, 0)
            })?;
        }
        Ok(())
    }

    fn group(&self, number: u32, name: u32, kind: u8, members: &[u64]) -> Result<()> {
        let count = members.len() as u32;
        // SAFETY: see above; members are copied.
        self.check(unsafe {
            (self.library.group)(self.writer, number, name, kind, MPI, 0, count, members.as_ptr())
        })
    }
}

/// The first communicator that has all ranks is MPI_COMM_WORLD, the first that has one alone its MPI_COMM_SELF.
fn communicator_name(run: &Definitions, key: CommKey, members: &[u32], number: u32) -> String {
    match (members.len(), key.2) {
        (all, 0) if all == run.ranks.len() => "MPI_COMM_WORLD".to_owned(),
        (1, 0) => "MPI_COMM_SELF".to_owned(),
        _ => format!("communicator {number}"),
    }
}
