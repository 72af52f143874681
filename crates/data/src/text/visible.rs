//! What could command a terminal, shown instead of sent.
//!
//! Names in a run are somebody else's: a command line, a host, a function may hold escape sequences, or characters that turn
//! the direction of what is written. Every byte of ours goes out through [`VisibleWriter`], which lets pass what is printed, line ends,
//! tabs, and the colours of [`crate::text::style::Style`].

use std::borrow::Cow;
use std::fmt::Write as _;
use std::io::{self, Write};

/// Style::paint's marks, and the SGR sequences that they become where the output is coloured. Noncharacters of Unicode, which
/// no text has; those in a value are shown as any control character.
pub const STYLE_MARKS: [(char, &str); 4] = [
    ('\u{fdd0}', "\x1b[0m"),
    ('\u{fdd1}', "\x1b[1m"),
    ('\u{fdd2}', "\x1b[2m"),
    ('\u{fdd3}', "\x1b[1;31m"),
];

/// Whether a terminal, or a reader's eye, may take `letter` for more than a letter: control characters (C0, DEL, C1), those
/// that turn the direction of text, separators of lines, and our own marks.
pub fn is_hostile(letter: char) -> bool {
    letter.is_control()
        || matches!(letter, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
        || matches!(letter, '\u{fdd0}'..='\u{fdef}' | '\u{feff}')
}

/// As a part of a line: `\x1b`, `\n`, `\u{202e}` in place of what [`is_hostile`]. JSON has the text itself.
pub fn visible(text: &str) -> Cow<'_, str> {
    if !text.chars().any(is_hostile) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for letter in text.chars() {
        if is_hostile(letter) {
            push_escape(&mut shown, letter);
        } else {
            shown.push(letter);
        }
    }
    Cow::Owned(shown)
}

fn push_escape(shown: &mut String, letter: char) {
    let written = match letter {
        '\n' => write!(shown, "\\n"),
        '\r' => write!(shown, "\\r"),
        '\t' => write!(shown, "\\t"),
        letter if letter.is_ascii() => write!(shown, "\\x{:02x}", letter as u32),
        letter => write!(shown, "\\u{{{:x}}}", letter as u32),
    };
    written.expect("a String takes everything");
}

/// What a stream is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// Lines to read, and CSV; in colour where a terminal shows them.
    Text { color: bool },
    /// Hostile characters become `\u` escapes, which JSON has for every character: it reads back as it was.
    Json,
}

/// Passes on to `out` what is harmless, and shows the rest.
#[derive(Debug)]
pub struct VisibleWriter<W> {
    out: W,
    form: Form,
    /// The begin of a character whose end is still to come.
    begun: Vec<u8>,
}

impl<W: Write> VisibleWriter<W> {
    pub fn new(out: W, form: Form) -> Self {
        VisibleWriter { out, form, begun: Vec::new() }
    }

    fn write_text(&mut self, text: &str) -> io::Result<()> {
        let mut rest = text;
        while let Some((at, letter)) =
            rest.char_indices().find(|(_, letter)| self.is_shown(*letter))
        {
            self.out.write_all(&rest.as_bytes()[..at])?;
            self.write_shown(letter)?;
            rest = &rest[at + letter.len_utf8()..];
        }
        self.out.write_all(rest.as_bytes())
    }

    fn is_shown(&self, letter: char) -> bool {
        is_hostile(letter) && !matches!(letter, '\n' | '\t')
    }

    fn write_shown(&mut self, letter: char) -> io::Result<()> {
        if self.form == Form::Json {
            return write!(self.out, "\\u{:04x}", letter as u32); // all of them are below U+10000
        }
        if self.form == (Form::Text { color: true }) {
            if let Some((_, sequence)) = STYLE_MARKS.iter().find(|(mark, _)| *mark == letter) {
                return self.out.write_all(sequence.as_bytes());
            }
        }
        let mut shown = String::new();
        push_escape(&mut shown, letter);
        self.out.write_all(shown.as_bytes())
    }

    fn write_bytes(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        loop {
            let error = match std::str::from_utf8(bytes) {
                Ok(text) => return self.write_text(text),
                Err(error) => error,
            };
            let (text, rest) = bytes.split_at(error.valid_up_to());
            self.write_text(std::str::from_utf8(text).expect("valid up to there"))?;
            let Some(wrong) = error.error_len() else {
                self.begun = rest.to_vec();
                return Ok(());
            };
            for byte in &rest[..wrong] {
                write!(self.out, "\\x{byte:02x}")?;
            }
            bytes = &rest[wrong..];
        }
    }
}

impl<W: Write> Write for VisibleWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let is_plain = |byte: &u8| matches!(byte, b' '..=b'~' | b'\n' | b'\t');
        if self.begun.is_empty() && bytes.iter().all(is_plain) {
            self.out.write_all(bytes)?;
        } else {
            let all = [std::mem::take(&mut self.begun).as_slice(), bytes].concat();
            self.write_bytes(&all)?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(form: Form, pieces: &[&[u8]]) -> String {
        let mut out = Vec::new();
        let mut shown = VisibleWriter::new(&mut out, form);
        pieces.iter().for_each(|piece| shown.write_all(piece).unwrap());
        String::from_utf8(out).unwrap()
    }

    const PLAIN: Form = Form::Text { color: false };

    #[test]
    fn what_commands_a_terminal_is_shown() {
        let hostile = "a\x1b]0;t\x07\r\x7f\u{9b}2J\u{202e}b\u{2066}é\n\tü";
        let shown = "a\\x1b]0;t\\x07\\r\\x7f\\u{9b}2J\\u{202e}b\\u{2066}é\n\tü";
        assert_eq!(written(PLAIN, &[hostile.as_bytes()]), shown);
        assert_eq!(visible("two\nlines\t\x1b"), "two\\nlines\\t\\x1b");
        assert_eq!(visible("Überlapp → 3 µs"), "Überlapp → 3 µs");
    }

    #[test]
    fn a_character_in_two_pieces_is_one() {
        let bytes = "é\u{9b}".as_bytes();
        for cut in 0..=bytes.len() {
            assert_eq!(written(PLAIN, &[&bytes[..cut], &bytes[cut..]]), "é\\u{9b}");
        }
        assert_eq!(written(PLAIN, &[b"no text: \xff\x9b!"]), "no text: \\xff\\x9b!");
    }

    #[test]
    fn colours_are_ours_alone() {
        let text = "\u{fdd1}bold\u{fdd0} \x1b[31m";
        assert_eq!(
            written(Form::Text { color: true }, &[text.as_bytes()]),
            "\x1b[1mbold\x1b[0m \\x1b[31m"
        );
        assert_eq!(written(PLAIN, &[text.as_bytes()]), "\\u{fdd1}bold\\u{fdd0} \\x1b[31m");
        assert!(!visible("\u{fdd1}").contains('\u{fdd1}'));
    }

    #[test]
    fn json_reads_back_as_it_was() {
        let text = "\x1b\x7f\u{9b}\u{202e}\u{2069}\u{feff}é\n";
        let json = serde_json::to_string(text).unwrap();
        let shown = written(Form::Json, &[json.as_bytes()]);
        assert!(!shown.chars().any(is_hostile), "{shown}");
        assert_eq!(serde_json::from_str::<String>(&shown).unwrap(), text);
    }
}
