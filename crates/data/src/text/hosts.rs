//! Names of nodes in words.

/// Stretches that are named.
const NAMED: usize = 4;

/// "n001 to n157, login2": names that differ in a number alone are one stretch where the numbers follow each other; at most four
/// of these are named.
pub fn list_hosts<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    let mut names: Vec<Name<'_>> = names.into_iter().map(Name::new).collect();
    names.sort_unstable();
    names.dedup();
    let stretches: Vec<&[Name<'_>]> = names.chunk_by(Name::is_followed_by).collect();
    let named = stretches.iter().take(NAMED).map(|stretch| match stretch {
        [first, .., last] => format!("{} to {}", first.text, last.text),
        stretch => stretch[0].text.to_owned(),
    });
    let mut list = named.collect::<Vec<_>>().join(", ");
    if stretches.len() > NAMED {
        list += ", …";
    }
    list
}

/// A name with the last number of its first label taken out; in the order of these parts.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Name<'a> {
    before: &'a str,
    behind: &'a str,
    number: Option<u64>,
    text: &'a str,
}

impl<'a> Name<'a> {
    fn new(text: &'a str) -> Name<'a> {
        let is_digit = |letter: char| letter.is_ascii_digit();
        let label = &text[..text.find('.').unwrap_or(text.len())];
        let end = label.rfind(is_digit).map_or(0, |last| last + 1);
        let begin = label[..end].trim_end_matches(is_digit).len();
        let (before, behind) = (&text[..begin], &text[end..]);
        Name { before, behind, number: text[begin..end].parse().ok(), text }
    }

    fn is_followed_by(&self, next: &Name<'_>) -> bool {
        let follows =
            self.number.zip(next.number).is_some_and(|(a, b)| a.checked_add(1) == Some(b));
        follows && (self.before, self.behind) == (next.before, next.behind)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbered_hosts_are_stretches() {
        let many: Vec<String> = (1..=157).map(|node| format!("n{node:03}")).collect();
        assert_eq!(list_hosts(many.iter().map(String::as_str)), "n001 to n157");
        assert_eq!(list_hosts(["b2", "b10", "b9", "a"]), "a, b2, b9 to b10");
        assert_eq!(list_hosts(["r1-n1.site", "r1-n2.site"]), "r1-n1.site to r1-n2.site");
        assert_eq!(list_hosts(["n1.a", "n2.a", "n1.b"]), "n1.a to n2.a, n1.b");
        assert_eq!(list_hosts(["a", "b", "c", "d", "e"]), "a, b, c, d, …");
        let beyond = "n99999999999999999999999";
        assert_eq!(list_hosts([beyond, ""]), format!(", {beyond}"));
    }
}
