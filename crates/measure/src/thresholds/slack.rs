//! How long a send may take that waits for nobody.

use rustc_hash::FxHashMap;

use crate::reference::Reference;
use lapscope_trace::Locality;

/// A send counts as waiting after so many times what a whole transfer takes, and what the system may take besides.
const TIMES: i64 = 2;

/// From how long transfers take that nothing holds up.
pub struct Slack<'a> {
    reference: &'a Reference,
    /// By locality and bytes: a rank sends few sizes many times.
    alone: FxHashMap<(Locality, u64), i64>,
}

impl<'a> Slack<'a> {
    pub fn new(reference: &'a Reference) -> Slack<'a> {
        Slack { reference, alone: FxHashMap::default() }
    }

    /// Nanoseconds, for a message behind `earlier` bytes that take the same way: a slow link that is busy with these is no
    /// receiver who is missing.
    pub fn of_transfer(&mut self, locality: Locality, bytes: u64, earlier: u64) -> i64 {
        let reference = self.reference;
        let known = self.alone.entry((locality, bytes));
        let own = *known.or_insert_with(|| of_transfer_alone(reference, locality, bytes));
        let behind = own as f64 * (earlier.min(1 << 50) as f64 / bytes.max(1) as f64);
        (base(locality) + own).saturating_add(behind as i64)
    }
}

fn of_transfer_alone(reference: &Reference, locality: Locality, bytes: u64) -> i64 {
    let measured = reference.transfer(locality, bytes);
    let guess = || (bytes.min(1 << 50) as f64 * ns_per_byte(locality)) as i64;
    measured.map_or_else(guess, |estimate| TIMES * estimate.high_ns)
}

/// Nanoseconds that a processor may be away, or an acknowledgement on its way.
fn base(locality: Locality) -> i64 {
    match locality {
        Locality::SelfRank | Locality::Node => 20_000,
        Locality::Network => 100_000,
    }
}

/// Where nothing was measured: a quarter of a slow memory's speed, a slow network's.
fn ns_per_byte(locality: Locality) -> f64 {
    match locality {
        Locality::SelfRank | Locality::Node => 4.0,
        Locality::Network => 40.0,
    }
}
