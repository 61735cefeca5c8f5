//! Which benchmarks the command line asks for.

use std::ffi::OsString;

use crate::step::Failure;

/// Programs, and words that titles of tables have to contain.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Wanted {
    /// At least one.
    pub(super) programs: Vec<String>,
    /// Empty if all tables of these programs are wanted.
    pub(super) words: Vec<String>,
    pub(super) full: bool,
    everything: bool,
    arguments: Vec<String>,
}

impl Wanted {
    /// A program's name chooses that program. Any other word chooses the tables whose title contains it.
    pub(super) fn read(arguments: Vec<OsString>, programs: &[String]) -> Result<Self, Failure> {
        let mut wanted = Self::default();
        for argument in arguments {
            let argument = argument.to_string_lossy().into_owned();
            match &*argument {
                "--full" => wanted.full = true,
                // The separator between cargo's arguments and those of the programs.
                "--" => continue,
                flag if flag.starts_with('-') => {
                    return Err(Failure(format!("`{flag}` is no argument of `cargo xtask bench`")));
                }
                name if programs.iter().any(|program| program == name) => {
                    wanted.programs.push(name.to_owned());
                }
                word => wanted.words.push(word.to_owned()),
            }
            wanted.arguments.push(argument);
        }
        wanted.everything = wanted.programs.is_empty() && wanted.words.is_empty();
        if wanted.programs.is_empty() {
            wanted.programs = programs.to_vec();
        }
        Ok(wanted)
    }

    pub(super) fn is_everything(&self) -> bool {
        self.everything
    }

    /// The command line, as it can be typed again.
    pub(super) fn command(&self) -> String {
        let mut command = "cargo xtask bench".to_owned();
        for argument in &self.arguments {
            let quoted = argument.contains(char::is_whitespace).then(|| format!(" \"{argument}\""));
            command += &quoted.unwrap_or_else(|| format!(" {argument}"));
        }
        command
    }

    /// The words that no title contains.
    pub(super) fn in_vain(&self, titles: &[&str]) -> Vec<String> {
        let in_vain = |word: &&String| !titles.iter().any(|title| title.contains(word.as_str()));
        self.words
            .iter()
            .filter(in_vain)
            .map(|word| format!("no table that was printed has `{word}` in its title"))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(arguments: &[&str]) -> Result<Wanted, String> {
        let arguments = arguments.iter().map(OsString::from).collect();
        let programs = ["step", "table", "accuracy"].map(str::to_owned);
        Wanted::read(arguments, &programs).map_err(|failure| failure.0)
    }

    #[test]
    fn without_arguments_everything_is_wanted() {
        let wanted = read(&[]).unwrap();
        assert_eq!(wanted.programs, ["step", "table", "accuracy"]);
        assert!(wanted.is_everything() && wanted.words.is_empty());
        assert_eq!(wanted.command(), "cargo xtask bench");
        assert!(read(&["--full"]).unwrap().is_everything());
    }

    #[test]
    fn names_choose_programs_and_words_choose_tables() {
        let wanted = read(&["step", "2 threads", "--full"]).unwrap();
        assert_eq!((wanted.programs.len(), &*wanted.words), (1, &["2 threads".to_owned()][..]));
        assert!(wanted.full && !wanted.is_everything());
        assert_eq!(wanted.command(), "cargo xtask bench step \"2 threads\" --full");
        assert_eq!(read(&["refused"]).unwrap().programs.len(), 3);
    }

    #[test]
    fn an_unknown_flag_is_refused() {
        assert_eq!(
            read(&["--fast"]).unwrap_err(),
            "`--fast` is no argument of `cargo xtask bench`"
        );
    }

    #[test]
    fn a_word_that_no_title_contains_is_named() {
        let wanted = read(&["refused", "tread"]).unwrap();
        assert_eq!(
            wanted.in_vain(&["The table, refused"]),
            ["no table that was printed has `tread` in its title"]
        );
    }
}
