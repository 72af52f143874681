//! Text in pages of HTML.

use super::visible::visible;

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
}
