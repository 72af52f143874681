//! Records of a stream chunk, as bytes: every length is checked against what is there.

use super::layout::{comm, module, path, record, u16_at, u32_at, u64_at};

/// What stands at a place.
#[derive(Debug, PartialEq)]
pub enum Record<'a> {
    Hot {
        kind: u8,
        fields: [u64; record::HOT_FIELDS],
        bytes: usize,
    },
    Definition {
        definition: Definition<'a>,
        bytes: usize,
    },
    /// Nothing more in this chunk.
    End,
    /// At least so many bytes are needed to tell.
    Cut(u64),
    Bad,
}

/// A definition, its packed struct, and the texts or numbers behind it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Definition<'a> {
    pub kind: u8,
    pub head: &'a [u8],
    pub first: &'a [u8],
    pub second: &'a [u8],
}

/// The record that `bytes` begin with.
#[inline]
pub fn read(bytes: &[u8]) -> Record<'_> {
    match bytes.first() {
        None => Record::Cut(1),
        Some(&record::END) => Record::End,
        Some(&kind) if (record::CALL..=record::LAST_HOT).contains(&kind) => read_hot(bytes, kind),
        Some(&kind) => read_definition(bytes, kind),
    }
}

#[inline]
fn read_hot(bytes: &[u8], kind: u8) -> Record<'_> {
    let mut fields = [0; record::HOT_FIELDS];
    if bytes.len() >= record::HOT_MOST {
        // whole words stay inside
        let window = &bytes[..record::HOT_MOST];
        let mut lengths = u16_at(window, 1);
        let mut at = record::HOT_HEAD;
        for field in &mut fields {
            let length = usize::from(lengths & 7);
            *field = u64_at(window, at) & ((1u64 << (8 * length)) - 1);
            at += length;
            lengths >>= 3;
        }
        return Record::Hot { kind, fields, bytes: at };
    }
    if bytes.len() < record::HOT_HEAD {
        return Record::Cut(record::HOT_HEAD as u64);
    }
    let mut lengths = u16_at(bytes, 1);
    let mut at = record::HOT_HEAD;
    for field in &mut fields {
        let length = usize::from(lengths & 7);
        let Some(own) = bytes.get(at..at + length) else {
            return Record::Cut(record::HOT_MOST as u64 - 8);
        };
        let mut word = [0; 8];
        word[..length].copy_from_slice(own);
        *field = u64::from_le_bytes(word);
        at += length;
        lengths >>= 3;
    }
    Record::Hot { kind, fields, bytes: at }
}

#[cold]
fn read_definition(bytes: &[u8], kind: u8) -> Record<'_> {
    let Some(&head) = record::HEADS.get(usize::from(kind)) else { return Record::Bad };
    let Some(fixed) = bytes.get(1..1 + head) else { return Record::Cut(1 + head as u64) };
    let (first, second) = payload(kind, fixed);
    let all = 1 + head as u64 + first + second;
    if (bytes.len() as u64) < all {
        return Record::Cut(all);
    }
    let (from, middle) = (1 + head, 1 + head + first as usize);
    let definition = Definition {
        kind,
        head: fixed,
        first: &bytes[from..middle],
        second: &bytes[middle..all as usize],
    };
    Record::Definition { definition, bytes: all as usize }
}

/// Bytes behind the packed struct.
fn payload(kind: u8, head: &[u8]) -> (u64, u64) {
    let short = |at| u64::from(u16_at(head, at));
    match kind {
        record::META => (short(0), u64::from(u32_at(head, 2))),
        record::MODULE => (short(module::PATH_BYTES), short(module::BUILD_ID_BYTES)),
        record::PATH => (short(path::FRAMES) * 8, 0),
        record::COMM => {
            let members = u32_at(head, comm::MEMBERS);
            let listed = if members == comm::NOT_KNOWN { 0 } else { members };
            (short(comm::NAME_BYTES), u64::from(listed) * 4)
        }
        record::MARK_NAME => (u64::from(head[4]), 0),
        _ => (0, 0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As interposer/recorder/spool/codec.h writes them.
    fn hot(kind: u8, fields: &[u64]) -> Vec<u8> {
        let (mut lengths, mut values) = (0u16, Vec::new());
        for (place, &value) in fields.iter().enumerate() {
            let length = (64 - value.leading_zeros() as usize).div_ceil(8);
            lengths |= (length as u16) << (3 * place);
            values.extend_from_slice(&value.to_le_bytes()[..length]);
        }
        let mut bytes = vec![kind];
        bytes.extend_from_slice(&lengths.to_le_bytes());
        bytes.extend(values);
        bytes
    }

    #[test]
    fn hot_records_read_alike_within_a_buffer_and_at_its_end() {
        let values = [1, 0x1234, (1 << 56) - 1, 0, 255];
        let alone = hot(record::CALL, &values);
        let expected = Record::Hot { kind: record::CALL, fields: values, bytes: alone.len() };
        assert_eq!(read(&alone), expected);
        let mut inside = alone.clone();
        inside.extend([0xff; 64]);
        assert_eq!(read(&inside), expected);
        for length in 1..alone.len() {
            assert!(matches!(read(&alone[..length]), Record::Cut(_)), "{length}");
        }
    }

    #[test]
    fn lengths_of_definitions_are_not_believed() {
        let mut meta = vec![record::META, 3, 0];
        meta.extend(u32::MAX.to_ne_bytes());
        meta.extend(b"key and some");
        assert_eq!(read(&meta), Record::Cut(7 + 3 + u64::from(u32::MAX)));
        assert_eq!(read(&[10, 0, 0, 0]), Record::Bad);
        assert_eq!(read(&[record::END, 1]), Record::End);
    }
}
