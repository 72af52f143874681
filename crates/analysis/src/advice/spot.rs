//! Calls of the program before they have names.

use crate::trace::{Operation, Trace};
use lapscope_data::model::Frame;

/// A call of the program, not named yet: index into [`Trace::calls`], and its place.
pub(super) type Spot = (u32, Option<Frame>);

/// Where an operation was posted or called.
pub(super) fn spot_of(trace: &Trace, operation: &Operation) -> Spot {
    (operation.call, trace.site_frame(operation.path))
}
