//! Files that are not as they were written.

use proptest::prelude::*;

use super::super::format::{Kind, Pages, Times, write_header, write_row};
use super::super::read::{Saved, Unreadable};
use super::*;
use crate::key::hash::SECRET_BYTES;

/// A file of three groups, and where each ends.
fn file() -> (Vec<u8>, [usize; 3]) {
    let clock = ManualClock::new();
    let mut kept = StoreOnDisk::new(4, &clock);
    let ends = [0, 1, 2].map(|round| {
        if round == 0 {
            kept.writer.begin_anew();
        }
        limits().into_iter().for_each(|limit| assert!(admits(&kept.store, limit, round)));
        kept.write();
        kept.file().len()
    });
    (kept.file(), ends)
}

/// The number of rows, and whether the last group was left out.
fn read(bytes: &[u8]) -> Result<(usize, bool), Unreadable> {
    let saved = Saved::read(bytes)?;
    Ok((saved.rows().count(), saved.is_torn))
}

#[test]
fn a_file_that_is_cut_short_is_read_up_to_the_last_complete_write() {
    let (bytes, [first, second, third]) = file();
    let rows = limits().len();
    for length in 0..=bytes.len() {
        let expected = match length {
            0..8 => Err(Unreadable::Foreign),
            _ if length < first => Err(Unreadable::Damaged),
            _ if length < second => Ok((rows, length > first)),
            _ if length < third => Ok((2 * rows, length > second)),
            _ => Ok((3 * rows, false)),
        };
        assert_eq!(read(&bytes[..length]), expected, "{length}");
    }
}

#[test]
fn a_file_with_any_bit_flipped_is_refused_or_read_without_the_last_write() {
    let (bytes, [_, second, _]) = file();
    let rows = limits().len();
    for bit in 0..8 * bytes.len() {
        let mut flipped = bytes.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        match read(&flipped) {
            Err(_) => assert!(bit / 8 < second, "{bit}"),
            // It may have been cut short, for all that is known.
            Ok(read) => {
                assert!(bit / 8 >= second, "{bit}");
                assert_eq!(read, (2 * rows, true));
            }
        }
    }
}

#[test]
fn a_file_that_is_something_else_is_moved_aside_and_nothing_of_it_counts() {
    let (bytes, _) = file();
    let mut newer = bytes.clone();
    newer[8] = 2;
    let mut repeated = bytes.clone();
    repeated.extend_from_slice(&bytes);
    let clock = ManualClock::new();
    for (bytes, expected) in [
        (Vec::new(), Unreadable::Foreign),
        (b"[limits]\n".to_vec(), Unreadable::Foreign),
        (newer, Unreadable::Newer(2)),
        (bytes[..300].to_vec(), Unreadable::Damaged),
    ] {
        let builder = Memory::builder().capacity(10).clock(&clock);
        let kept = StoreOnDisk::start(builder, Some(bytes));
        assert_eq!(kept.opened.refused, Some(expected));
        assert_eq!(kept.disk.log()[0], Stored::SetAside);
        assert!(kept.store.is_empty());
    }
    assert_eq!(read(&repeated), Ok((3 * limits().len(), true)));
    assert_eq!(
        Unreadable::Newer(2).to_string(),
        "it has format 2: a newer version of sluicegate wrote it"
    );
}

#[test]
fn bytes_that_only_look_like_a_file_are_no_danger() {
    let page = |content: &dyn Fn(&mut Pages<'_>)| {
        let mut bytes = write_header(&[1; SECRET_BYTES]);
        let mut append = |page: &[u8]| {
            bytes.extend_from_slice(page);
            Ok(())
        };
        let mut pages = Pages::new(0, &mut append);
        content(&mut pages);
        pages.finish(Times::default()).expect("a vector");
        read(&bytes)
    };
    let rows = |rows, bytes: Vec<u8>| {
        page(&|pages| {
            let place = (Kind::FullState, 3);
            pages.bucket(place, false, rows, &bytes, Times::default()).expect("a vector");
        })
    };
    let mut row = Vec::new();
    write_row(7, 8, &mut row);
    assert_eq!(page(&|_| ()), Ok((0, false)));
    assert_eq!(rows(1, row.clone()), Err(Unreadable::Damaged));
    // A state that says that it has 4 GB.
    row.extend_from_slice(&[0; 8]);
    row.extend_from_slice(&[255; 4]);
    assert_eq!(rows(1, row.clone()), Err(Unreadable::Damaged));
    assert_eq!(rows(255, Vec::new()), Err(Unreadable::Damaged));
    assert_eq!(rows(0, vec![9; 5]), Err(Unreadable::Damaged));
}

proptest! {
    /// The fuzzer looks for more: `cargo fuzz run count_file`.
    #[test]
    fn no_bytes_make_the_reader_panic(
        rows in prop::collection::vec((0_u8..6, 0_u32..4, 0_u8..3, prop::collection::vec(0_u8..9, 0..60)), 0..9),
        is_page: bool,
    ) {
        let mut bytes = Vec::new();
        for (kind, bucket, rows, content) in rows {
            bytes.push(kind);
            bytes.extend_from_slice(&bucket.to_le_bytes());
            bytes.push(rows);
            bytes.extend_from_slice(&content);
        }
        let builder = || Memory::builder().capacity(4).clock(ManualClock::at(Duration::ZERO));
        if let Some(store) = builder().read_only(&bytes, is_page) {
            prop_assert!(store.len() <= 40);
        }
        // Whatever was read is whole.
        let mut row = vec![0, 0, 0, 0, 0, 1];
        row.extend_from_slice(&[1; 16]);
        prop_assert!(builder().read_only(&row, true).is_some_and(|store| store.len() == 1));
    }
}

#[test]
fn the_format_is_pinned() {
    let mut bytes = write_header(&[7; SECRET_BYTES]);
    let mut append = |page: &[u8]| {
        bytes.extend_from_slice(page);
        Ok(())
    };
    let mut pages = Pages::new(0, &mut append);
    let mut row = Vec::new();
    write_row(5, 6, &mut row);
    let place = (Kind::OneWord, 4);
    let times = Times { store: 2, wall: 3 };
    pages.bucket(place, false, 1, &row, times).expect("a vector");
    pages.finish(times).expect("a vector");
    let hex = |bytes: &[u8]| -> String { bytes.iter().map(|byte| format!("{byte:02x}")).collect() };
    assert_eq!(hex(&bytes[..16]), "736c75696365676d0100000000000000");
    assert_eq!(
        hex(&bytes[16 + SECRET_BYTES..]),
        "34aa312b4f0c9229\
         89706167650d0a1a\
         0000000000000000\
         0000000000000000\
         0200000000000000\
         0300000000000000\
         2d00000000000000\
         4f5d026d6b99b08b\
         000400000001\
         0500000000000000\
         0600000000000000\
         950650c89c16e643"
    );
}
