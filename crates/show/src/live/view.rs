//! What the user sees and types. Looking is done by a thread of its own: keys are answered while thousands of spools are read.

use std::process::ExitCode;
use std::sync::mpsc::{channel, Receiver, RecvTimeoutError, Sender, TryRecvError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{bail, Result};
use ratatui::buffer::Buffer;
use ratatui::crossterm::event::{poll, read, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use ratatui::layout::Rect;
use ratatui::text::Line;

use super::looker::{Looker, Sight};
use super::paint::{Chosen, Paint};
use super::screen::{draw, put};
use super::terminal::{self, Taken};
use super::{diagnosis, letters};
use lapscope_data::text::style;

const KEYS: &str = "q quit · p pause · s sort · ↑↓ scroll · b put together · d diagnosis · h help";
const KEYS_OF_TEXT: &str = "q quit · ↑↓ scroll · any other key: back";
/// How soon a signal or a new look is noticed.
const ATTENTION: Duration = Duration::from_millis(100);
const FIRST: Duration = Duration::from_millis(500);

const HELP: &str = "\
q, Ctrl-C   leave; the job goes on
p, blank    pause: the screen stays as it is
s           sort ranks: by rank, those that wait least first, those that are quiet for longest first, those with the fewest calls first
↑ ↓ k j     scroll, also with page up, page down, home and end
b           put ranks together, or show them one by one
d           diagnose: who waits for whom, and why, as `lapscope hang` says
h, ?        this help

exposed: time in calls that complete requests, in blocking communication and in collectives, of the wall time of the ranks, \
calls that have not returned included, and what GPUs compute meanwhile.
A rank that is much less exposed than the others is the one that they wait for.
The number in front of a call says for how long the rank has been inside of it.
SITES: calls by source line, with the exposed time that they cost in the last seconds.";

/// What the thread that looks is asked.
enum Ask {
    Diagnosis { columns: usize },
}

/// What it answers.
enum LookerReply {
    Sight(Result<Sight>),
    Diagnosis(String),
}

/// Shows the job until the user leaves.
///
/// # Errors
/// The terminal cannot be drawn on, or what is there is no run.
pub fn show(looker: Looker, interval: Duration) -> Result<ExitCode> {
    let mut taken = Taken::take()?;
    let (ask, asked) = channel();
    let (tell, told) = channel();
    thread::spawn(move || look_again_and_again(looker, interval, &asked, &tell));
    let result = LiveView::new(ask).run(&mut taken, &told);
    drop(taken);
    if let Some(signal) = terminal::signal() {
        terminal::die_of(signal);
    }
    result.map(|()| ExitCode::SUCCESS)
}

fn look_again_and_again(
    mut looker: Looker,
    interval: Duration,
    asked: &Receiver<Ask>,
    tell: &Sender<LookerReply>,
) {
    let mut looks = 0u32;
    loop {
        let began = Instant::now();
        let sight = looker.look();
        let goes_on = match &sight {
            Ok(Sight::Job(seen)) => !seen.moment.is_over,
            Ok(Sight::Waiting(_)) => true,
            Ok(Sight::Gone(_)) | Err(_) => false,
        };
        looks += u32::from(matches!(sight, Ok(Sight::Job(_))));
        if tell.send(LookerReply::Sight(sight)).is_err() {
            return; // the user has left
        }
        let pause = if looks < 2 { interval.min(FIRST) } else { interval };
        let mut left = if goes_on { pause.saturating_sub(began.elapsed()) } else { Duration::MAX };
        loop {
            let until = Instant::now();
            match asked.recv_timeout(left.min(Duration::from_secs(3600))) {
                Ok(Ask::Diagnosis { columns }) => {
                    let text = diagnosis::text(looker.run(), columns);
                    if tell.send(LookerReply::Diagnosis(text)).is_err() {
                        return;
                    }
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            left = left.saturating_sub(until.elapsed());
            if left.is_zero() {
                break;
            }
        }
    }
}

/// Text in place of the job.
enum Page {
    Job,
    Text { title: &'static str, text: String, scroll: usize },
}

struct LiveView {
    ask: Sender<Ask>,
    chosen: Chosen,
    sight: Option<Sight>,
    page: Page,
    has_utf8: bool,
    /// The last that was seen, when the job can be seen no more.
    gone: Option<String>,
}

impl LiveView {
    fn new(ask: Sender<Ask>) -> LiveView {
        let no_color = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let chosen = Chosen { color: !no_color, ..Chosen::default() };
        LiveView {
            ask,
            chosen,
            sight: None,
            page: Page::Job,
            has_utf8: letters::has_utf8(),
            gone: None,
        }
    }

    fn run(&mut self, taken: &mut Taken, told: &Receiver<LookerReply>) -> Result<()> {
        let mut is_drawn = false;
        loop {
            is_drawn &= !self.hear(told)?;
            if !is_drawn {
                taken.screen.draw(|frame| {
                    let area = frame.area();
                    self.draw(frame.buffer_mut(), area);
                })?;
            }
            is_drawn = !poll(ATTENTION)?;
            if !is_drawn {
                match read()? {
                    Event::Key(key) if key.kind != KeyEventKind::Release => {
                        if is_suspension(key) {
                            taken.stop()?;
                        } else if self.press(key, usize::from(taken.screen.size()?.width)) {
                            return Ok(());
                        }
                    }
                    _ => {} // drawn anew at its size
                }
            }
            if terminal::signal().is_some() {
                return Ok(());
            }
        }
    }

    /// Takes what the looker tells; says whether there was anything.
    fn hear(&mut self, told: &Receiver<LookerReply>) -> Result<bool> {
        let mut has_heard = false;
        loop {
            match told.try_recv() {
                Ok(LookerReply::Sight(Ok(Sight::Gone(why)))) => self.gone = Some(why),
                Ok(LookerReply::Sight(sight)) => {
                    let sight = sight?;
                    if !self.chosen.is_paused {
                        self.sight = Some(sight);
                    }
                }
                Ok(LookerReply::Diagnosis(text)) => {
                    self.page = Page::Text { title: "diagnosis", text, scroll: 0 };
                }
                Err(TryRecvError::Empty) => return Ok(has_heard),
                Err(TryRecvError::Disconnected) => bail!("nobody looks at the job any more"),
            }
            has_heard = true;
        }
    }

    fn draw(&mut self, buffer: &mut Buffer, area: Rect) {
        if area.is_empty() {
            return;
        }
        let paint = Paint::new(self.chosen.color);
        match (&mut self.page, &self.sight) {
            (Page::Text { title, text, scroll }, _) => {
                draw_text(buffer, area, title, text, scroll, paint);
            }
            (Page::Job, Some(Sight::Job(seen))) => {
                draw(buffer, area, seen, &mut self.chosen, Some(KEYS));
            }
            (Page::Job, Some(Sight::Waiting(why) | Sight::Gone(why))) => {
                draw_message(buffer, area, &format!("waiting: {why}"), paint);
            }
            (Page::Job, None) => draw_message(buffer, area, "looking …", paint),
        }
        if let Some(why) = &self.gone {
            let line = Line::from(paint.alert(format!("gone: {why}")));
            buffer.set_line(area.x, area.y, &Line::from(" ".repeat(area.width.into())), area.width);
            buffer.set_line(area.x, area.y, &line, area.width);
        }
        if !self.has_utf8 {
            letters::to_ascii(buffer);
        }
    }

    /// Whether the user leaves.
    fn press(&mut self, key: KeyEvent, columns: usize) -> bool {
        let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
        let code = match key.code {
            KeyCode::Char('c' | 'C') if is_control => return true,
            KeyCode::Char('q' | 'Q') => return true,
            KeyCode::Char(_) if is_control => return false,
            code => code,
        };
        let step = scroll_of(code);
        match (&mut self.page, step) {
            (Page::Text { scroll, .. }, Some(step)) => *scroll = scroll.saturating_add_signed(step),
            (Page::Text { .. }, None) => self.page = Page::Job,
            (Page::Job, Some(step)) => {
                self.chosen.scroll = self.chosen.scroll.saturating_add_signed(step);
            }
            (Page::Job, None) => self.press_on_job(code, columns),
        }
        false
    }

    fn press_on_job(&mut self, code: KeyCode, columns: usize) {
        match code {
            KeyCode::Char('p' | 'P' | ' ') => self.chosen.is_paused = !self.chosen.is_paused,
            KeyCode::Char('s' | 'S') => {
                self.chosen.order = self.chosen.order.next();
                self.chosen.scroll = 0;
            }
            KeyCode::Char('b' | 'B') => self.chosen.binned = Some(!self.is_binned()),
            KeyCode::Char('d' | 'D') => {
                let text = "looking twice …".to_owned();
                self.page = Page::Text { title: "diagnosis", text, scroll: 0 };
                let _ = self.ask.send(Ask::Diagnosis { columns }); // hear() says why nobody answers
            }
            KeyCode::Char('h' | 'H' | '?') | KeyCode::F(1) => {
                self.page = Page::Text { title: "help", text: HELP.to_owned(), scroll: 0 };
            }
            _ => {}
        }
    }

    fn is_binned(&self) -> bool {
        let ranks = match &self.sight {
            Some(Sight::Job(seen)) => seen.moment.ranks.len(),
            _ => 0,
        };
        self.chosen.binned.unwrap_or(ranks > lapscope_measure::alike::MOST_ROWS)
    }
}

fn is_suspension(key: KeyEvent) -> bool {
    key.modifiers.contains(KeyModifiers::CONTROL) && matches!(key.code, KeyCode::Char('z' | 'Z'))
}

/// By how many rows a key scrolls.
fn scroll_of(code: KeyCode) -> Option<isize> {
    const PAGE: isize = 10;
    const ALL: isize = 1 << 40;
    Some(match code {
        KeyCode::Up | KeyCode::Char('k') => -1,
        KeyCode::Down | KeyCode::Char('j') => 1,
        KeyCode::PageUp => -PAGE,
        KeyCode::PageDown => PAGE,
        KeyCode::Home => -ALL,
        KeyCode::End => ALL,
        _ => return None,
    })
}

fn draw_message(buffer: &mut Buffer, area: Rect, text: &str, paint: Paint) {
    let lines = wrapped(text, area, paint);
    put(buffer, area, &lines, Some("q quit"), paint);
}

fn draw_text(
    buffer: &mut Buffer,
    area: Rect,
    title: &str,
    text: &str,
    scroll: &mut usize,
    paint: Paint,
) {
    let lines = wrapped(text, area, paint);
    let room = usize::from(area.height).saturating_sub(2);
    *scroll = (*scroll).min(lines.len().saturating_sub(room));
    let mut shown = vec![Line::from(paint.bold(format!("lapscope live  {title}")))];
    shown.extend(lines.into_iter().skip(*scroll));
    put(buffer, area, &shown, Some(KEYS_OF_TEXT), paint);
}

/// Entries hang below their explanation, and drawings stay as they are.
fn wrapped(text: &str, area: Rect, paint: Paint) -> Vec<Line<'static>> {
    let style = style::Style { color: false, width: usize::from(area.width).max(10) };
    let mut lines = Vec::new();
    for line in text.lines() {
        let indent = match line.find("  ") {
            Some(at) if at > 0 => line.len() - line[at..].trim_start().len(),
            _ => 0,
        };
        if style::display_width(line) <= style.width || line.starts_with(' ') {
            lines.push(Line::from(paint.plain(line)));
            continue;
        }
        let wrapped = style.wrap(&line[indent..], &line[..indent], &" ".repeat(indent));
        lines.extend(wrapped.lines().map(|line| Line::from(paint.plain(line))));
    }
    lines
}

/// What is shown of a job that was seen.
#[cfg(test)]
pub(super) fn drawn(
    seen: super::looker::JobMoment,
    columns: u16,
    lines: u16,
    keys: &str,
) -> Vec<String> {
    let mut view = LiveView::new(channel().0);
    view.has_utf8 = true;
    view.sight = Some(Sight::Job(Box::new(seen)));
    for key in keys.chars() {
        view.press(KeyEvent::new(KeyCode::Char(key), KeyModifiers::NONE), usize::from(columns));
    }
    let area = Rect::new(0, 0, columns, lines);
    let mut buffer = Buffer::empty(area);
    view.draw(&mut buffer, area);
    letters::lines(&buffer)
}
