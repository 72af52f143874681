//! Rows of ranks as bytes, to be read again many times faster than out of their databases: what parts of a run that is larger than
//! memory are read from the second time on. The format is that of one process: nobody else reads it.
//!
//! A file begins with what is small, as CBOR behind its length; lists of very many rows follow as they lie in memory.

use std::fs::File;
use std::io::{self, Write};

use bytemuck::Pod;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::endpoint::{Call, Endpoint};
use super::file::Communicators;
use super::presence::Presence;
use super::row_list::{self, RowList};
use super::rows::RankRows;

/// How many rows of a rank follow, of each kind.
#[derive(Clone, Copy, Serialize, Deserialize)]
pub(super) struct Lengths {
    pub endpoints: usize,
    pub calls: usize,
    intervals: usize,
}

/// What is as large as the run.
pub(super) struct Lists<'a> {
    pub endpoints: &'a [Endpoint],
    pub calls: &'a [Call],
    pub presence: &'a Presence,
}

impl Lists<'_> {
    pub fn lengths(&self) -> Lengths {
        let intervals = self.presence.intervals().len();
        Lengths { endpoints: self.endpoints.len(), calls: self.calls.len(), intervals }
    }

    /// # Errors
    /// Of the writer.
    pub fn write(&self, out: &mut (impl Write + ?Sized)) -> io::Result<()> {
        row_list::write(out, self.endpoints)?;
        row_list::write(out, self.calls)?;
        let intervals = self.presence.intervals().iter();
        row_list::write(out, &intervals.map(|&(begin, end)| [begin, end]).collect::<Vec<_>>())
    }
}

/// # Errors
/// Of the writer.
pub(super) fn write(
    out: &mut (impl Write + ?Sized),
    communicators: &Communicators,
    rows: &RankRows,
) -> io::Result<()> {
    let RankRows { endpoints, calls, presence, .. } = rows;
    let lists = Lists { endpoints, calls, presence };
    write_small(out, &(communicators, rows, lists.lengths()))?;
    lists.write(out)
}

/// What [`write`] wrote.
///
/// # Errors
/// Of the file.
pub(super) fn read(input: &mut Packed) -> io::Result<(Communicators, RankRows)> {
    let (communicators, rows, lengths): (_, RankRows, Lengths) = input.small()?;
    let endpoints = input.rows(lengths.endpoints)?;
    let calls = input.rows(lengths.calls)?;
    let presence = input.presence(&lengths)?;
    Ok((communicators, RankRows { endpoints, calls, presence, ..rows }))
}

/// Rows begin at multiples of so many bytes.
const ALIGNMENT: usize = 8;

/// # Errors
/// Of the writer.
pub(super) fn write_small(
    out: &mut (impl Write + ?Sized),
    small: &impl Serialize,
) -> io::Result<()> {
    let mut bytes = cbor4ii::serde::to_vec(Vec::new(), small).map_err(io::Error::other)?;
    let length = bytes.len() as u64;
    bytes.resize(bytes.len().next_multiple_of(ALIGNMENT), 0);
    out.write_all(&length.to_le_bytes())?;
    out.write_all(&bytes)
}

/// A file that is read front to back.
pub(super) struct Packed {
    file: File,
    at: u64,
}

impl Packed {
    pub fn new(file: File) -> Packed {
        Packed { file, at: 0 }
    }

    /// What [`write_small`] wrote.
    ///
    /// # Errors
    /// Of the file; it is nothing of that kind.
    pub fn small<T: DeserializeOwned>(&mut self) -> io::Result<T> {
        let length = self.rows::<u64>(1)?[0] as usize;
        let bytes = self.rows::<u8>(length)?;
        self.at = self.at.next_multiple_of(ALIGNMENT as u64);
        cbor4ii::serde::from_slice(&bytes).map_err(io::Error::other)
    }

    /// So many rows.
    ///
    /// # Errors
    /// Of the file; it has not so many.
    pub fn rows<T: Pod>(&mut self, count: usize) -> io::Result<Vec<T>> {
        let rows = row_list::read(&self.file, self.at, count)?;
        self.at += size_of_val(&rows[..]) as u64;
        Ok(rows)
    }

    /// As [`Packed::rows`], to be read when they are looked at.
    ///
    /// # Errors
    /// As [`Packed::rows`].
    pub fn column<T: Pod>(&mut self, count: usize) -> io::Result<RowList<T>> {
        let rows = RowList::of_file(&self.file, self.at, count)?;
        self.at += size_of_val(&rows[..]) as u64;
        Ok(rows)
    }

    /// # Errors
    /// As [`Packed::rows`].
    pub fn presence(&mut self, lengths: &Lengths) -> io::Result<Presence> {
        let intervals = self.rows::<[i64; 2]>(lengths.intervals)?.into_iter();
        Ok(Presence::of_intervals(intervals.map(|[begin, end]| (begin, end)).collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::endpoint::NONE;
    use crate::endpoint::{Observation, Span};
    use crate::left_out::LeftOut;
    use crate::marks::RankMarks;
    use crate::message_waits::VainProbes;
    use crate::{BusySpan, DeviceWork, Mark, Starved};
    use lapscope_data::places::SiteId;

    #[test]
    fn rows_come_back_as_they_were() {
        let endpoint = |number: u32| Endpoint {
            begin: -7 + i64::from(number),
            post: Span::new(100),
            window: Span::NONE,
            mpi: Span::new(1 << 40),
            outstanding: Span::new(3),
            operation: number,
            call: NONE,
            partner: 5,
            observed: 6,
        };
        let call = Call::new(9, Some(8), 1, 2);
        let rows = RankRows {
            endpoints: (0..20_000).map(endpoint).collect(),
            calls: vec![call; 3],
            observations: vec![Observation { last_incomplete: Some(4), ..Observation::default() }],
            presence: Presence::new(vec![(10, 20), (30_000, 40_000)]),
            starved: vec![Starved { begin: 1, end: 2, wait: 1 }],
            device_busy: vec![(3, DeviceWork::Kernel, BusySpan { begin: 4, end: 6, busy: 1 })],
            vain_probes: vec![VainProbes { site: SiteId::default(), count: 4, ns: 5 }],
            marks: RankMarks {
                marks: vec![Mark { at: 8, level: 1, name: Some(0) }],
                names: vec!["solve".into()],
            },
            left_out: vec![LeftOut { operation: 3, count: 4, begin: 5, end: 6, comm: Some(7) }],
            ..RankRows::default()
        };
        let mut file = tempfile::tempfile().unwrap();
        write(&mut file, &Communicators::default(), &rows).unwrap();
        let again = || read(&mut Packed::new(file.try_clone().unwrap()));
        let (_, came) = again().unwrap();
        let shown = |rows: &RankRows| {
            format!(
                "{:?} {:?} {:?} {:?} {:?} {:?} {:?} {:?} {:?}",
                rows.endpoints,
                rows.calls,
                rows.observations,
                rows.presence.intervals(),
                rows.starved,
                rows.device_busy,
                rows.vain_probes,
                rows.left_out,
                rows.marks
            )
        };
        assert_eq!(shown(&rows), shown(&came));
        file.set_len(file.metadata().unwrap().len() - 1).unwrap();
        assert!(again().is_err());
    }
}
