//! What overlap says of a part of the communication that the report counts by other means: of a call site, of a size.

use std::collections::HashMap;

use serde::Serialize;

use super::overlap::sums::{BlockingNumbers, ByCause, Numbers};
use super::overlap::Overlap;
use super::sites::Site;
use super::transfers::{SizeClass, SizeKind};
use crate::model::{Kind, Nanos};
use crate::symbols::FrameName;

/// Sums over requests and blocking calls that have something in common; keys as in `lapscope overlap`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Part {
    /// Of so many requests a reference time is known; the next five are sums over these.
    pub measured: u64,
    pub transfer_ns: Nanos,
    pub achieved_low_ns: Nanos,
    pub achieved_high_ns: Nanos,
    pub possible_low_ns: Nanos,
    pub possible_ns: Nanos,
    /// Exposed time by cause: of requests their shares of the completing calls, of blocking calls their own time.
    pub exposed_late_partner_ns: Nanos,
    pub exposed_partner_outside_ns: Nanos,
    pub exposed_own_window_ns: Nanos,
    pub exposed_own_window_low_ns: Nanos,
    pub exposed_own_window_high_ns: Nanos,
    pub exposed_transfer_ns: Nanos,
    pub exposed_no_processor_ns: Nanos,
}

impl Part {
    fn add_requests(&mut self, numbers: &Numbers) {
        self.measured += numbers.measured;
        self.transfer_ns += numbers.transfer_ns;
        self.achieved_low_ns += numbers.achieved_low_ns;
        self.achieved_high_ns += numbers.achieved_high_ns;
        self.possible_low_ns += numbers.possible_low_ns;
        self.possible_ns += numbers.possible_ns;
        self.exposed_late_partner_ns += numbers.exposed_late_partner_ns;
        self.exposed_partner_outside_ns += numbers.exposed_partner_outside_ns;
        self.exposed_own_window_ns += numbers.exposed_own_window_ns;
        self.exposed_own_window_low_ns += numbers.exposed_own_window_low_ns;
        self.exposed_own_window_high_ns += numbers.exposed_own_window_high_ns;
        self.exposed_transfer_ns += numbers.exposed_transfer_ns;
        self.exposed_no_processor_ns += numbers.exposed_no_processor_ns;
    }

    fn add_blocking(&mut self, numbers: &BlockingNumbers) {
        self.exposed_late_partner_ns += numbers.late_partner_ns;
        self.exposed_partner_outside_ns += numbers.partner_outside_ns;
        self.exposed_transfer_ns += numbers.transfer_ns;
        self.exposed_no_processor_ns += numbers.no_processor_ns;
    }

    /// The exposed time, all of it and by cause.
    pub fn exposed(&self) -> (Nanos, ByCause) {
        let causes = [
            self.exposed_late_partner_ns,
            self.exposed_partner_outside_ns,
            self.exposed_own_window_ns,
            self.exposed_transfer_ns,
            self.exposed_no_processor_ns,
        ];
        (causes.into_iter().sum(), causes)
    }
}

/// How a call site is known again: the call and the place; the address only where there is no line.
fn key(call: &str, site: Option<&FrameName>) -> (String, Option<FrameName>) {
    let site = site.map(|frame| FrameName {
        address: if frame.line.is_some() { 0 } else { frame.address },
        inlined: false,
        ..frame.clone()
    });
    (call.to_owned(), site)
}

pub(super) fn add_to_sites(sites: &mut [Site], overlap: &Overlap) {
    let mut parts: HashMap<_, Part> = HashMap::new();
    for row in &overlap.sites {
        parts.entry(key(&row.call, row.site.as_ref())).or_default().add_requests(&row.numbers);
    }
    for row in &overlap.blocking.sites {
        parts.entry(key(&row.call, row.site.as_ref())).or_default().add_blocking(&row.numbers);
    }
    for site in sites {
        site.overlap = parts.get(&key(&site.call, site.site.as_ref())).copied();
    }
}

pub(super) fn add_to_sizes(classes: &mut [SizeClass], overlap: &Overlap) {
    let mut parts: HashMap<_, Part> = HashMap::new();
    for row in &overlap.sizes {
        let kind = match row.kind {
            Kind::Send | Kind::Recv => SizeKind::PointToPoint,
            Kind::Collective => SizeKind::Collective,
            Kind::Rma => SizeKind::Rma,
            Kind::Io => SizeKind::Io,
            Kind::Generalized | Kind::Other => continue,
        };
        parts.entry((kind, row.below_bytes)).or_default().add_requests(&row.numbers);
    }
    for class in classes {
        class.overlap = parts.get(&(class.kind, class.below_bytes)).copied();
    }
}
