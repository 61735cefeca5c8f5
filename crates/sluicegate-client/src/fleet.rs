//! Sources that tell a [`Fleet`] how many processes share a limit, beside heartbeats in Redis (`Redis::fleet` of
//! `sluicegate-redis`).
//!
//! | source | tells |
//! | --- | --- |
//! | [`dns`] | the addresses of a name, as that of a headless service in Kubernetes |
//! | [`file()`] | the number in a file, as one from a ConfigMap |
//! | [`by_look`] | what a function of yours finds |
//!
//! Each looks four times within the [bound](Fleet#the-bound), until its [`Membership`] is dropped. While a look fails,
//! the last view stays. A number that is too small for a moment, such as half of what is being written to a file, is
//! not spent: a part grows only when nothing smaller was seen for the bound.
//!
//! A gossip protocol would find members without a server, but it is a protocol of datagrams that anybody on the network
//! can forge, and everyone who has Kubernetes or Redis has a list of members that is kept by something better.
//!
//! ```
//! use std::time::Duration;
//! use sluicegate::{Limit, Limiter, Memory};
//! use sluicegate::store::Share;
//! use sluicegate_client::fleet;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // The address of this pod, from the downward API.
//! let own = std::env::var("POD_IP").unwrap_or("127.0.0.1".into()).parse()?;
//! let membership = fleet::dns("crawlers.default.svc.cluster.local", own, Duration::from_secs(30))?;
//! let limiter = Limiter::new(Limit::per_second(1_000)).store(Share::new(Memory::new(), membership.fleet()));
//! # let _ = limiter;
//! # Ok(())
//! # }
//! ```

use std::collections::BTreeSet;
use std::fs::File;
use std::future::poll_fn;
use std::io::Read;
use std::net::{IpAddr, ToSocketAddrs};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use sluicegate::adapter::ConfigError;
use sluicegate::store::{Fleet, Membership};
use tokio::sync::Semaphore;
use tokio::task::AbortHandle;

/// Looks within the bound.
const LOOKS: u32 = 4;

/// The most that is read of a file: more than a number has, with spaces around it.
const MOST_BYTES: u64 = 64;

/// Ends the task that looks.
struct Look(AbortHandle);

