//! Completions and manual pages cover every command and option.

use std::process::Command;

fn sluicegate(arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_sluicegate")).args(arguments).output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// The names of commands, as `--help` lists them.
fn commands() -> Vec<String> {
    let help = sluicegate(&["--help"]);
    let listed = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let listed = listed.take_while(|line| line.starts_with("  "));
    listed.filter_map(|line| line.split_whitespace().next().map(str::to_owned)).collect()
}

/// The long options of a command, as its `--help` lists them, each with the lines below it.
fn options(command: &str) -> Vec<(String, String)> {
    let help = sluicegate(&[command, "--help"]);
    let mut options: Vec<(String, String)> = Vec::new();
    for line in help.lines() {
        let trimmed = line.trim_start();
        let is_option = trimmed.starts_with("--") || trimmed.starts_with("-h, --");
        let named = trimmed.split(' ').find(|word| word.starts_with("--")).filter(|_| is_option);
        match (named, options.last_mut()) {
            // Short descriptions are on the same line.
            (Some(name), _) => {
                // A value that may be left out follows without a space.
                let name = name.split('[').next().unwrap_or(name);
                let words = trimmed.split_once("  ").map_or("", |(_, words)| words.trim());
                options.push((name.to_owned(), words.to_owned()));
            }
            (None, Some((_, words))) => words.push_str(trimmed),
            (None, None) => {}
        }
    }
    options
}

#[test]
fn every_command_and_option_has_a_sentence_in_the_help() {
    let commands = commands();
    for expected in ["serve", "check", "health", "top", "suggest", "completions", "man"] {
        assert!(commands.iter().any(|command| command == expected), "{commands:?}");
    }
    for command in commands.iter().filter(|command| *command != "help") {
        let options = options(command);
        assert!(options.iter().any(|(name, _)| name == "--help"), "{command}: {options:?}");
        for (name, words) in options {
            assert!(words.split(' ').count() >= 2, "{command} {name}: {words:?}");
        }
    }
}

#[test]
fn completions_cover_every_command_and_option() {
    for (shell, dash) in
        [("bash", "--"), ("zsh", "--"), ("fish", "-l "), ("elvish", "--"), ("powershell", "--")]
    {
        let script = sluicegate(&["completions", shell]);
        for command in commands() {
            assert!(script.contains(&command), "{shell} does not know {command}");
            if command == "help" {
                continue;
            }
            for (name, _) in options(&command) {
                let word = name.replacen("--", dash, 1);
                assert!(script.contains(&word), "{shell} does not know {command} {name}");
            }
        }
    }
}

#[test]
fn every_command_has_a_manual_page_with_every_option() {
    let first = sluicegate(&["man"]);
    assert!(first.contains(".TH sluicegate 1"), "{first}");
    for command in commands().iter().filter(|command| *command != "help") {
        assert!(first.contains(&format!("sluicegate\\-{command}(1)")), "{command}: {first}");
        let page = sluicegate(&["man", command]);
        assert!(page.contains(&format!(".TH sluicegate-{command} 1")), "{page}");
        for (name, _) in options(command) {
            let name = name.replace('-', "\\-");
            assert!(page.contains(&name), "{command} {name} is not in:\n{page}");
        }
    }
}

#[test]
fn a_page_of_an_unknown_command_is_an_error_that_lists_the_commands() {
    let output = Command::new(env!("CARGO_BIN_EXE_sluicegate")).args(["man", "server"]).output();
    let output = output.unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1));
    assert!(said.contains("`server`") && said.contains("serve, check"), "{said}");
}
