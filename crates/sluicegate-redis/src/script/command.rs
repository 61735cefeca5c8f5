use redis::{Arg, Cmd};

use super::source::Script;

/// `EVALSHA`: the script by its hash.
pub(crate) fn by_hash<'a>(
    script: &Script,
    keys: impl Iterator<Item = &'a [u8]> + Clone,
    args: &[u8],
) -> Cmd {
    eval("EVALSHA", script.sha(), keys, args)
}

/// `EVAL`: the command with the script itself, which the server knows from then on.
pub(crate) fn in_full(script: &Script, by_hash: &Cmd) -> Cmd {
    let mut full = redis::cmd("EVAL");
    full.arg(script.source());
    for argument in by_hash.args_iter().skip(2) {
        if let Arg::Simple(bytes) = argument {
            full.arg(bytes);
        }
    }
    full
}

pub(super) fn eval<'a>(
    name: &str,
    script: &str,
    keys: impl Iterator<Item = &'a [u8]> + Clone,
    args: &[u8],
) -> Cmd {
    let (count, bytes) =
        keys.clone().fold((0, 0), |(count, bytes), key| (count + 1, bytes + key.len()));
    let bytes = name.len() + script.len() + bytes + args.len();
    let mut command = Cmd::with_capacity(count + 4, bytes + 16);
    command.arg(name).arg(script).arg(count);
    keys.for_each(|key| {
        command.arg(key);
    });
    command.arg(args);
    command
}
