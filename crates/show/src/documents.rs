//! Documents that crates below make, in the formats that they have. Those that a command makes itself are in its file.

use std::io::Write;

use anyhow::Result;

use crate::format::rows::{self, RowWriter};
use crate::format::{self, Document};
use crate::render;
use lapscope_data::text::style::Style;
use lapscope_launch::tune::document::TuneDocument;
use lapscope_predict::whatif::document::WhatIf;
use lapscope_report::calibration::Calibration;
use lapscope_report::diff::Diff;
use lapscope_report::jobs::Jobs;
use lapscope_report::scaling::Scaling;
use lapscope_trace::problem::Problem;

impl Document for Calibration {
    fn write_text(&mut self, out: &mut dyn Write, style: Style) -> Result<()> {
        Ok(render::calibration::write(out, self, style)?)
    }

    fn write_json(&mut self, out: &mut dyn Write) -> Result<()> {
        format::write_json(self, out)
    }
}

impl Document for Diff {
    fn write_text(&mut self, out: &mut dyn Write, style: Style) -> Result<()> {
        Ok(render::diff::write(out, self, style)?)
    }

    fn write_json(&mut self, out: &mut dyn Write) -> Result<()> {
        format::write_json(self, out)
    }

    fn write_rows(&mut self, rows: &mut dyn RowWriter) -> Result<()> {
        Ok(rows::write(rows, &render::columns::site_pairs(), &self.sites)?)
    }
}

impl Document for Jobs {
    fn write_text(&mut self, out: &mut dyn Write, style: Style) -> Result<()> {
        Ok(render::jobs::write(out, self, style)?)
    }

    fn write_json(&mut self, out: &mut dyn Write) -> Result<()> {
        format::write_json(self, out)
    }

    /// The sums that were asked for, else the jobs.
    fn write_rows(&mut self, rows: &mut dyn RowWriter) -> Result<()> {
        if !self.groups.is_empty() {
            return Ok(rows::write(rows, &render::jobs::columns(), &self.groups)?);
        }
        let mut rows = rows::Objects::new(rows);
        Ok(self.jobs.iter().try_for_each(|job| rows.write(job))?)
    }
}

impl Document for Scaling {
    fn write_text(&mut self, out: &mut dyn Write, style: Style) -> Result<()> {
        Ok(render::scaling::write(out, self, style)?)
    }

    fn write_json(&mut self, out: &mut dyn Write) -> Result<()> {
        format::write_json(self, out)
    }

    fn write_rows(&mut self, rows: &mut dyn RowWriter) -> Result<()> {
        Ok(rows::write(rows, &render::scaling::columns(), &self.runs)?)
    }
}

impl Document for TuneDocument {
    fn write_text(&mut self, out: &mut dyn Write, style: Style) -> Result<()> {
        Ok(render::tune::write(out, self, style)?)
    }

    fn write_json(&mut self, out: &mut dyn Write) -> Result<()> {
        format::write_json(self, out)
    }
}

impl Document for WhatIf {
    fn write_text(&mut self, out: &mut dyn Write, style: Style) -> Result<()> {
        Ok(render::whatif::write(out, self, style)?)
    }

    fn write_json(&mut self, out: &mut dyn Write) -> Result<()> {
        format::write_json(self, out)
    }

    fn write_rows(&mut self, rows: &mut dyn RowWriter) -> Result<()> {
        Ok(render::whatif::write_rows(rows, self)?)
    }

    fn problems(&self) -> &[Problem] {
        &self.problems
    }
}
