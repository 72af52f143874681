//! Registers that functions preserve, as they were in a caller: going out from the innermost function by its unwind tables.

use gimli::{BaseAddresses, CfaRule, EhFrame, EhFrameHdr, LittleEndian, Register, RegisterRule};
use gimli::{UnwindContext, UnwindSection};

use super::stop::{Registers, ThreadCopy};

/// What is known of a frame's registers, by their numbers in DWARF; of those that no function preserves nothing is.
pub type Known = [Option<u64>; 17];

/// The System V ABI of x86-64, figure 3.36: rbx, rbp, r12 to r15.
const PRESERVED: [usize; 6] = [3, 6, 12, 13, 14, 15];
const STACK: usize = 7;
const RETURN_ADDRESS: usize = 16;

/// Sections of a file with code, and the addresses at which they would be.
pub struct UnwindTables<'a> {
    pub text: u64,
    pub frames: (u64, &'a [u8]),
    pub header: (u64, &'a [u8]),
}

/// Those of an innermost function.
pub fn innermost(registers: &Registers) -> Known {
    let mut known = Known::default();
    for (number, value) in PRESERVED.into_iter().zip(registers.preserved) {
        known[number] = value;
    }
    known[STACK] = Some(registers.stack);
    known
}

/// Those of the caller of a function, which has come to `address` of its file; the return address among them.
pub fn of_caller(
    known: &Known,
    address: u64,
    tables: &UnwindTables<'_>,
    thread: &ThreadCopy,
) -> Option<Known> {
    let bases = BaseAddresses::default()
        .set_text(tables.text)
        .set_eh_frame(tables.frames.0)
        .set_eh_frame_hdr(tables.header.0);
    let frames = EhFrame::new(tables.frames.1, LittleEndian);
    let header = EhFrameHdr::new(tables.header.1, LittleEndian).parse(&bases, 8).ok()?;
    let table = header.table()?;
    let mut context = UnwindContext::new();
    let row = table
        .unwind_info_for_address(&frames, &bases, &mut context, address, EhFrame::cie_from_offset)
        .ok()?;
    let CfaRule::RegisterAndOffset { register, offset } = *row.cfa() else { return None };
    let plus = |base: u64, offset: i64| base.wrapping_add(offset as u64);
    let frame = plus((*known.get(usize::from(register.0))?)?, offset);
    let rule = |number: usize| {
        let mut rules = row.registers();
        rules.find(|(it, _)| *it == Register(number as u16)).map(|(_, rule)| rule)
    };
    let value = |number: usize| match rule(number) {
        None | Some(RegisterRule::SameValue) => known[number],
        Some(RegisterRule::Offset(offset)) => thread.word(plus(frame, *offset)),
        Some(RegisterRule::ValOffset(offset)) => Some(plus(frame, *offset)),
        Some(RegisterRule::Register(other)) => *known.get(usize::from(other.0))?,
        Some(_) => None,
    };
    let mut caller = Known::default();
    for number in PRESERVED {
        caller[number] = value(number);
    }
    caller[STACK] = Some(frame);
    caller[RETURN_ADDRESS] = match rule(RETURN_ADDRESS) {
        Some(RegisterRule::Offset(offset)) => thread.word(plus(frame, *offset)),
        _ => None,
    };
    Some(caller)
}

/// Where the caller goes on, and its stack pointer.
pub fn place(known: &Known) -> Option<(u64, u64)> {
    Some((known[RETURN_ADDRESS]?, known[STACK]?))
}