impl Drop for Look {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// The members are the addresses that the name `host` has, of the same family as `own`, which is one of them. As long as
/// it is not, this process is no member and has nothing: in Kubernetes, until the pod is ready.
///
/// The bound has to be four times as long as names are cached, and as it takes to drop a pod that has crashed.
///
/// The name has to have all addresses in every answer. With a server of names that answers with some of them, in turn,
/// members would count too few, and spend more than the limit.
///
/// # Errors
///
/// When there is no tokio runtime, or the bound is less than 10 ms, or ten minutes and more.
pub fn dns(host: &str, own: IpAddr, bound: Duration) -> Result<Membership, ConfigError> {
    let host = host.to_owned();
    by_blocking_look(bound, move || {
        let found = (host.as_str(), 0).to_socket_addrs().ok()?;
        Some(count(found.map(|address| address.ip()), own))
    })
}

fn count(found: impl Iterator<Item = IpAddr>, own: IpAddr) -> u64 {
    let members: BTreeSet<_> = found.filter(|found| found.is_ipv4() == own.is_ipv4()).collect();
    if members.contains(&own) { members.len() as u64 } else { 0 }
}

/// The file at `path` has the number of members, in decimal digits. Write it under another name and rename it, so that
/// nobody reads half of it.
///
/// # Errors
///
/// When there is no tokio runtime, or the bound is less than 10 ms, or ten minutes and more.
pub fn file(path: impl Into<PathBuf>, bound: Duration) -> Result<Membership, ConfigError> {
    let path = path.into();
    by_blocking_look(bound, move || {
        let mut text = String::new();
        File::open(&path).ok()?.take(MOST_BYTES).read_to_string(&mut text).ok()?;
        text.trim().parse().ok()
    })
}

/// Looks on a thread for what may block, one look at a time: a file system or a server of names that does not answer holds
/// one thread, and not one more with each look.
fn by_blocking_look<L>(bound: Duration, look: L) -> Result<Membership, ConfigError>
where
    L: Fn() -> Option<u64> + Send + Sync + 'static,
{
    let (look, free) = (Arc::new(look), Arc::new(Semaphore::new(1)));
    by_look(bound, move || {
        let (look, free) = (look.clone(), free.clone());
        async move {
            let place = free.try_acquire_owned().ok()?;
            let looking = tokio::task::spawn_blocking(move || {
                let _place = place;
                look()
            });
            looking.await.ok()?
        }
    })
}

/// The number of members is what `look` returns, this process among them; 0 if it is none, `None` if the look has
/// failed. One that panics has failed, too.
///
/// # Errors
///
/// When there is no tokio runtime, or the bound is less than 10 ms, or ten minutes and more.
pub fn by_look<L, F>(bound: Duration, look: L) -> Result<Membership, ConfigError>
where
    L: Fn() -> F + Send + 'static,
    F: Future<Output = Option<u64>> + Send + 'static,
{
    if !(Duration::from_millis(10)..Duration::from_secs(600)).contains(&bound) {
        let text =
            format!("the bound is {bound:?}, but must be from 10 ms to less than 10 minutes");
        return Err(ConfigError::new(text));
    }
    let Ok(runtime) = tokio::runtime::Handle::try_current() else {
        return Err(ConfigError::new("there is no tokio runtime to look for members in"));
    };
    let fleet = Fleet::new(bound);
    let (seen, pause) = (fleet.clone(), bound / LOOKS);
    let task = runtime.spawn(async move {
        loop {
            // A look that takes longer than a pause would be too old.
            if let Ok(Some(count)) = tokio::time::timeout(pause, unwound(&look)).await {
                seen.see(count);
            }
            tokio::time::sleep(pause).await;
        }
    });
    Ok(Membership::new(fleet, Look(task.abort_handle())))
}

/// What `look` finds; `None` if it panics. The task goes on: without it the last view would stay for ever.
fn unwound<F>(look: impl FnOnce() -> F) -> impl Future<Output = Option<u64>>
where
    F: Future<Output = Option<u64>>,
{
    // What has panicked is not looked at again.
    let mut looking = catch_unwind(AssertUnwindSafe(look)).ok().map(Box::pin);
    poll_fn(move |cx| {
        let Some(looking) = &mut looking else { return Poll::Ready(None) };
        let poll = || looking.as_mut().poll(cx);
        catch_unwind(AssertUnwindSafe(poll)).unwrap_or(Poll::Ready(None))
    })
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    const BOUND: Duration = Duration::from_millis(40);

    /// Until the part is `expected`, by the clock of the machine, which members go by.
    async fn until(watched: &Membership, expected: Option<(u64, u64)>) {
        while watched.fleet().part().map(|part| part.as_ratio()) != expected {
            tokio::task::yield_now().await;
        }
    }

    #[test]
    fn an_address_that_is_not_in_the_list_is_no_member() {
        let addresses =
            || ["10.0.0.1", "10.0.0.2", "10.0.0.1", "::1"].map(|ip| ip.parse().unwrap());
        let count = |own: &str| count(addresses().into_iter(), own.parse().unwrap());
        assert_eq!(["10.0.0.2", "10.0.0.3", "::1"].map(count), [2, 0, 1]);
    }

    #[tokio::test]
    async fn a_name_is_looked_up_and_a_number_read() {
        let own = "127.0.0.1".parse().unwrap();
        until(&dns("localhost", own, BOUND).unwrap(), Some((1, 1))).await;

        let path = std::env::temp_dir().join(format!("sluicegate-members-{}", std::process::id()));
        std::fs::write(&path, "4\n").unwrap();
        let watched = file(&path, BOUND).unwrap();
        until(&watched, Some((1, 4))).await;
        std::fs::write(&path, "five").unwrap();
        until(&watched, Some((1, 4))).await;
        std::fs::write(&path, "5").unwrap();
        until(&watched, Some((1, 5))).await;
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn a_name_that_has_no_address_or_many_is_counted_as_it_is() {
        let own = "10.0.0.7".parse().unwrap();
        assert_eq!(count(std::iter::empty(), own), 0);
        let many =
            (0..1_000_000_u32).map(|number| IpAddr::from((0x0A00_0000 | number).to_be_bytes()));
        assert_eq!(count(many, own), 1_000_000);
    }

    #[tokio::test(start_paused = true)]
    async fn a_source_that_does_not_answer_holds_one_thread() {
        let [looks, ended] = [(); 2].map(|()| Arc::new(AtomicUsize::new(0)));
        let (answer, asked) = std::sync::mpsc::channel();
        let (begun, done, asked) = (looks.clone(), ended.clone(), std::sync::Mutex::new(asked));
        let look = move || {
            let first = begun.fetch_add(1, Ordering::SeqCst) == 0;
            let answer = if first { asked.lock().unwrap().recv().ok() } else { Some(7) };
            done.fetch_add(1, Ordering::SeqCst);
            answer
        };
        let watched = by_blocking_look(BOUND, look).unwrap();
        while looks.load(Ordering::SeqCst) == 0 {
            tokio::task::yield_now().await;
        }
        // Many looks later, the first one is still alone.
        for _ in 0..20 {
            tokio::time::advance(BOUND).await;
        }
        assert_eq!(looks.load(Ordering::SeqCst), 1);
        // What is answered too late is not used. The next looks are.
        answer.send(1).unwrap();
        while watched.fleet().part().is_none() {
            // The thread goes by real time: the clock waits for it.
            while looks.load(Ordering::SeqCst) != ended.load(Ordering::SeqCst) {
                std::thread::yield_now();
            }
            tokio::time::advance(BOUND / 8).await;
        }
        assert_eq!(watched.fleet().part().unwrap().as_ratio(), (1, 7));
    }

    #[tokio::test]
    async fn a_file_without_an_end_is_not_read_to_its_end() {
        let path = std::env::temp_dir().join(format!("sluicegate-endless-{}", std::process::id()));
        std::fs::write(&path, " ".repeat(1 << 20) + "4").unwrap();
        let watched = file(&path, BOUND).unwrap();
        let looked = by_look(BOUND, || async { Some(2) }).unwrap();
        until(&looked, Some((1, 2))).await;
        assert_eq!(watched.fleet().part(), None);
        std::fs::remove_file(&path).unwrap();
    }

    #[tokio::test]
    async fn a_look_that_panics_is_followed_by_others() {
        let looks = AtomicUsize::new(0);
        let watched = by_look(BOUND, move || {
            let look = looks.fetch_add(1, Ordering::SeqCst);
            assert_ne!(look, 0, "the first look");
            async move {
                tokio::task::yield_now().await;
                assert_ne!(look, 1, "the second look");
                Some(3)
            }
        });
        let seen = tokio::time::timeout(Duration::from_secs(60), async {
            until(&watched.unwrap(), Some((1, 3))).await;
        });
        seen.await.expect("the third look is seen");
    }

    #[tokio::test]
    async fn dropped_it_leaves() {
        let watched = by_look(BOUND, || async { Some(3) }).unwrap();
        until(&watched, Some((1, 3))).await;
        let members = watched.fleet().clone();
        drop(watched);
        assert_eq!(members.part(), None);
    }

    #[test]
    fn settings_that_make_no_sense_are_refused() {
        let error = |bound| by_look(bound, || async { None }).unwrap_err().to_string();
        assert!(error(Duration::ZERO).contains("the bound is 0ns"));
        assert!(error(BOUND).contains("no tokio runtime"));
    }
}
