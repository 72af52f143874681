//! Frames without names, for tests of what names its call sites.

use lapscope_data::model::Frame;
use lapscope_data::symbols::{FrameName, NameFrames};

/// Knows no frame.
pub struct NoNames;

impl NameFrames for NoNames {
    fn name(&mut self, _: Frame) -> Vec<FrameName> {
        Vec::new()
    }

    fn column(&mut self, _: Frame) -> Option<u32> {
        None
    }

    fn show_column(&mut self, _: Frame) {}

    fn code_bytes(&mut self, _: Frame) -> Option<u64> {
        None
    }
}
