//! What a program passes at a call, as optimising compilers write it down: DWARF 5, 3.4.
//!
//! Only constants and registers are taken. What stands in memory may have changed since.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use addr2line::gimli::{self, AttributeValue, DebuggingInformationEntry, DwTag, Expression};
use gimli::{Operation, RunTimeEndian, UnitOffset};
use object::{Object, ObjectSection};

use super::elf::with_object;

type SectionBytes = gimli::EndianArcSlice<RunTimeEndian>;
type Unit = gimli::Unit<SectionBytes>;
type Die<'a> = DebuggingInformationEntry<'a, 'a, SectionBytes>;

/// Larger debug information is not read for this.
const MOST_BYTES: u64 = 256 << 20;

/// What was passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Passed {
    Value(u64),
    /// An address in the numbering of the caller's module.
    Address(u64),
}

/// The calls of a module.
pub(super) struct CallSites {
    dwarf: gimli::Dwarf<SectionBytes>,
    /// Those that were asked for, by the address that they return to.
    known: HashMap<u64, Option<CallSite>>,
}

/// A call.
struct CallSite {
    callee: String,
    /// By the registers that they are passed in.
    parameters: Vec<(u16, Expression<SectionBytes>)>,
    encoding: gimli::Encoding,
}

impl CallSites {
    pub fn read(path: &Path) -> Option<CallSites> {
        with_object(path, |object| {
            let info = object.section_by_name(".debug_info")?;
            if info.size() > MOST_BYTES {
                return None;
            }
            let endian = match object.is_little_endian() {
                true => RunTimeEndian::Little,
                false => RunTimeEndian::Big,
            };
            let section = |id: gimli::SectionId| -> Result<SectionBytes, gimli::Error> {
                let section = object.section_by_name(id.name());
                let bytes = section.and_then(|it| it.uncompressed_data().ok()).unwrap_or_default();
                Ok(SectionBytes::new(Arc::from(&*bytes), endian))
            };
            let dwarf = gimli::Dwarf::load(section).ok()?;
            Some(CallSites { dwarf, known: HashMap::new() })
        })?
    }

    /// What was passed in registers, by their numbers in DWARF, by the call of one of `callees` that returns to an address; `register`
    /// gives those of the caller. Nothing where that calls another function, which went on to MPI by a jump.
    pub fn passed(
        &mut self,
        address: u64,
        callees: &[&str],
        register: &dyn Fn(u16) -> Option<u64>,
    ) -> Vec<(u16, Passed)> {
        let dwarf = &self.dwarf;
        let site = self.known.entry(address).or_insert_with(|| find(dwarf, address));
        let Some(site) = site.as_ref().filter(|it| callees.contains(&it.callee.as_str())) else {
            return Vec::new();
        };
        let passed = site.parameters.iter().filter_map(|(passed_in, value)| {
            Some((*passed_in, evaluate(value.clone(), site.encoding, register)?))
        });
        passed.collect()
    }
}

/// The call that returns to an address.
fn find(dwarf: &gimli::Dwarf<SectionBytes>, address: u64) -> Option<CallSite> {
    let mut units = dwarf.units();
    while let Some(header) = units.next().ok()? {
        let unit = dwarf.unit(header).ok()?;
        let mut ranges = dwarf.unit_ranges(&unit).ok()?;
        let mut covers = false;
        while let Some(range) = ranges.next().ok()? {
            covers |= (range.begin..range.end).contains(&(address - 1));
        }
        if covers {
            return find_in(dwarf, &unit, address);
        }
    }
    None
}

fn find_in(dwarf: &gimli::Dwarf<SectionBytes>, unit: &Unit, address: u64) -> Option<CallSite> {
    const SITES: [DwTag; 2] = [gimli::DW_TAG_call_site, gimli::DW_TAG_GNU_call_site];
    let returns_to = |site: &Die<'_>| {
        let value = either(site, gimli::DW_AT_call_return_pc, gimli::DW_AT_low_pc)?;
        dwarf.attr_address(unit, value).ok()?
    };
    let mut entries = unit.entries();
    while let Some((_, entry)) = entries.next_dfs().ok()? {
        if !SITES.contains(&entry.tag()) || returns_to(entry) != Some(address) {
            continue;
        }
        let mut tree = unit.entries_tree(Some(entry.offset())).ok()?;
        let mut children = tree.root().ok()?.children();
        let mut parameters = Vec::new();
        while let Some(child) = children.next().ok()? {
            parameters.extend(parameter(unit, child.entry()));
        }
        let callee = callee(dwarf, unit, entry)?;
        return Some(CallSite { callee, parameters, encoding: unit.encoding() });
    }
    None
}

fn callee(dwarf: &gimli::Dwarf<SectionBytes>, unit: &Unit, site: &Die<'_>) -> Option<String> {
    let origin = either(site, gimli::DW_AT_call_origin, gimli::DW_AT_abstract_origin)?;
    let AttributeValue::UnitRef(offset) = origin else { return None };
    let name = unit.entry(offset).ok()?.attr_value(gimli::DW_AT_name).ok()??;
    let name = dwarf.attr_string(unit, name).ok()?;
    Some(String::from_utf8_lossy(&gimli::Reader::to_slice(&name).ok()?).into_owned())
}

/// As DWARF 5 has it, or GNU before that.
fn either(
    entry: &Die<'_>,
    name: gimli::DwAt,
    earlier: gimli::DwAt,
) -> Option<AttributeValue<SectionBytes>> {
    entry.attr_value(name).ok()?.or(entry.attr_value(earlier).ok()?)
}

fn parameter(unit: &Unit, entry: &Die<'_>) -> Option<(u16, Expression<SectionBytes>)> {
    let location = entry.attr_value(gimli::DW_AT_location).ok()??.exprloc_value()?;
    let Operation::Register { register: passed_in } =
        location.operations(unit.encoding()).next().ok()??
    else {
        return None;
    };
    let value = either(entry, gimli::DW_AT_call_value, gimli::DW_AT_GNU_call_site_value)?;
    Some((passed_in.0, value.exprloc_value()?))
}

fn evaluate(
    expression: Expression<SectionBytes>,
    encoding: gimli::Encoding,
    register: &dyn Fn(u16) -> Option<u64>,
) -> Option<Passed> {
    let mut operations = expression.operations(encoding);
    let mut stack: Vec<u64> = Vec::new();
    while let Some(operation) = operations.next().ok()? {
        let value = match operation {
            Operation::Address { address } if stack.is_empty() => {
                let is_all = operations.next().ok()?.is_none();
                return is_all.then_some(Passed::Address(address));
            }
            Operation::UnsignedConstant { value } => value,
            Operation::SignedConstant { value } => value as u64,
            Operation::RegisterOffset { register: it, offset, base_type: UnitOffset(0) } => {
                register(it.0)?.wrapping_add(offset as u64)
            }
            Operation::PlusConstant { value } => stack.pop()?.wrapping_add(value),
            Operation::Plus => stack.pop()?.wrapping_add(stack.pop()?),
            Operation::Mul => stack.pop()?.wrapping_mul(stack.pop()?),
            Operation::And => stack.pop()? & stack.pop()?,
            Operation::Shl => {
                let by = u32::try_from(stack.pop()?).ok()?;
                stack.pop()?.checked_shl(by)?
            }
            Operation::Minus => {
                let less = stack.pop()?;
                stack.pop()?.wrapping_sub(less)
            }
            _ => return None,
        };
        stack.push(value);
    }
    match stack.as_slice() {
        [value] => Some(Passed::Value(*value)),
        _ => None,
    }
}
