use super::model::Log;
use super::{Contestant, Promise, Rate, Request};

/// The decisions of a limiter on some traffic.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Findings {
    /// How much was asked for.
    pub asked: u64,
    /// How much of it was admitted.
    pub admitted: u64,
    /// Decisions to admit, though with it the last period holds more than the limit.
    pub wrongly_admitted: u64,
    /// Decisions to refuse, though with it the last period would not have held more than the limit.
    pub wrongly_refused: u64,
    /// The most that was admitted in any interval of one period.
    pub most: u64,
    /// Admitted requests beyond the algorithm's own upper bound.
    pub beyond_promise: u64,
    /// By how many requests the worst interval exceeded it. A fraction of one is a request that came too early.
    pub by_at_most: f64,
    /// Refused requests that the algorithm's own lower bound promises to admit.
    pub short_of_promise: u64,
}

/// Has `contestant` decide about all of `traffic`.
///
/// Off by a microsecond counts as correct: no machine's clock is better.
pub fn judge(
    rate: Rate,
    traffic: impl IntoIterator<Item = Request>,
    mut contestant: Contestant,
) -> Findings {
    let Promise { mut most, mut least } = contestant.promise.clone();
    let mut log = Log::new(rate);
    let mut findings = Findings::default();
    for Request { at, cost } in traffic {
        findings.asked += cost;
        match contestant.take(at, cost) {
            Some(leaves) => {
                if !most.fits(leaves, cost) && !most.fits(leaves + 1, cost) {
                    findings.beyond_promise += 1;
                    findings.by_at_most = findings.by_at_most.max(most.excess(leaves, cost));
                }
                findings.wrongly_admitted += u64::from(log.excess(leaves, cost) > 0);
                findings.admitted += cost;
                most.spend(leaves, cost);
                least.spend(at, cost);
                log.spend(leaves, cost);
                findings.most = findings.most.max(log.held(leaves));
            }
            None => {
                let fits = least.fits(at, cost) && least.fits(at.saturating_sub(1), cost);
                findings.short_of_promise += u64::from(fits);
                findings.wrongly_refused += u64::from(log.excess(at, cost) == 0);
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATE: Rate = Rate { count: 2, period: 100 };

    fn requests(times: &[u64]) -> impl Iterator<Item = Request> {
        times.iter().map(|at| Request { at: *at, cost: 1 })
    }

    #[test]
    fn one_that_admits_everything_is_caught() {
        let all = Contestant::at_once("", Promise::bucket(RATE, 2), |_, _| true);
        let expected = Findings {
            asked: 5,
            admitted: 5,
            wrongly_admitted: 3,
            most: 4,
            beyond_promise: 2,
            by_at_most: 1.0,
            ..Findings::default()
        };
        // At 50 a token is available again; the log holds three.
        assert_eq!(judge(RATE, requests(&[0, 0, 50, 60, 100]), all), expected);
    }

    #[test]
    fn one_that_refuses_everything_is_caught() {
        let none = Contestant::at_once("", Promise::bucket(RATE, 2), |_, _| false);
        let findings = judge(RATE, requests(&[0, 1, 2]), none);
        assert_eq!(findings.wrongly_refused, 3);
        assert_eq!(findings.short_of_promise, 3);
    }

    #[test]
    fn a_microsecond_early_or_late_is_in_time() {
        let early = Contestant::at_once("", Promise::bucket(RATE, 1), |_, _| true);
        assert_eq!(judge(RATE, requests(&[0, 49]), early).beyond_promise, 0);
        let earlier = Contestant::at_once("", Promise::bucket(RATE, 1), |_, _| true);
        assert_eq!(judge(RATE, requests(&[0, 48]), earlier).beyond_promise, 1);
        let late = Contestant::at_once("", Promise::bucket(RATE, 1), |at, _| at == 0);
        assert_eq!(judge(RATE, requests(&[0, 50]), late).short_of_promise, 0);
        let later = Contestant::at_once("", Promise::bucket(RATE, 1), |at, _| at == 0);
        assert_eq!(judge(RATE, requests(&[0, 51]), later).short_of_promise, 1);
    }

    #[test]
    fn what_waits_is_judged_when_it_goes_ahead() {
        let paced = Contestant {
            name: "",
            promise: Promise::leaky(RATE, 3, 1),
            take: Box::new({
                let mut next = 0;
                move |_, _| {
                    next += 50;
                    Some(next - 50)
                }
            }),
        };
        let findings = judge(RATE, requests(&[0, 0, 0, 0]), paced);
        assert_eq!(findings, Findings { asked: 4, admitted: 4, most: 2, ..Findings::default() });
    }
}
