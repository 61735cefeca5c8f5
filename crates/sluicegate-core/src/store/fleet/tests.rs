//! Random traces of members that join, leave, crash and lag: together they never have more than the whole.

use super::Want;
use super::demand::fair_parts;
use super::switch::Switch;
use crate::limit::Part;

/// The bound, in steps of the trace.
const H: u64 = 60;

/// How many traces are drawn: `SLUICEGATE_TRACES=100000` for as many as the documentation promises.
fn traces() -> u64 {
    std::env::var("SLUICEGATE_TRACES").map_or(3_000, |traces| traces.parse().expect("a number"))
}

struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }
}

/// One process, as the source knows it.
struct Member {
    switch: Switch,
    joined: u64,
    /// When the source no longer counts it, and when it notices.
    removed: u64,
    stops: u64,
    looks: u64,
    /// When the view that it holds was true.
    seen: u64,
}

impl Member {
    fn joining(now: u64, random: &mut Random) -> Self {
        let removed = now + 1 + random.below(6 * H);
        // Some crash before they are removed, and some go on for as long as is allowed.
        let stops = match random.below(3) {
            0 => removed.saturating_sub(random.below(H)),
            1 => removed,
            _ => removed + random.below(H / 2),
        };
        Self { switch: Switch::new(H), joined: now, removed, stops, looks: now, seen: now }
    }

    fn is_listed(&self, at: u64) -> bool {
        (self.joined..self.removed).contains(&at)
    }

    fn part(&mut self, now: u64) -> Option<Part> {
        if now < self.stops { self.switch.spend(now).part } else { None }
    }
}

fn sum(members: &mut [Member], now: u64) -> f64 {
    members.iter_mut().filter_map(|member| member.part(now)).map(Part::as_f64).sum()
}

#[test]
fn shares_are_never_more_than_the_whole_while_members_join_leave_crash_and_lag() {
    let mut used = 0.0;
    for trace in 0..traces() {
        let random = &mut Random(trace);
        let mut members: Vec<Member> = Vec::new();
        let most = 2 + random.below(12) as usize;
        for now in 0..8 * H {
            if members.len() < most && random.below(H / 3) == 0 {
                members.push(Member::joining(now, random));
            }
            let listed: Vec<(u64, u64)> =
                members.iter().map(|member| (member.joined, member.removed)).collect();
            for member in members.iter_mut().filter(|member| member.looks <= now) {
                // A view that was true some time ago, never before the last one, and not the one that it was removed by:
                // until it notices, it goes on as before.
                let oldest = member.seen.max(now.saturating_sub(H / 2 - 1));
                member.seen = oldest + random.below(now - oldest + 1);
                let seen = member.seen;
                let count = listed
                    .iter()
                    .filter(|(joined, removed)| (*joined..*removed).contains(&seen))
                    .count();
                if member.is_listed(seen) {
                    member.switch.see(now, Some(Part::one_of(count as u64)), u64::MAX);
                }
                // The next look comes before this view is older than half of the bound.
                member.looks = now + 1 + random.below(seen + H / 2 - now);
            }
            let sum = sum(&mut members, now);
            assert!(sum <= 1.0 + 1e-9, "trace {trace} at {now}: {sum}");
            used += sum;
        }
    }
    // They do spend: most of the time, most of the whole.
    assert!(used > traces() as f64 * 8.0 * H as f64 * 0.4, "{used}");
}

/// Each round has a view of its own, which holds who had joined by its beginning and what they wanted by then.
#[test]
fn shares_by_demand_are_never_more_than_the_whole_if_each_member_looks_once_in_every_round() {
    const ROUND: u64 = H / 2;
    for trace in 0..traces() {
        let random = &mut Random(trace);
        let mut members: Vec<(Member, u64)> = Vec::new();
        let most = 2 + random.below(8) as usize;
        let mut view: Vec<(u64, Option<Part>)> = Vec::new();
        for now in 0..16 * ROUND {
            if now % ROUND == 0 {
                let listed: Vec<_> = members
                    .iter()
                    .filter(|(member, _)| member.is_listed(now))
                    .map(|(_, id)| *id)
                    .collect();
                let wants: Vec<_> =
                    listed.iter().map(|_| Want { wants: random.below(300), weight: 1 }).collect();
                view = listed.into_iter().zip(fair_parts(300, &wants)).collect();
                members.iter_mut().for_each(|(member, _)| member.looks = now + random.below(ROUND));
            }
            if members.len() < most && random.below(ROUND / 3) == 0 {
                let mut member = Member::joining(now, random);
                // It stops when it has seen the view without it, or one that it cannot get.
                member.stops = member.stops.min(member.removed);
                member.looks = u64::MAX;
                let id = members.len() as u64;
                members.push((member, id));
            }
            for (member, id) in &mut members {
                if member.looks == now {
                    let own = view.iter().find(|(of, _)| of == id).and_then(|(_, part)| *part);
                    member.switch.see(now, own, u64::MAX);
                }
            }
            let parts = members.iter_mut().filter_map(|(member, _)| member.part(now));
            let sum: f64 = parts.map(Part::as_f64).sum();
            assert!(sum <= 1.0 + 1e-9, "trace {trace} at {now}: {sum}");
        }
    }
}
