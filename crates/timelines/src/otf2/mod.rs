//! OTF2, which Vampir, Scalasca and Pipit read: an archive of definitions and, for every thread of every rank, a file of events.
//!
//! Sends and receives that were not matched are left out, as readers wait for the other end and stop.

mod definitions;
mod library;
mod mpi;

use std::path::Path;

use anyhow::{bail, Result};
use lapscope_data::model::Mode;
use lapscope_trace::{DeviceLane, Direction, Operation, RequestEnd};

use self::definitions::{Communicators, Location, Regions, What};
use self::library::{c_text, Handle, Library};
use self::mpi::{collective_op, sizes};
use crate::definitions::Definitions;
use crate::event::EventKind;
use crate::rank::RankEvents;
use crate::shown::ShownWindows;
use crate::write::Writer;

/// The name of the archive's files: `traces.otf2` is the one that others open.
pub const NAME: &str = "traces";

const WRITE: u8 = 0;
const POSIX: u8 = 1;
const NO_COMPRESSION: u8 = 1;
/// Bytes; a location has one of each at a time.
const CHUNK_OF_EVENTS: u64 = 1 << 20;
const CHUNK_OF_DEFINITIONS: u64 = 4 << 20;
/// No root, and no reference.
const NO_ROOT: u32 = u32::MAX;

/// Attribute of calls: where they are made.
const SITE: u32 = 0;

/// Writes an archive.
pub struct Otf2 {
    library: Library,
    archive: Handle,
    attributes: Handle,
    regions: Regions,
    communicators: Communicators,
    locations: Vec<Location>,
}

impl Otf2 {
    /// Makes an archive in a directory that is there, or is made.
    ///
    /// # Errors
    /// There is no libotf2 here, or nothing can be written there.
    pub fn create(directory: &Path, run: &Definitions, shown: &ShownWindows) -> Result<Otf2> {
        let library = Library::open()?;
        let (path, name) = (c_text(&directory.to_string_lossy()), c_text(NAME));
        // SAFETY: texts end with a zero; constants are those of the headers.
        let archive = unsafe {
            (library.open_archive)(
                path.as_ptr(),
                name.as_ptr(),
                WRITE,
                CHUNK_OF_EVENTS,
                CHUNK_OF_DEFINITIONS,
                POSIX,
                NO_COMPRESSION,
            )
        };
        if archive.is_null() {
            bail!("{}: OTF2 cannot make an archive there", directory.display());
        }
        // SAFETY: gives a handle.
        let attributes = unsafe { (library.new_attributes)() };
        Ok(Otf2 {
            library,
            archive,
            attributes,
            regions: Regions::collect(run),
            communicators: Communicators::collect(run, shown),
            locations: Vec::new(),
        })
    }

    /// Nothing can be told of non-blocking collectives: the library is older than 3.0.
    pub fn lacks_collectives(&self) -> bool {
        self.library.collective_request.is_none() || self.library.collective_complete.is_none()
    }

    /// Calls a function of the library with a handle in front.
    fn check(&self, code: i32) -> Result<()> {
        self.library.check(code)
    }
}

impl Writer for Otf2 {
    fn begin(&mut self, run: &Definitions) -> Result<()> {
        let creator = c_text(concat!("lapscope ", env!("CARGO_PKG_VERSION")));
        let description = c_text(&run.command);
        self.library.flush_with(self.archive)?;
        // SAFETY: the archive is open; texts end with a zero and are copied.
        unsafe {
            self.check((self.library.set_serial)(self.archive))?;
            self.check((self.library.set_creator)(self.archive, creator.as_ptr()))?;
            self.check((self.library.set_description)(self.archive, description.as_ptr()))?;
            self.check((self.library.open_event_files)(self.archive))
        }
    }

