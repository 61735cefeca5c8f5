//! A crash at every byte that is written: the store that starts afterwards is as it was at the last complete write, or at
//! the one that was under way.

use super::*;

/// What a program finds that starts after a crash: the file that was published, as far as it is certainly on the disk, and
/// what may be there besides.
#[derive(Debug, Clone, Default)]
struct File {
    certain: Vec<u8>,
    pending: Vec<u8>,
}

impl File {
    /// Disks write parts of a file in any order, and a file can be longer than what was written of it.
    fn found(&self) -> Vec<Vec<u8>> {
        let half = self.pending.len() / 2;
        let zeros = |from: usize, to: usize| {
            let mut pending = self.pending.clone();
            pending[from..to].fill(0);
            pending
        };
        let pending = [
            Vec::new(),
            self.pending.clone(),
            self.pending[..half].to_vec(),
            zeros(0, half),
            zeros(half, self.pending.len()),
        ];
        pending.iter().map(|pending| [&self.certain[..], pending].concat()).collect()
    }
}

/// All that may be found after the disk has done `steps` of `log`, and `bytes` of the append that follows.
fn after_crash(log: &[Stored], steps: usize, bytes: usize) -> Vec<Option<Vec<u8>>> {
    let (mut published, mut begun): (Option<File>, Option<File>) = (None, None);
    let cut;
    let mut done: Vec<&Stored> = log[..steps].iter().collect();
    let mut maybe = None;
    match log.get(steps) {
        Some(Stored::Append(all)) => {
            cut = Stored::Append(all[..bytes].to_vec());
            done.push(&cut);
        }
        // The folder may be on the disk before the call returns.
        Some(Stored::Publish) => maybe = Some(()),
        _ => {}
    }
    for stored in done {
        let open = begun.as_mut().or(published.as_mut());
        match stored {
            Stored::Begin => begun = Some(File::default()),
            Stored::Append(bytes) => open.expect("a file").pending.extend(bytes),
            Stored::Sync => {
                let open = open.expect("a file");
                let pending = std::mem::take(&mut open.pending);
                open.certain.extend(pending);
            }
            Stored::Publish => published = begun.take(),
            Stored::SetAside => published = None,
        }
    }
    let found = |file: &Option<File>| match file {
        None => vec![None],
        Some(file) => file.found().into_iter().map(Some).collect(),
    };
    let mut all = found(&published);
    if maybe.is_some() {
        all.extend(found(&begun));
    }
    all
}

#[test]
fn after_a_crash_at_any_byte_the_store_is_as_it_was_at_a_complete_write() {
    const KEYS: u64 = 3;
    let clock = ManualClock::new();
    let mut kept = StoreOnDisk::new(4, &clock);
    let everything = |store: &Memory| -> Vec<u64> {
        let keys = limits().into_iter().flat_map(|limit| (0..KEYS).map(move |key| (limit, key)));
        keys.map(|(limit, key)| remaining(store, limit, key)).collect()
    };
    // What the disk had done when a write was complete, and what the store had counted then.
    let mut complete = vec![(kept.disk.log().len(), everything(&kept.store))];
    for round in 0..4 {
        for limit in limits() {
            for key in (0..KEYS).filter(|key| (key + round) % 2 == 0) {
                assert!(admits(&kept.store, limit, key));
            }
        }
        if round == 2 {
            // Half of it goes to a file of its own.
            kept.writer.begin_anew();
        }
        kept.write();
        complete.push((kept.disk.log().len(), everything(&kept.store)));
    }

    let log = kept.disk.log();
    let mut crashes = 0;
    for steps in 0..=log.len() {
        let appended =
            if let Some(Stored::Append(bytes)) = log.get(steps) { bytes.len() } else { 0 };
        // What was counted when the write before this moment was complete, and when the next one was.
        let before = complete.iter().rposition(|(done, _)| *done <= steps);
        let next = before.map_or(0, |before| before + 1).min(complete.len() - 1);
        let nothing = everything(&Memory::builder().clock(&clock).build());
        let before = before.map_or(&nothing, |before| &complete[before].1);
        for bytes in 0..=appended {
            for found in after_crash(&log, steps, bytes) {
                crashes += 1;
                let builder = Memory::builder().capacity(4).clock(&clock);
                let after = StoreOnDisk::start(builder, found);
                assert_eq!(after.opened.refused, None, "{steps}, {bytes} of {appended}");
                let counted = everything(&after.store);
                assert!(
                    counted == *before || counted == complete[next].1,
                    "{steps}, {bytes} of {appended}: {counted:?}"
                );
            }
        }
    }
    assert!(crashes > 10_000, "{crashes}");
}

#[test]
fn after_a_failed_write_everything_is_written_to_a_new_file() {
    let clock = ManualClock::new();
    let mut kept = StoreOnDisk::new(100, &clock);
    let limit = Limit::per_hour(3);
    assert!(admits(&kept.store, limit, 1));
    kept.write();
    assert!(admits(&kept.store, limit, 1));
    kept.disk.set_failing(true);
    assert!(kept.writer.write(&kept.store.0).is_err());
    assert!(admits(&kept.store, limit, 2));
    kept.disk.set_failing(false);
    kept.write();
    let restarted = kept.restarted(100, &clock);
    assert_eq!([1, 2].map(|key| remaining(&restarted.store, limit, key)), [1, 2]);
}

#[test]
fn only_what_has_changed_is_written_until_that_is_more_than_everything() {
    let clock = ManualClock::new();
    let mut kept = StoreOnDisk::new(10_000, &clock);
    let limit = Limit::per_hour(1_000_000);
    (0..10_000).for_each(|key| assert!(admits(&kept.store, limit, key)));
    kept.write();
    let all = kept.file().len();
    kept.write();
    assert_eq!(kept.file().len(), all, "nothing has changed");
    assert!(admits(&kept.store, limit, 7));
    kept.write();
    let one = kept.file().len() - all;
    assert!((1..300).contains(&one), "{one}");
    let mut longest = 0;
    for _ in 0..40 {
        (0..10_000).for_each(|key| assert!(admits(&kept.store, limit, key)));
        kept.write();
        longest = kept.file().len().max(longest);
    }
    assert!(longest < 6 << 20, "{longest}");
    assert!(kept.disk.log().iter().filter(|stored| **stored == Stored::Publish).count() > 1);
}
