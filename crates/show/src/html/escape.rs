//! What comes from a run is text, whatever it holds: the only ways by which it gets into a page.

use std::borrow::Cow;
use std::fmt::Write;

pub use lapscope_data::text::html::escape;

/// Names longer than this are cut.
const MOST_LETTERS: usize = 400;

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
