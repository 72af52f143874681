//! A spool that is read while its rank writes it: by pread into own memory, never mapped, as a rank that ends cuts its spool, and
//! what is mapped beyond the end of a file kills who touches it.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

use super::header::Header;
use super::layout::{chunk as at, header, u16_at, u32_at, u64_at};
use super::stream::Stream;
use super::tables::Tables;
use crate::files::open_regular;

/// Bytes that are read at a time.
const PIECE: usize = 256 << 10;
/// The longest record that is believed: a communicator of ten million members.
const LONGEST_RECORD: u64 = 64 << 20;

/// A chunk, as far as it was read.
#[derive(Debug)]
pub struct Chunk {
    /// Place of its header in the file.
    at: u64,
    pub bytes: u64,
    pub kind: u16,
    pub thread: u16,
    pub has_state: bool,
    base: u64,
    /// Bytes of records that were read; of streams.
    done: u64,
    /// Bytes of records that were in use when it was last asked.
    used: u64,
    is_over: bool,
}

/// What is known of a spool, and how far it was read.
#[derive(Debug)]
pub struct Spool {
    pub path: PathBuf,
    file: Option<File>,
    inode: (u64, u64),
    bytes: u64,
    pub header: Header,
    pub chunks: Vec<Chunk>,
    /// Where the list of chunks goes on.
    next_chunk: u64,
    /// Places where no chunk was yet, though one was behind them.
    gaps: Vec<u64>,
    streams: Vec<Stream>,
    pub tables: Tables,
    /// Chunks and records that could not be read.
    pub damaged: u64,
}

fn cannot(error: io::Error) -> String {
    format!("cannot be read ({error})")
}

/// Opens a spool and reads its header.
fn open(path: &Path) -> Result<(File, Header, (u64, u64)), String> {
    let why = |error: io::Error| match error.kind() {
        io::ErrorKind::NotFound => "is gone".to_owned(),
        io::ErrorKind::InvalidInput => "is not a regular file, and so no spool".to_owned(),
        _ => format!("cannot be read ({error})"),
    };
    let file = open_regular(path).map_err(why)?;
    let facts = file.metadata().map_err(why)?;
    let header = read_header(&file)?;
    Ok((file, header, (facts.dev(), facts.ino())))
}

fn read_header(file: &File) -> Result<Header, String> {
    let mut bytes = [0; header::BYTES];
    file.read_exact_at(&mut bytes, 0).map_err(|error| match error.kind() {
        io::ErrorKind::UnexpectedEof => "is shorter than a spool's header".to_owned(),
        _ => format!("cannot be read ({error})"),
    })?;
    Header::parse(&bytes).map_err(str::to_owned)
}

impl Spool {
    /// # Errors
    /// Why nothing can be read of it, as a sentence's end.
    pub fn open(path: &Path, calls: usize) -> Result<Spool, String> {
        let (file, header, inode) = open(path)?;
        Ok(Spool {
            path: path.into(),
            file: Some(file),
            inode,
            bytes: 0,
            header,
            chunks: Vec::new(),
            next_chunk: header::BYTES as u64,
            gaps: Vec::new(),
            streams: Vec::new(),
            tables: Tables::new(calls),
            damaged: 0,
        })
    }

    /// Lets go of the file until it is asked for again.
    pub fn close(&mut self) {
        self.file = None;
    }

    /// Whether it is the file that it was: the name may have become another's.
    pub fn is_same(&self) -> bool {
        let facts = std::fs::metadata(&self.path);
        facts.map_or(true, |facts| (facts.dev(), facts.ino()) == self.inode)
    }

    /// # Errors
    /// Why it cannot be opened, as a sentence's end.
    pub fn open_again(&mut self) -> Result<(), String> {
        if self.file.is_none() {
            let (file, _, inode) = open(&self.path)?;
            if inode != self.inode {
                return Err("is another file than it was".to_owned());
            }
            self.file = Some(file);
        }
        Ok(())
    }

