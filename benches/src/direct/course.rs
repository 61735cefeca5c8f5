use std::time::Duration;

use super::{Direct, Verdict};
use crate::keys::{Arrivals, Key};
use crate::{Pace, Ratio, Rounds, Sheets, Turns};

/// Where limiters compete: how many keys there are, how they come, and how long a turn is.
#[derive(Debug)]
pub struct Course {
    /// As the command line asks.
    pub turns: Turns,
    /// From one key to many.
    pub populations: Vec<Population>,
}

/// So many keys.
#[derive(Debug)]
pub struct Population {
    /// How many there are.
    pub keys: u64,
    /// Each as likely.
    pub uniform: Arrivals,
    /// A few of them most of the time.
    pub zipf: Arrivals,
}

/// A limiter, and the answer that is expected of it.
pub type Entrant<K> = (Box<dyn Direct<K>>, Verdict);

/// A column of ratios: its name, which contender, and the contender that it is divided by.
pub type RatioOf = (&'static str, usize, usize);

impl Course {
    /// As the command line says; small populations if nothing is measured.
    pub fn from_args() -> Self {
        let turns = Turns::from_args();
        let keys = if turns.is_measuring() {
            &[1, 1_000, 100_000, 1_000_000, 10_000_000][..]
        } else {
            &[1, 1_000]
        };
        let population = |&keys| Population {
            keys,
            uniform: Arrivals::uniform(keys),
            zipf: Arrivals::zipf(keys),
        };
        Self { turns, populations: keys.iter().map(population).collect() }
    }

    /// Fills the limiters that `build` makes with `keys` keys, and lets them take turns in each row: with this many
    /// threads and this distribution of keys. The filled limiters serve all rows.
    ///
    /// Tables that fit a cache are filled three times, each time for a third of the rounds. The place of a small
    /// table in memory can double its times for as long as it stays there.
    pub fn contest<K: Key>(
        &self,
        keys: u64,
        rows: &[(usize, &Arrivals)],
        build: impl Fn() -> Vec<Entrant<K>>,
    ) -> Vec<Rounds> {
        let fillings = if self.turns.is_measuring() && keys <= 100_000 { 3 } else { 1 };
        let mut contest: Vec<Rounds> = rows.iter().map(|_| Rounds::default()).collect();
        for _ in 0..fillings {
            let field = build();
            field.iter().for_each(|(limiter, verdict)| limiter.fill(keys, *verdict));
            for (rounds, (threads, arrivals)) in contest.iter_mut().zip(rows) {
                let contenders = field
                    .iter()
                    .map(|(limiter, verdict)| limiter.contender(*threads, arrivals, *verdict))
                    .collect();
                rounds.extend(self.turns.rounds(contenders, self.pace(keys)));
            }
        }
        contest
    }

    /// Rounds for each filling. Small tables are in the caches again at once. Large ones have to be fetched first,
    /// and filling them has taken as long as many rounds.
    pub fn pace(&self, keys: u64) -> Pace {
        let (rounds, full, turn, warm_up) = match keys {
            0..10_000 => (5, 11, 10, 2),
            10_000..1_000_000 => (5, 11, 15, 15),
            1_000_000.. => (9, 31, 20, 30),
        };
        let rounds = if self.turns.is_full() { full } else { rounds };
        let [turn, warm_up] = [turn, warm_up].map(Duration::from_millis);
        Pace { rounds, turn, warm_up }
    }

    /// Adds a row to the two tables of that title: times, and ratios of turns in the same round.
    pub fn row(
        sheets: &mut Sheets,
        title: &str,
        columns: &[&str],
        ratios: &[RatioOf],
        name: &str,
        rounds: &Rounds,
    ) {
        sheets.row(&format!("{title}, ns"), columns, name, &rounds.figures());
        let columns: Vec<&str> =
            columns[..1].iter().copied().chain(ratios.iter().map(|(name, ..)| *name)).collect();
        let cells: Vec<Ratio> = ratios.iter().map(|(_, i, base)| rounds.ratio(*i, *base)).collect();
        sheets.row(&format!("{title}, ratios"), &columns, name, &cells);
    }

    /// Whether the command line asks for one of the two tables with that title.
    pub fn wants(&self, title: &str) -> bool {
        ["ns", "ratios"].iter().any(|unit| self.turns.wants(&format!("{title}, {unit}")))
    }

    /// Shows progress: tables are printed at the end, minutes later.
    pub fn say(&self, doing: &str) {
        if self.turns.is_measuring() {
            eprintln!("{doing}");
        }
    }
}
