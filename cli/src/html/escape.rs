//! What comes from a run is text, whatever it holds: the only ways by which it gets into a page.

use std::borrow::Cow;
use std::fmt::Write;

use lapscope_data::text::visible::visible;

/// Names longer than this are cut.
const MOST_LETTERS: usize = 400;

/// As text of an element, or as the value of an attribute within double quotes. What could command a terminal, turn the
/// direction of text or has no picture is shown as `\x1b`, `\u{202e}`.
pub fn escape(text: &str) -> String {
    let text = visible(text);
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            letter => escaped.push(letter),
        }
    }
    escaped
}

/// As much of a name as a page has room for.
pub fn cut(text: &str) -> Cow<'_, str> {
    cut_to(text, MOST_LETTERS)
}

/// At most so many letters.
pub fn cut_to(text: &str, most: usize) -> Cow<'_, str> {
    match text.char_indices().nth(most) {
        None => Cow::Borrowed(text),
        Some((end, _)) => Cow::Owned(format!("{}…", &text[..end])),
    }
}

/// JSON that may stand in a `<script>`: nothing in it ends that element, or begins a comment.
pub fn script_json(json: &str) -> String {
    let mut safe = String::with_capacity(json.len());
    for letter in json.chars() {
        match letter {
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => {
                write!(safe, "\\u{:04x}", letter as u32).expect("a String takes everything");
            }
            letter => safe.push(letter),
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_of_a_run_is_markup() {
        let hostile = "</script><img src=x onerror='a()'>\"\u{202e}\x1b[2J&";
        let escaped = escape(hostile);
        assert!(!escaped.contains(['<', '>', '"', '\'', '\u{202e}', '\x1b']), "{escaped}");
        assert!(escaped.contains("\\u{202e}\\x1b[2J&amp;"), "{escaped}");
    }

    #[test]
    fn data_stay_inside_their_script() {
        let json = serde_json::to_string("</script><!--&\u{2028}").unwrap();
        let safe = script_json(&json);
        assert!(!safe.contains(['<', '>', '&', '\u{2028}']), "{safe}");
        assert_eq!(serde_json::from_str::<String>(&safe).unwrap(), "</script><!--&\u{2028}");
    }

    #[test]
    fn names_are_cut_between_letters() {
        assert_eq!(cut_to("äöü", 3), "äöü");
        assert_eq!(cut_to("äöü", 2), "äö…");
    }
}
