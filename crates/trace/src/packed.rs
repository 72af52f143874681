//! The rows of one rank as bytes, to be read again many times faster than out of its database: what parts of a run that is larger
//! than memory are read from the second time on. The format is that of one process: nobody else reads it.

use std::io::{self, Read, Write};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::device_time::DeviceRow;
use super::endpoint::{Call, Endpoint, Observation, Span};
use super::file::Communicators;
use super::handles::MadeHandles;
use super::marks::RankMarks;
use super::message_waits::{MessageWait, VainProbes};
use super::presence::Presence;
use super::rows::FileOperation;
use super::rows::RankRows;
use super::{Detail, LeftOut, Starved};

/// What is small.
#[derive(Serialize, Deserialize)]
struct Small {
    communicators: Communicators,
    operations: Vec<FileOperation>,
    starved: Vec<Starved>,
    device_busy: Vec<DeviceRow>,
    observations: Vec<Observation>,
    message_waits: Vec<MessageWait>,
    vain_probes: Vec<VainProbes>,
    left_out: Vec<LeftOut>,
    detail: Vec<Detail>,
    marks: RankMarks,
    made: MadeHandles,
    other_counts: Vec<u32>,
    endpoints: u64,
    calls: u64,
    intervals: u64,
}

const ENDPOINT_BYTES: usize = 40;
const CALL_BYTES: usize = 25;
const INTERVAL_BYTES: usize = 16;
const NUMBER_BYTES: usize = 4;
/// Bytes that are read or written at once, about.
const CHUNK: usize = 1 << 18;

/// # Errors
/// Of the writer.
pub(super) fn write(
    out: &mut (impl Write + ?Sized),
    communicators: &Communicators,
    rows: &RankRows,
) -> io::Result<()> {
    let intervals = rows.presence.intervals();
    let small = Small {
        communicators: communicators.clone(),
        operations: rows.operations.clone(),
        starved: rows.starved.clone(),
        device_busy: rows.device_busy.clone(),
        observations: rows.observations.clone(),
        message_waits: rows.message_waits.clone(),
        vain_probes: rows.vain_probes.clone(),
        left_out: rows.left_out.clone(),
        detail: rows.detail.clone(),
        marks: rows.marks.clone(),
        made: rows.made,
        other_counts: rows.other_counts.clone(),
        endpoints: rows.endpoints.len() as u64,
        calls: rows.calls.len() as u64,
        intervals: intervals.len() as u64,
    };
    write_small(out, &small)?;
    write_all(out, rows.endpoints.iter(), |endpoint, bytes| {
        bytes.extend(endpoint.begin.to_le_bytes());
        let spans = [endpoint.post, endpoint.window, endpoint.mpi, endpoint.outstanding];
        let (operation, call) = (endpoint.operation, endpoint.call);
        let spans = spans.map(Span::bits).into_iter();
        let words = spans.chain([operation, call, endpoint.partner, endpoint.observed]);
        words.for_each(|word| bytes.extend(word.to_le_bytes()));
    })?;
    write_all(out, rows.calls.iter(), |call, bytes| {
        bytes.extend(call.begin.to_le_bytes());
        bytes.extend(call.duration.to_le_bytes());
        bytes.extend(call.operation.to_le_bytes());
        bytes.extend(call.completed.to_le_bytes());
        bytes.push(call.returned.into());
    })?;
    write_all(out, intervals.iter(), |(begin, end), bytes| {
        bytes.extend(begin.to_le_bytes());
        bytes.extend(end.to_le_bytes());
    })
}

