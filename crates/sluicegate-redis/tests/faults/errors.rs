use sluicegate_core::ManualClock;
use sluicegate_redis::FailureKind;

use crate::fake::{Act, Command, Fake, bulk};
use crate::{kind, store, take, until};

/// A server that answers the first script with `words`, and the next ones as usual.
fn once(words: &'static [u8]) -> Fake {
    let mut said = false;
    Fake::new(move |name: &str, _: &Command| {
        let says = name == "EVALSHA" && !std::mem::replace(&mut said, true);
        says.then(|| Act::Say(words.to_vec()))
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn an_error_of_the_server_has_its_kind_and_is_never_a_refusal() {
    use FailureKind::*;
    for (words, expected) in [
        (&b"-OOM command not allowed when used memory > 'maxmemory'\r\n"[..], OutOfMemory),
        (b"-READONLY You can't write against a read only replica.\r\n", ReadOnly),
        (b"-LOADING Redis is loading the dataset in memory\r\n", Busy),
        (b"-CLUSTERDOWN The cluster is down\r\n", Cluster),
        (b"-MOVED 1234 127.0.0.1:1\r\n", Cluster),
        (b"-WRONGTYPE Operation against a key holding the wrong kind of value\r\n", WrongType),
        (b"-NOPERM this user has no permissions to run the 'evalsha' command\r\n", Denied),
        (b"-ERR user_script:1: attempt to index a nil value\r\n", Script),
        (b"$5\r\nshort\r\n", Script),
        (b"+OK\r\n", Protocol),
        (b"what?\r\n", Protocol),
    ] {
        let said = String::from_utf8_lossy(words);
        let (fake, clock) = (once(words), ManualClock::new());
        let store = store(&fake, &clock);
        assert_eq!(kind(take(&store).await), expected, "{said}");
        assert!(take(&store).await.expect("a decision").is_admitted(), "{said}");
        let counts = store.counts();
        assert_eq!((counts.failures, counts.failures_of(expected)), (1, 1), "{said}");
        assert_eq!((counts.decisions, counts.admitted, counts.refused), (1, 1, 0), "{said}");
        match expected {
            // Its name is resolved again: another server may have it by now.
            ReadOnly => assert_eq!(counts.connections, 2, "a replica is left"),
            OutOfMemory => assert_eq!(counts.connections, 1, "a full server is not"),
            _ => {}
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_without_the_script_gets_it_at_once() {
    let (fake, clock) = (once(b"-NOSCRIPT No matching script.\r\n"), ManualClock::new());
    let store = store(&fake, &clock);
    assert!(take(&store).await.expect("a decision").is_admitted());
    assert_eq!((fake.seen("EVALSHA"), fake.seen("EVAL")), (1, 1));
    assert!(take(&store).await.expect("a decision").is_admitted());
    assert_eq!((fake.seen("EVALSHA"), fake.seen("EVAL")), (2, 1));
    assert_eq!(store.counts().scripts_loaded, 1);
    assert_eq!(store.counts().failures, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_whose_connection_breaks_is_not_repeated() {
    let mut broken = false;
    let fake = Fake::new(move |name, _| {
        let breaks = name == "EVALSHA" && !std::mem::replace(&mut broken, true);
        breaks.then_some(Act::Close)
    });
    let store = store(&fake, &ManualClock::new());
    assert_eq!(kind(take(&store).await), FailureKind::Unreachable);
    assert_eq!(fake.seen("EVALSHA"), 1, "it may have been charged");
    assert_eq!(store.counts().unanswered, 1);
    take(&store).await.expect("a new connection");
    until(&store, |counts| counts.connections == 2).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_packed_answer_of_another_script_is_an_error() {
    let mut said = false;
    let fake = Fake::new(move |name, _| {
        let says = name == "EVALSHA" && !std::mem::replace(&mut said, true);
        says.then(|| Act::Say(bulk(&[7; 34])))
    });
    let store = store(&fake, &ManualClock::new());
    assert_eq!(kind(take(&store).await), FailureKind::Script);
}