    fn rank(&mut self, run: &Definitions, rank: &RankEvents<'_>) -> Result<()> {
        let threads = rank.rank().threads.count();
        let first = self.locations.len() as u64;
        let mut writers = Vec::new();
        for thread in 0..threads as u64 {
            // SAFETY: event files are open; each location is asked for once.
            let writer = unsafe { (self.library.event_writer)(self.archive, first + thread) };
            if writer.is_null() {
                bail!("OTF2 cannot write a further location");
            }
            writers.push(writer);
        }
        let marked = self.regions.marked(&rank.regions);
        let lanes = &rank.rank().devices.lanes;
        let mut device_writers = Vec::new();
        for (number, lane) in (first + threads as u64..).zip(lanes) {
            // SAFETY: as above.
            let writer = unsafe { (self.library.event_writer)(self.archive, number) };
            if writer.is_null() {
                bail!("OTF2 cannot write a further location");
            }
            device_writers.push((writer, self.regions.of_device(lane.work)));
        }
        let out = Out { otf2: self, run, rank, writers: &writers, device_writers, marked };
        for event in &rank.events {
            out.event(run.moment(event.at), event.what)?;
        }
        let device_writers = out.device_writers;
        let of_threads = (0..).zip(writers).map(|(thread, writer)| (What::Thread(thread), writer));
        let of_lane =
            |(lane, (writer, _)): (&DeviceLane, _)| (What::Gpu(lane.device, lane.work), writer);
        let of_devices = lanes.iter().zip(device_writers).map(of_lane);
        for (what, writer) in of_threads.chain(of_devices) {
            let mut events = 0;
            // SAFETY: the writer is open, and not used behind this.
            unsafe {
                self.check((self.library.count_events)(writer, &mut events))?;
                self.check((self.library.close_event_writer)(self.archive, writer))?;
            }
            self.locations.push(Location { place: rank.place, what, events });
        }
        Ok(())
    }

    fn finish(&mut self, run: &Definitions) -> Result<()> {
        // SAFETY: no event writer is open any more; every location gets its own file of definitions, which has none.
        unsafe {
            self.check((self.library.close_event_files)(self.archive))?;
            self.check((self.library.open_definition_files)(self.archive))?;
            for location in 0..self.locations.len() as u64 {
                let writer = (self.library.definition_writer)(self.archive, location);
                self.check((self.library.close_definition_writer)(self.archive, writer))?;
            }
            self.check((self.library.close_definition_files)(self.archive))?;
        }
        self.define(run)?;
        let archive = std::mem::replace(&mut self.archive, std::ptr::null_mut());
        // SAFETY: it is not used behind this.
        unsafe { self.check((self.library.close_archive)(archive)) }
    }
}

impl Drop for Otf2 {
    fn drop(&mut self) {
        // SAFETY: a null archive is none; the attributes are used by nobody any more.
        unsafe {
            (self.library.close_archive)(self.archive);
            (self.library.delete_attributes)(self.attributes);
        }
    }
}

/// A rank on its way into its locations.
struct Out<'a> {
    otf2: &'a Otf2,
    run: &'a Definitions,
    rank: &'a RankEvents<'a>,
    /// By thread.
    writers: &'a [Handle],
    /// By lane of its GPUs, with the region that its work is.
    device_writers: Vec<(Handle, u32)>,
    /// The regions of what the program marked; `None` of what has none.
    marked: Vec<Option<u32>>,
}

type EnterOrLeave = unsafe extern "C" fn(Handle, Handle, u64, u32) -> i32;

/// As functions of the library take it: the writer, no attributes, the time.
type Head = (Handle, Handle, u64);

