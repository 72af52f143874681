//! Command lines to paste into a shell.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use super::visible::is_hostile;

/// A word on one line, quoted where a shell would take it for more than a word. What no terminal should see, and bytes that
/// are no text, become escapes of bash, ksh and zsh (`$'\x1b'`), which shlex does not write.
pub fn quote(word: impl AsRef<OsStr>) -> String {
    let word = word.as_ref();
    let text = word.to_str().filter(|text| !text.chars().any(is_hostile));
    match text.map(shlex::try_quote) {
        Some(Ok(quoted)) => quoted.into_owned(),
        _ => escape(word.as_bytes()),
    }
}

/// Words with blanks between them, each as [`quote`] has it.
pub fn join(words: impl IntoIterator<Item = impl AsRef<OsStr>>) -> String {
    words.into_iter().map(quote).collect::<Vec<_>>().join(" ")
}

fn escape(bytes: &[u8]) -> String {
    let mut quoted = String::from("$'");
    let push_bytes = |quoted: &mut String, bytes: &[u8]| {
        bytes.iter().for_each(|byte| quoted.push_str(&format!("\\x{byte:02x}")));
    };
    for chunk in bytes.utf8_chunks() {
        for letter in chunk.valid().chars() {
            match letter {
                '\'' | '\\' => quoted.extend(['\\', letter]),
                letter if is_hostile(letter) => {
                    push_bytes(&mut quoted, letter.encode_utf8(&mut [0; 4]).as_bytes());
                }
                letter => quoted.push(letter),
            }
        }
        push_bytes(&mut quoted, chunk.invalid());
    }
    quoted + "'"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_for_shells() {
        assert_eq!(quote("./a-b.c"), "./a-b.c");
        assert_eq!(quote(""), "''");
        assert_eq!(quote("it's\x1b[2J\u{9b}\n"), r"$'it\'s\x1b[2J\xc2\x9b\x0a'");
        assert_eq!(quote(OsStr::from_bytes(b"run-\xff")), r"$'run-\xff'");
        assert_eq!(join(["mpirun", "two words"]), "mpirun 'two words'");
    }

    #[test]
    fn what_is_quoted_is_the_same_word_again() {
        for word in
            ["it's $HOME", "tcp,self", "~root", "a=b", "`x`", "!!", "^", "*", "\\", "#1", "é"]
        {
            assert_eq!(shlex::split(&quote(word)), Some(vec![word.to_owned()]), "{word}");
        }
    }
}
