/// The number of queues that a flow without a queue of its own may choose from. Kubernetes uses a hand of 8, too.
pub(super) const HAND: usize = 8;

/// Deals `flow` its hand: different queues out of `queues`, always the same ones for a flow.
pub(super) fn hand(flow: u64, queues: usize) -> impl Iterator<Item = usize> {
    let mut sorted = [usize::MAX; HAND];
    let mut rest = flow;
    (0..HAND.min(queues)).map(move |dealt| {
        let left = (queues - dealt) as u64;
        let mut card = (rest % left) as usize;
        rest /= left;
        // The card-th queue of those that are not dealt yet.
        for &taken in &sorted[..dealt] {
            if card >= taken {
                card += 1;
            }
        }
        sorted[dealt] = card;
        sorted[..=dealt].sort_unstable();
        card
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A flow number, spread over 64 bits (splitmix64).
    fn flow(number: u64) -> u64 {
        let mut z = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    #[test]
    fn a_hand_holds_different_queues_and_is_dealt_again_alike() {
        for number in 0..1_000 {
            for queues in [1, 3, 8, 9, 64] {
                let mut dealt: Vec<_> = hand(flow(number), queues).collect();
                assert_eq!(dealt, hand(flow(number), queues).collect::<Vec<_>>());
                dealt.sort_unstable();
                dealt.dedup();
                assert_eq!(dealt.len(), queues.min(HAND));
                assert!(dealt.iter().all(|&queue| queue < queues));
            }
        }
    }

    /// The probabilities that Kubernetes publishes for 64 queues and hands of 8: that a small flow finds a large one in
    /// every queue of its hand.
    #[test]
    fn a_small_flow_meets_only_large_ones_as_seldom_as_published() {
        const TRIALS: u64 = 20_000;
        let share = |elephants: u64| {
            let mut met = 0;
            for trial in 0..TRIALS {
                let first = trial * (elephants + 1);
                let covered: u64 = (1..=elephants)
                    .flat_map(|elephant| hand(flow(first + elephant), 64))
                    .fold(0, |covered, queue| covered | 1 << queue);
                met += u64::from(hand(flow(first), 64).all(|queue| covered & 1 << queue != 0));
            }
            met as f64 / TRIALS as f64
        };
        assert!(share(1) == 0.0, "published: 2.26e-10");
        assert!(share(4) < 0.0015, "published: 0.00049");
        assert!((share(16) - 0.359).abs() < 0.015, "published: 0.359, found {}", share(16));
    }
}