impl Out<'_> {
    fn event(&self, at: u64, what: EventKind) -> Result<()> {
        match what {
            EventKind::Enter(visit) => self.enter(at, visit),
            EventKind::Leave(visit) => self.leave(at, visit),
            EventKind::Posted(_) | EventKind::Ended(_) => Ok(()), // calls tell that
            EventKind::RegionBegins(region) => self.marked(at, region, self.otf2.library.enter),
            EventKind::RegionEnds(region) => self.marked(at, region, self.otf2.library.leave),
            EventKind::DeviceBegins(span) => self.device(at, span, self.otf2.library.enter),
            EventKind::DeviceEnds(span) => self.device(at, span, self.otf2.library.leave),
        }
    }

    /// With several threads it is not known which of them is in the region: of these nothing is told.
    fn marked(&self, at: u64, region: u32, write: EnterOrLeave) -> Result<()> {
        let (Some(number), [writer]) = (self.marked[region as usize], self.writers) else {
            return Ok(());
        };
        // SAFETY: the writer is open.
        self.otf2.check(unsafe { write(*writer, std::ptr::null_mut(), at, number) })
    }

    fn device(&self, at: u64, span: u32, write: EnterOrLeave) -> Result<()> {
        let lane = self.rank.device_spans[span as usize].lane;
        let (writer, region) = self.device_writers[lane as usize];
        // SAFETY: the writer is open.
        self.otf2.check(unsafe { write(writer, std::ptr::null_mut(), at, region) })
    }

    fn head(&self, visit: u32, at: u64) -> Head {
        let thread = self.rank.visits[visit as usize].thread;
        (self.writers[usize::from(thread)], std::ptr::null_mut(), at)
    }

    fn region(&self, visit: u32) -> (u32, Option<u32>) {
        let operation = self.rank.operation(self.rank.visits[visit as usize].operation);
        self.otf2.regions.of_site(operation.site)
    }

    fn enter(&self, at: u64, visit: u32) -> Result<()> {
        let Otf2 { library, attributes, .. } = self.otf2;
        let head = self.head(visit, at);
        let (region, site) = self.region(visit);
        // SAFETY: writer and attributes are open; the list is empty again behind the event.
        unsafe {
            if let Some(site) = site {
                library.check((library.add_string)(*attributes, SITE, site))?;
            }
            library.check((library.enter)(head.0, *attributes, at, region))?;
        }
        for &endpoint in self.rank.began(visit) {
            self.begin(head, endpoint)?;
        }
        Ok(())
    }

    fn leave(&self, at: u64, visit: u32) -> Result<()> {
        let library = &self.otf2.library;
        let head = self.head(visit, at);
        for &endpoint in self.rank.ended(visit) {
            self.complete(head, endpoint)?;
        }
        for &endpoint in self.rank.began(visit) {
            if !self.rank.operation_of(endpoint).is_request {
                self.complete(head, endpoint)?;
            }
        }
        // SAFETY: the writer is open.
        unsafe { library.check((library.leave)(head.0, head.1, at, self.region(visit).0)) }
    }

    /// The same of no other request of the run.
    fn request(&self, endpoint: u32) -> u64 {
        ((self.rank.place as u64) << 32) | u64::from(endpoint)
    }

    /// A message that was matched: the other end, the communicator, the tag and the bytes. Of others nothing is written, as readers
    /// wait for their other end.
    fn message(&self, endpoint: u32) -> Option<(u32, u32, u32, u64)> {
        let half = self.rank.trace.half(self.rank.place, endpoint as usize);
        let operation = half.operation;
        if operation.mode == Mode::Partitioned {
            return None;
        }
        let message = self.rank.shown.message(self.rank.trace, &half)?;
        let key = self.rank.trace.communicators.get(operation.comm as usize);
        let (communicator, peer) =
            self.otf2.communicators.of_message(self.run, key, (self.rank.place, message.peer))?;
        let tag = operation.tag.and_then(|tag| u32::try_from(tag).ok()).unwrap_or(0);
        Some((peer, communicator, tag, operation.bytes.0))
    }

    fn begin(&self, (writer, none, at): Head, endpoint: u32) -> Result<()> {
        let library = &self.otf2.library;
        let operation = self.rank.operation_of(endpoint);
        let request = self.request(endpoint);
        // SAFETY: the writer is open.
        let code = unsafe {
            match (operation.direction, operation.is_request) {
                (Direction::Send, true) => match self.message(endpoint) {
                    Some((peer, comm, tag, bytes)) => {
                        (library.isend)(writer, none, at, peer, comm, tag, bytes, request)
                    }
                    None => 0,
                },
                (Direction::Send, false) => match self.message(endpoint) {
                    Some((peer, comm, tag, bytes)) => {
                        (library.send)(writer, none, at, peer, comm, tag, bytes)
                    }
                    None => 0,
                },
                (Direction::Receive, true) => match self.message(endpoint) {
                    Some(_) => (library.irecv_request)(writer, none, at, request),
                    None => 0,
                },
                (Direction::Collective, false) if self.meeting(endpoint).is_some() => {
                    (library.collective_begin)(writer, none, at)
                }
                (Direction::Collective, true) if self.meeting(endpoint).is_some() => {
                    library.collective_request.map_or(0, |write| write(writer, none, at, request))
                }
                _ => 0,
            }
        };
        library.check(code)
    }

    fn complete(&self, (writer, none, at): Head, endpoint: u32) -> Result<()> {
        let library = &self.otf2.library;
        let operation = self.rank.operation_of(endpoint);
        let request = self.request(endpoint);
        let is_sent = self.touches_post(endpoint);
        // SAFETY: the writer is open.
        let code = unsafe {
            match (operation.direction, operation.is_request) {
                (Direction::Send, true) if is_sent && self.message(endpoint).is_some() => {
                    (library.isend_complete)(writer, none, at, request)
                }
                (Direction::Receive, is_request) => match self.message(endpoint) {
                    Some((peer, comm, tag, bytes)) if is_request => {
                        (library.irecv)(writer, none, at, peer, comm, tag, bytes, request)
                    }
                    Some((peer, comm, tag, bytes)) => {
                        (library.recv)(writer, none, at, peer, comm, tag, bytes)
                    }
                    None => 0,
                },
                (Direction::Collective, is_request) if is_sent || !is_request => {
                    self.collective(writer, at, endpoint, operation)
                }
                _ => 0,
            }
        };
        library.check(code)
    }

    /// Whether the post of a request is on the timeline.
    fn touches_post(&self, endpoint: u32) -> bool {
        let half = self.rank.trace.half(self.rank.place, endpoint as usize);
        self.rank.shown.touches(self.rank.place, half.post_begin, half.post_end)
    }

    /// The collective and the communicator as OTF2 has them, of one that all are known to take part in.
    fn meeting(&self, endpoint: u32) -> Option<(u8, u32)> {
        let half = self.rank.trace.half(self.rank.place, endpoint as usize);
        let calls = &self.rank.trace.blocking_calls;
        let op = collective_op(&calls.get(half.operation.blocking_call as usize)?.name)?;
        let (communicator, _) = self.run.meeting(self.rank.trace, &half)?;
        Some((op, communicator))
    }

    unsafe fn collective(
        &self,
        writer: Handle,
        at: u64,
        endpoint: u32,
        operation: &Operation,
    ) -> i32 {
        let library = &self.otf2.library;
        let Some((op, communicator)) = self.meeting(endpoint) else { return 0 };
        if operation.ended == RequestEnd::Cancelled {
            return 0;
        }
        let needs = self.rank.trace.blocking_calls[operation.blocking_call as usize].needs;
        let is_root = operation.peer == Some(self.rank.place as u32);
        let (sent, received) = sizes(needs, is_root, operation.bytes.0);
        let root = operation
            .peer
            .and_then(|root| self.otf2.communicators.rank_in(communicator, root as usize));
        let root = root.unwrap_or(NO_ROOT);
        let none = std::ptr::null_mut();
        if !operation.is_request {
            return (library.collective_end)(
                writer,
                none,
                at,
                op,
                communicator,
                root,
                sent,
                received,
            );
        }
        let request = self.request(endpoint);
        library.collective_complete.map_or(0, |write| {
            write(writer, none, at, op, communicator, root, sent, received, request)
        })
    }
}
