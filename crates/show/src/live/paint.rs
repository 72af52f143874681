//! What the screen and its rows have in common: what the user has chosen, how things are painted, and words.

use ratatui::style::{Color, Modifier, Style};
use ratatui::text::Span;

use lapscope_data::symbols::FrameName;
use lapscope_data::text::visible::visible;
use lapscope_watch::live::bins::RankOrder;

/// What the user has chosen to see.
#[derive(Debug, Clone, Copy, Default)]
pub struct Chosen {
    pub order: RankOrder,
    /// Ranks put together, or one by one; `None`: together where they are many.
    pub binned: Option<bool>,
    /// Rows of ranks above the first one shown.
    pub scroll: usize,
    pub is_paused: bool,
    /// The terminal shows colours.
    pub color: bool,
}

/// How things are painted.
#[derive(Debug, Clone, Copy)]
pub struct Paint {
    color: bool,
}

impl Paint {
    pub fn new(color: bool) -> Paint {
        Paint { color }
    }

    pub fn plain(self, text: impl Into<String>) -> Span<'static> {
        Span::raw(visible(&text.into()).into_owned())
    }

    pub fn bold(self, text: impl Into<String>) -> Span<'static> {
        self.styled(text, Style::new().add_modifier(Modifier::BOLD))
    }

    pub fn dim(self, text: impl Into<String>) -> Span<'static> {
        self.styled(text, Style::new().add_modifier(Modifier::DIM))
    }

    pub fn alert(self, text: impl Into<String>) -> Span<'static> {
        self.styled(text, self.colored(Color::Red).add_modifier(Modifier::BOLD))
    }

    pub fn bar(self, text: impl Into<String>) -> Span<'static> {
        self.styled(text, self.colored(Color::Yellow))
    }

    fn colored(self, color: Color) -> Style {
        match self.color {
            true => Style::new().fg(color),
            false => Style::new(),
        }
    }

    fn styled(self, text: impl Into<String>, style: Style) -> Span<'static> {
        Span::styled(visible(&text.into()).into_owned(), style)
    }
}

/// A rate: "0", "0.3", "12.5", "1234", "12.3 M".
pub fn rate(rate: f64) -> String {
    match rate {
        rate if rate <= 0.0 => "0".into(),
        rate if rate < 99.95 => format!("{rate:.1}"),
        rate => lapscope_data::text::units::count(rate.round() as u64),
    }
}

/// "MPI_Waitall exchange halo.c:95".
pub fn place(call: &str, site: Option<&FrameName>) -> String {
    match site {
        Some(site) => format!("{call} {}", site.short()),
        None => call.to_owned(),
    }
}