/// What [`write`] wrote.
///
/// # Errors
/// Of the reader.
pub(super) fn read(input: &mut impl Read) -> io::Result<(Communicators, RankRows)> {
    let small: Small = read_small(input)?;
    let endpoint = |bytes: &[u8]| Endpoint {
        begin: long(bytes, 0),
        post: Span::from_bits(word(bytes, 8)),
        window: Span::from_bits(word(bytes, 12)),
        mpi: Span::from_bits(word(bytes, 16)),
        outstanding: Span::from_bits(word(bytes, 20)),
        operation: word(bytes, 24),
        call: word(bytes, 28),
        partner: word(bytes, 32),
        observed: word(bytes, 36),
    };
    let endpoints = read_all::<_, ENDPOINT_BYTES>(input, small.endpoints, endpoint)?;
    let call = |bytes: &[u8]| Call {
        begin: long(bytes, 0),
        duration: long(bytes, 8),
        operation: word(bytes, 16),
        completed: word(bytes, 20),
        returned: bytes[24] != 0,
    };
    let calls = read_all::<_, CALL_BYTES>(input, small.calls, call)?;
    let interval = |bytes: &[u8]| (long(bytes, 0), long(bytes, 8));
    let intervals = read_all::<_, INTERVAL_BYTES>(input, small.intervals, interval)?;
    let rows = RankRows {
        operations: small.operations,
        observations: small.observations,
        message_waits: small.message_waits,
        vain_probes: small.vain_probes,
        left_out: small.left_out,
        detail: small.detail,
        marks: small.marks,
        made: small.made,
        other_counts: small.other_counts,
        starved: small.starved,
        device_busy: small.device_busy,
        endpoints,
        calls,
        presence: Presence::of_intervals(intervals),
        ..RankRows::default()
    };
    Ok((small.communicators, rows))
}

/// # Errors
/// Of the writer.
pub(super) fn write_small(
    out: &mut (impl Write + ?Sized),
    small: &impl Serialize,
) -> io::Result<()> {
    let mut bytes = Vec::new();
    ciborium::into_writer(small, &mut bytes).map_err(io::Error::other)?;
    out.write_all(&(bytes.len() as u64).to_le_bytes())?;
    out.write_all(&bytes)
}

/// # Errors
/// Of the reader; it is nothing of that kind.
pub(super) fn read_small<T: DeserializeOwned>(input: &mut impl Read) -> io::Result<T> {
    let mut length = [0; 8];
    input.read_exact(&mut length)?;
    let mut bytes = vec![0; u64::from_le_bytes(length) as usize];
    input.read_exact(&mut bytes)?;
    ciborium::from_reader(&bytes[..]).map_err(io::Error::other)
}

/// # Errors
/// Of the writer.
pub(super) fn write_numbers(
    out: &mut (impl Write + ?Sized),
    numbers: impl Iterator<Item = u32>,
) -> io::Result<()> {
    write_all(out, numbers, |number, bytes| bytes.extend(number.to_le_bytes()))
}

/// So many numbers.
///
/// # Errors
/// Of the reader.
pub(super) fn read_numbers(input: &mut impl Read, count: u64) -> io::Result<Vec<u32>> {
    read_all::<_, NUMBER_BYTES>(input, count, |bytes| word(bytes, 0))
}

fn write_all<T>(
    out: &mut (impl Write + ?Sized),
    rows: impl Iterator<Item = T>,
    put: impl Fn(T, &mut Vec<u8>),
) -> io::Result<()> {
    let mut bytes = Vec::with_capacity(CHUNK + ENDPOINT_BYTES);
    for row in rows {
        put(row, &mut bytes);
        if bytes.len() >= CHUNK {
            out.write_all(&bytes)?;
            bytes.clear();
        }
    }
    out.write_all(&bytes)
}

/// So many rows of `SIZE` bytes.
fn read_all<T, const SIZE: usize>(
    input: &mut impl Read,
    rows: u64,
    get: impl Fn(&[u8]) -> T,
) -> io::Result<Vec<T>> {
    let mut left = rows as usize;
    let mut all = Vec::with_capacity(left);
    let mut bytes = vec![0; CHUNK / SIZE * SIZE];
    while left > 0 {
        let now = left.min(CHUNK / SIZE);
        let part = &mut bytes[..now * SIZE];
        input.read_exact(part)?;
        all.extend(part.chunks_exact(SIZE).map(&get));
        left -= now;
    }
    Ok(all)
}

fn long(bytes: &[u8], at: usize) -> i64 {
    i64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::endpoint::NONE;
    use crate::{BusySpan, DeviceWork, Mark};
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
        let call = Call { begin: 9, duration: 8, operation: 1, completed: 2, returned: true };
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
        let mut bytes = Vec::new();
        write(&mut bytes, &Communicators::default(), &rows).unwrap();
        let (_, read) = read(&mut &bytes[..]).unwrap();
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
        assert_eq!(shown(&rows), shown(&read));
        assert!(super::read(&mut &bytes[..bytes.len() - 1]).is_err());
    }
}
