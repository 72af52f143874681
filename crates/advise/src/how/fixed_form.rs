//! Fortran in fixed form: statements from column 7 to 72, continued by a mark in column 6; comments on lines of their own.

const LAST_COLUMN: usize = 72;
const MARGIN: &str = "      ";
const CONTINUED: &str = "     & ";

/// Free form of short lines, one statement each, with comments behind `!`, as fixed form.
pub fn rewrite(free: &str) -> String {
    let mut lines = Vec::new();
    for line in free.lines() {
        let code = line.trim_start();
        let indent = " ".repeat(line.len() - code.len());
        let (statement, comment) = match code.split_once('!') {
            Some((statement, comment)) => (statement.trim_end(), comment.trim()),
            None => (code, ""),
        };
        push(&mut lines, comment, "! ", "! ", ' ');
        push(
            &mut lines,
            statement,
            &format!("{MARGIN}{indent}"),
            &format!("{CONTINUED}{indent}"),
            ',',
        );
    }
    lines.join("\n")
}

/// Breaks a text behind the last of these letters that is in time, again and again.
fn push(lines: &mut Vec<String>, text: &str, begin: &str, next: &str, at: char) {
    let (mut left, mut begin) = (text, begin);
    while !left.is_empty() {
        let room = LAST_COLUMN - begin.len();
        let in_time = left.char_indices().take(room);
        let cut = match left.chars().count() > room {
            true => in_time.filter(|(_, letter)| *letter == at).last().map(|(place, _)| place + 1),
            false => None,
        };
        let (line, rest) = left.split_at(cut.unwrap_or(left.len()));
        lines.push(format!("{begin}{}", line.trim_end()));
        (left, begin) = (rest.trim_start(), next);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_broken_behind_commas_and_comments_stand_alone() {
        let long = format!("  call MPI_Irecv({}, ierr) ! wait here", ["argument"; 8].join(", "));
        let fixed = rewrite(&long);
        let lines: Vec<&str> = fixed.lines().collect();
        assert_eq!(lines[0], "! wait here");
        assert!(
            lines[1].starts_with("        call MPI_Irecv(argument,") && lines[1].ends_with(',')
        );
        assert!(lines[2].starts_with("     &   argument"), "{fixed}");
        assert!(lines.iter().all(|line| line.len() <= 72), "{fixed}");
    }
}
