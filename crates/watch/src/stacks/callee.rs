//! Which function a call has entered, by the instruction in front of its return address: a function that goes on to another by a
//! jump has no frame.

#[cfg(target_arch = "x86_64")]
use super::maps::{read_memory, read_word};

/// `None`: the instruction is not one of those by which programs call functions of libraries.
#[cfg(target_arch = "x86_64")]
pub fn entered(pid: i64, return_address: u64) -> Option<u64> {
    const LONGEST: u64 = 6;
    let begin = return_address.checked_sub(LONGEST)?;
    let [first, second, a, b, c, d] = read_memory(pid, begin, 6).ok()?.try_into().ok()?;
    let relative = return_address.wrapping_add_signed(i32::from_le_bytes([a, b, c, d]).into());
    match (first, second) {
        (0xff, 0x15) => read_word(pid, relative), // by a pointer
        (_, 0xe8) => jumps_to(pid, relative).or(Some(relative)),
        _ => None,
    }
}

#[cfg(not(target_arch = "x86_64"))]
pub fn entered(_: i64, _: u64) -> Option<u64> {
    None
}

/// Where an entry of a procedure linkage table leads to: `[endbr64] [bnd] jmp *slot(%rip)`.
#[cfg(target_arch = "x86_64")]
fn jumps_to(pid: i64, entry: u64) -> Option<u64> {
    const MARK: [u8; 4] = [0xf3, 0x0f, 0x1e, 0xfa];
    let bytes = read_memory(pid, entry, 16).ok()?;
    let marked = if bytes.starts_with(&MARK) { MARK.len() } else { 0 };
    let bound = marked + usize::from(bytes.get(marked) == Some(&0xf2));
    let [0xff, 0x25, a, b, c, d] = *bytes.get(bound..bound + 6)? else { return None };
    let behind = entry + bound as u64 + 6;
    read_word(pid, behind.wrapping_add_signed(i32::from_le_bytes([a, b, c, d]).into()))
}
