//! The job without a terminal: one screen as text, or lines of JSON.
//!
//! A screen is that of the view, drawn into memory: there is one layout, and tests of every size need no terminal.

use std::io::Write;
use std::process::ExitCode;
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{bail, Result};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use serde::Serialize;

use super::looker::{JobMoment, Looker, Sight};
use super::paint::Chosen;
use super::screen::draw;
use super::{letters, terminal};
use crate::output;
use lapscope_data::model::Nanos;
use lapscope_data::say;
use lapscope_data::text::style::stdout_columns;
use lapscope_data::text::visible::Form;
use lapscope_data::JSON_VERSION;
use lapscope_watch::live::Moment;

/// Where standard output has no size.
const COLUMNS: usize = 80;
const LINES: u16 = 24;
/// The first look is followed by another this soon: of the time before there are no rates.
const FIRST: Duration = Duration::from_millis(500);

/// A job that only begins has ranks at the second look that were not there at the first.
const MOST_LOOKS: u32 = 4;

/// Prints one screen, of one interval.
///
/// # Errors
/// There is no run, or standard output fails.
pub fn screen(mut looker: Looker, interval: Duration) -> Result<ExitCode> {
    let seen = look_twice(&mut looker, interval)?;
    let columns = u16::try_from(stdout_columns().unwrap_or(COLUMNS)).unwrap_or(u16::MAX);
    let lines = terminal::lines_of_stdout().map_or(LINES, |lines| lines.saturating_sub(1).max(3));
    let area = Rect::new(0, 0, columns.min(400), lines.min(200));
    let mut buffer = Buffer::empty(area);
    draw(&mut buffer, area, &seen, &mut Chosen::default(), None);
    output::print(|out| {
        letters::lines(&buffer).iter().try_for_each(|line| writeln!(out, "{line}"))
    })?;
    Ok(ExitCode::SUCCESS)
}

fn look_twice(looker: &mut Looker, interval: Duration) -> Result<Box<JobMoment>> {
    let first = seen(looker.look()?)?;
    if first.moment.is_over {
        return Ok(first); // nothing will change
    }
    for _ in 1..MOST_LOOKS {
        sleep(interval);
        let next = seen(looker.look()?)?;
        if next.moment.is_over || next.moment.window_ns > Nanos(0) {
            return Ok(next);
        }
    }
    seen(looker.look()?)
}

fn seen(sight: Sight) -> Result<Box<JobMoment>> {
    match sight {
        Sight::Job(seen) => Ok(seen),
        Sight::Waiting(why) | Sight::Gone(why) => bail!(why),
    }
}

/// A line of JSON.
#[derive(Serialize)]
struct MomentLine<'a> {
    json_version: u32,
    run: String,
    #[serde(flatten)]
    moment: &'a Moment,
}

/// Prints a line each interval until the job has ended; with `once` one.
///
/// # Errors
/// There is no run with `once`, the run directory has gone, or standard output fails.
pub fn lines(mut looker: Looker, interval: Duration, once: bool) -> Result<ExitCode> {
    if once {
        print_line(&*look_twice(&mut looker, interval)?)?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut said = None;
    let mut is_first = true;
    loop {
        let began = Instant::now();
        match looker.look()? {
            Sight::Waiting(why) => {
                if said.as_ref() != Some(&why) {
                    say!("waiting: {why}");
                    said = Some(why);
                }
            }
            Sight::Gone(why) => bail!(why),
            Sight::Job(seen) => {
                let is_over = seen.moment.is_over;
                if is_over || !is_first {
                    print_line(&seen)?;
                }
                if is_over {
                    return Ok(ExitCode::SUCCESS);
                }
                is_first = false;
            }
        }
        let interval = if is_first { interval.min(FIRST) } else { interval };
        sleep(interval.saturating_sub(began.elapsed()));
    }
}

fn print_line(seen: &JobMoment) -> Result<()> {
    let run = seen.run.display().to_string();
    let answer = MomentLine { json_version: JSON_VERSION, run, moment: &seen.moment };
    output::print_with(Form::Json, |out: &mut dyn Write| {
        serde_json::to_writer(&mut *out, &answer)?;
        Ok(out.write_all(b"\n")?)
    })
}