    /// Finds out how far the records go.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn begin_look(&mut self) -> Result<(), String> {
        let file = self.file.take().ok_or("is not open")?;
        let result = read_header(&file).and_then(|header| {
            self.header = header;
            self.list(&file).map_err(cannot)
        });
        self.file = Some(file);
        result
    }

    /// Reads the records up to there.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn read_records(&mut self) -> Result<(), String> {
        let file = self.file.take().ok_or("is not open")?;
        let result = self.read_streams(&file).map_err(cannot);
        self.file = Some(file);
        result
    }

    /// Whether there are records behind those.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn has_grown(&mut self) -> Result<bool, String> {
        let file = self.file.as_ref().ok_or("is not open")?;
        for chunk in self.chunks.iter().filter(|chunk| chunk.kind == at::STREAM && !chunk.is_over) {
            let head = read_some::<{ at::BYTES }>(file, chunk.at).map_err(cannot)?;
            if head.is_some_and(|head| u64_at(&head, at::USED) > chunk.used) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn list(&mut self, file: &File) -> io::Result<()> {
        let facts = file.metadata()?;
        self.bytes = facts.len();
        self.list_chunks(file)?;
        self.ask_used(file)?;
        // Ids are given out one by one, and each has a record. A file may say that it is longer than it is: what it takes on its
        // disk bounds what it can define, also where file systems compress.
        let on_disk = (facts.blocks() * 512).saturating_mul(16).saturating_add(1 << 20);
        self.tables.set_room(self.bytes.min(on_disk));
        Ok(())
    }

    fn read_streams(&mut self, file: &File) -> io::Result<()> {
        let mut buffer = Vec::new();
        for place in 0..self.chunks.len() {
            let chunk = &self.chunks[place];
            if chunk.kind == at::STREAM && !chunk.is_over {
                self.read_stream(file, place, &mut buffer)?;
            }
        }
        self.tables.settle();
        Ok(())
    }

    /// Chunks that came. One that is being made has no mark yet: it is looked for again.
    fn list_chunks(&mut self, file: &File) -> io::Result<()> {
        for gap in std::mem::take(&mut self.gaps) {
            if self.take_chunk(file, gap)?.is_none() {
                self.gaps.push(gap);
            }
        }
        let mut gap = None;
        let mut place = self.next_chunk;
        while place.saturating_add(at::BYTES as u64) <= self.bytes {
            match self.take_chunk(file, place)? {
                Some(bytes) => {
                    self.gaps.extend(gap.take());
                    place += bytes;
                    self.next_chunk = place;
                }
                None => {
                    gap = gap.or(Some(place));
                    place = next_place(file, place);
                }
            }
        }
        Ok(())
    }

    /// Takes the chunk at a place into the list, if there is one; says how long it is.
    fn take_chunk(&mut self, file: &File, place: u64) -> io::Result<Option<u64>> {
        let Some(head) = read_some::<{ at::BYTES }>(file, place)? else { return Ok(None) };
        let bytes = u64_at(&head, at::SIZE);
        let is_sound = u32_at(&head, 0) == at::MAGIC
            && bytes >= at::ALIGN
            && bytes % at::ALIGN == 0
            && (u16_at(&head, at::KIND) == at::STREAM || bytes <= at::MOST_ENTRIES_BYTES)
            && place.checked_add(bytes).is_some();
        if !is_sound {
            return Ok(None);
        }
        self.chunks.push(Chunk {
            at: place,
            bytes,
            kind: u16_at(&head, at::KIND),
            thread: u16_at(&head, at::THREAD),
            has_state: u64_at(&head, at::HAS_STATE) == 1,
            base: u64_at(&head, at::BASE),
            done: 0,
            used: 0,
            is_over: false,
        });
        Ok(Some(bytes))
    }

    /// How much of each stream is whole. Of all before any is read: what a record speaks of was defined before it, and may lie in
    /// another thread's stream. Of a thread's chunks only the last one grows.
    fn ask_used(&mut self, file: &File) -> io::Result<()> {
        let end = self.bytes;
        for chunk in &mut self.chunks {
            if chunk.kind != at::STREAM || chunk.is_over {
                continue;
            }
            let Some(head) = read_some::<{ at::BYTES }>(file, chunk.at)? else { continue };
            let room =
                chunk.bytes.min(end.saturating_sub(chunk.at)).saturating_sub(at::BYTES as u64);
            let used = u64_at(&head, at::USED);
            self.damaged += u64::from(used > room);
            chunk.used = used.min(room).max(chunk.used);
        }
        Ok(())
    }

    fn read_stream(&mut self, file: &File, place: usize, buffer: &mut Vec<u8>) -> io::Result<()> {
        let thread = self.chunks[place].thread;
        let has_next = |chunk: &Chunk| chunk.kind == at::STREAM && chunk.thread == thread;
        let is_last = !self.chunks[place + 1..].iter().any(has_next);
        let chunk = &mut self.chunks[place];
        let number = usize::from(thread);
        if self.streams.len() <= number {
            self.streams.resize_with(number + 1, Stream::default);
        }
        let stream = &mut self.streams[number];
        if chunk.done == 0 {
            stream.begin_chunk(chunk.base);
        }
        let mut wanted = PIECE as u64;
        while chunk.done < chunk.used {
            let piece = wanted.min(chunk.used - chunk.done) as usize;
            if buffer.len() < piece {
                buffer.resize(piece, 0);
            }
            let from = chunk.at + at::BYTES as u64 + chunk.done;
            let got = read_up_to(file, &mut buffer[..piece], from)?;
            let fed = stream.feed(&buffer[..got], thread, &mut self.tables);
            chunk.done += fed.bytes as u64;
            wanted = fed.needed.max(PIECE as u64);
            let is_whole = got as u64 == chunk.used - (from - chunk.at - at::BYTES as u64);
            let is_stuck = fed.bytes == 0 && (is_whole || fed.needed <= got as u64);
            if fed.is_damaged || is_stuck || got < piece || wanted > LONGEST_RECORD {
                self.damaged += 1;
                stream.forget();
                chunk.is_over = true;
                return Ok(());
            }
        }
        // a chunk that was asked before the thread took the next one may have grown since
        chunk.is_over = !is_last && chunk.done == chunk.used && {
            let head = read_some::<{ at::BYTES }>(file, chunk.at)?;
            head.map_or(true, |head| u64_at(&head, at::USED) <= chunk.used)
        };
        Ok(())
    }

    /// What lies behind the header of a chunk, as far as it is there.
    ///
    /// # Errors
    /// Of pread(2).
    pub fn read_chunk(&self, chunk: &Chunk, bytes: u64, into: &mut Vec<u8>) -> io::Result<()> {
        let room = chunk.bytes.min(self.bytes.saturating_sub(chunk.at));
        let wanted = room.saturating_sub(at::BYTES as u64).min(bytes) as usize;
        into.resize(wanted, 0);
        let Some(file) = &self.file else { return Err(io::ErrorKind::NotFound.into()) };
        let got = read_up_to(file, into, chunk.at + at::BYTES as u64)?;
        into.truncate(got);
        Ok(())
    }

    /// The stream of a thread.
    pub fn stream(&self, thread: u16) -> Option<&Stream> {
        self.streams.get(usize::from(thread))
    }

    /// Numbers of threads that may have records.
    pub fn threads(&self) -> impl Iterator<Item = u16> {
        0..self.streams.len() as u16
    }

    /// Whether all that the rank did was recorded, and could be read.
    pub fn is_whole(&self) -> bool {
        let found = self.chunks.len() as u64;
        !self.header.lacks_records
            && self.damaged == 0
            && found >= self.header.chunks
            && !self.tables.is_damaged()
    }
}

/// The next place where a chunk may begin: a file may be longer than its disk, and nothing is looked for in its holes.
fn next_place(file: &File, place: u64) -> u64 {
    let next = place + at::ALIGN;
    let from = next as libc::off_t;
    // SAFETY: a descriptor that is open as long as `file` is borrowed; where it stands nobody asks, as all is read by pread
    match unsafe { libc::lseek(file.as_raw_fd(), from, libc::SEEK_DATA) } {
        -1 if io::Error::last_os_error().raw_os_error() == Some(libc::ENXIO) => u64::MAX,
        written => next + (written.max(from) - from) as u64 / at::ALIGN * at::ALIGN,
    }
}

fn read_some<const BYTES: usize>(file: &File, at: u64) -> io::Result<Option<[u8; BYTES]>> {
    let mut bytes = [0; BYTES];
    Ok((read_up_to(file, &mut bytes, at)? == BYTES).then_some(bytes))
}

/// Fewer bytes than there is room for only at the end of the file.
fn read_up_to(file: &File, into: &mut [u8], at: u64) -> io::Result<usize> {
    let mut got = 0;
    while got < into.len() {
        match file.read_at(&mut into[got..], at + got as u64) {
            Ok(0) => break,
            Ok(more) => got += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(got)
}
