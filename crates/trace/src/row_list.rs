//! Rows of one kind: in memory, or where a file of the command holds them.

use std::fmt;
use std::fs::File;
use std::io::{self, Write};
use std::ops::{Deref, DerefMut};
use std::os::unix::fs::FileExt;

use bytemuck::Pod;
use memmap2::{MmapMut, MmapOptions};

/// A list of rows. What is mapped is read when it is looked at; what is changed there is changed here alone.
pub struct RowList<T>(Held<T>);

enum Held<T> {
    Own(Vec<T>),
    /// So many rows, of which the first begins where the mapping does.
    Mapped(MmapMut, usize),
}

/// Fewer bytes than this are read at once: a process may have so many mappings, not more.
const SMALL: usize = 1 << 18;

impl<T: Pod> RowList<T> {
    /// So many rows that [`write`] wrote, from this byte of a file on, a multiple of their alignment.
    ///
    /// # Errors
    /// Of the file; it has not so many.
    pub(super) fn of_file(file: &File, at: u64, rows: usize) -> io::Result<RowList<T>> {
        let bytes = rows.saturating_mul(size_of::<T>());
        if bytes < SMALL {
            return read(file, at, rows).map(RowList::from);
        }
        if file.metadata()?.len() < at.saturating_add(bytes as u64) {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        // SAFETY: the file lies in a folder of the command, was written whole before it got its name, and nobody changes it; what is
        // changed of the mapping is private
        let map = unsafe { MmapOptions::new().offset(at).len(bytes).map_copy(file)? };
        match map.as_ptr().cast::<T>().is_aligned() {
            true => Ok(RowList(Held::Mapped(map, rows))),
            false => Err(io::ErrorKind::InvalidInput.into()),
        }
    }

    pub fn push(&mut self, row: T) {
        if let Held::Mapped(..) = self.0 {
            self.0 = Held::Own(self.to_vec());
        }
        if let Held::Own(rows) = &mut self.0 {
            rows.push(row);
        }
    }
}

/// So many rows that [`write`] wrote, from this byte of a file on.
///
/// # Errors
/// Of the file; it has not so many.
pub(super) fn read<T: Pod>(file: &File, at: u64, rows: usize) -> io::Result<Vec<T>> {
    let mut all = vec![T::zeroed(); rows];
    file.read_exact_at(bytemuck::cast_slice_mut(&mut all), at)?;
    Ok(all)
}

/// # Errors
/// Of the writer.
pub(super) fn write<T: Pod>(out: &mut (impl Write + ?Sized), rows: &[T]) -> io::Result<()> {
    out.write_all(bytemuck::cast_slice(rows))
}

impl<T> Default for RowList<T> {
    fn default() -> RowList<T> {
        RowList(Held::Own(Vec::new()))
    }
}

impl<T> From<Vec<T>> for RowList<T> {
    fn from(rows: Vec<T>) -> RowList<T> {
        RowList(Held::Own(rows))
    }
}

impl<T> FromIterator<T> for RowList<T> {
    fn from_iter<I: IntoIterator<Item = T>>(rows: I) -> RowList<T> {
        RowList(Held::Own(rows.into_iter().collect()))
    }
}

impl<T: Pod> Deref for RowList<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        match &self.0 {
            Held::Own(rows) => rows,
            // SAFETY: `of_file` saw that the mapping is so long, and aligned; any bytes are rows
            Held::Mapped(map, rows) => unsafe {
                std::slice::from_raw_parts(map.as_ptr().cast(), *rows)
            },
        }
    }
}

impl<T: Pod> DerefMut for RowList<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [T] {
        match &mut self.0 {
            Held::Own(rows) => rows,
            // SAFETY: as in `deref`
            Held::Mapped(map, rows) => unsafe {
                std::slice::from_raw_parts_mut(map.as_mut_ptr().cast(), *rows)
            },
        }
    }
}

impl<'a, T: Pod> IntoIterator for &'a RowList<T> {
    type Item = &'a T;
    type IntoIter = std::slice::Iter<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<'a, T: Pod> IntoIterator for &'a mut RowList<T> {
    type Item = &'a mut T;
    type IntoIter = std::slice::IterMut<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter_mut()
    }
}

impl<T: Pod + fmt::Debug> fmt::Debug for RowList<T> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_as_they_were_written_and_changes_are_nobody_elses() {
        for rows in [10, 100_000] {
            let all: Vec<u64> = (0..rows).collect();
            let mut file = tempfile::tempfile().unwrap();
            write(&mut file, &[7u64, 8]).unwrap();
            write(&mut file, &all).unwrap();
            let count = rows as usize;
            let mut column = RowList::<u64>::of_file(&file, 16, count).unwrap();
            assert_eq!(matches!(column.0, Held::Mapped(..)), rows > 10);
            assert_eq!(column[..], all[..]);
            column.iter_mut().for_each(|row| *row += 1);
            column.push(5);
            assert_eq!(column[1..], [&all[2..], &[rows, 5][..]].concat());
            assert_eq!(RowList::<u64>::of_file(&file, 16, count).unwrap()[..], all[..]);
            assert!(RowList::<u64>::of_file(&file, 24, count).is_err());
            assert!(RowList::<u64>::of_file(&file, 16, usize::MAX).is_err());
        }
        let file = tempfile::tempfile().unwrap();
        file.set_len(1 << 20).unwrap();
        assert!(RowList::<u64>::of_file(&file, 4, 1 << 15).is_err());
    }
}
