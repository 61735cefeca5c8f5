use crate::bench::cell::Cell;
use crate::bench::table::{Matrix, is_ours};

/// The most cases listed for one rival. More of them would be a second table.
const MOST_TOLD: usize = 4;

/// The rivals of a table, compared with sluicegate.
pub(super) struct Comparison<'a> {
    matrix: &'a Matrix<'a>,
    rivals: Vec<usize>,
    ours: Vec<usize>,
    /// The cases whose figures are better or worse, and that repeat no other case.
    cases: Vec<usize>,
    /// Whether more is better, for each case of the table.
    more: Vec<bool>,
}

impl<'a> Comparison<'a> {
    pub(super) fn of(matrix: &'a Matrix<'a>, title: &str, is_rival: impl Fn(&str) -> bool) -> Self {
        let those = |of: &dyn Fn(&str) -> bool| {
            let contenders = matrix.contenders.iter().enumerate();
            contenders.filter(|(_, name)| of(name) && !name.contains('÷')).map(|(i, _)| i).collect()
        };
        let counts = |case: &usize| {
            !["÷", "beyond the baseline", "busy"].iter().any(|no| matrix.cases[*case].contains(no))
        };
        let is_more = |text: &str| text.contains("a second") || text.contains("of the bare");
        Self {
            matrix,
            rivals: those(&is_rival),
            ours: those(&is_ours),
            cases: (0..matrix.cases.len()).filter(counts).collect(),
            more: matrix.cases.iter().map(|case| is_more(case) || is_more(title)).collect(),
        }
    }

    pub(super) fn sentence(&self) -> String {
        let ahead: Vec<_> = self.rivals.iter().filter_map(|rival| self.told(*rival)).collect();
        let mut sentence = match ahead.is_empty() {
            true => "No rival is ahead of sluicegate here.".to_owned(),
            false => format!("Ahead of sluicegate here: {}.", ahead.join("; ")),
        };
        if let Some(more) = self.told_of_defaults() {
            sentence.push(' ');
            sentence += &more;
        }
        sentence
    }

    /// The cases in which this rival is ahead of the contenders of ours that it can be compared with.
    fn told(&self, rival: usize) -> Option<String> {
        let ours = self.like(rival);
        let ahead = self.cases.iter().filter_map(|case| self.behind(rival, &ours, *case));
        let ahead: Vec<_> = ahead.collect();
        let worst = ahead.iter().max_by(|a, b| a.factor.total_cmp(&b.factor))?;
        let all = self.cases.iter().filter(|case| self.cell(rival, **case).is_some()).count();
        let name = self.matrix.contenders[rival];
        Some(match ahead.len() {
            told if told <= MOST_TOLD => {
                let each: Vec<_> = ahead.iter().map(|behind| behind.text.as_str()).collect();
                format!("**{name}** ({})", each.join("; "))
            }
            told if told == all => format!("**{name}** everywhere (most in {})", worst.text),
            told => format!("**{name}** in {told} of {all} (most in {})", worst.text),
        })
    }

    /// sluicegate with its defaults writes header fields, which many rivals do not.
    fn told_of_defaults(&self) -> Option<String> {
        let names = &self.matrix.contenders;
        let default = *self.ours.iter().find(|i| names[**i].ends_with("as it comes"))?;
        let case = *self.cases.first()?;
        let unlike = self.rivals.iter().filter(|i| {
            let is_plain = kind(names[**i]).is_none_or(|kind| self.of_kind(kind).is_empty());
            is_plain && !self.like(**i).contains(&default)
        });
        let ahead = unlike.filter_map(|rival| {
            let against = self.behind(*rival, &[default], case)?.against;
            Some(format!("**{}** ({against})", names[*rival]))
        });
        let ahead: Vec<_> = ahead.collect();
        let name = names[default];
        (!ahead.is_empty())
            .then(|| format!("Without fields, these are ahead of *{name}*: {}.", ahead.join(", ")))
    }

    /// The contenders of ours that can be compared with this rival. They have the same words behind their first
    /// comma, such as `admitted`; or else no words that other rivals have there, and write fields if the rival does.
    fn like(&self, rival: usize) -> Vec<usize> {
        let names = &self.matrix.contenders;
        let same = kind(names[rival]).map(|kind| self.of_kind(kind)).unwrap_or_default();
        if !same.is_empty() {
            return same;
        }
        let kinds: Vec<_> = self.rivals.iter().filter_map(|i| kind(names[*i])).collect();
        let is_free = |i: &usize| !kinds.iter().any(|kind| names[*i].contains(kind));
        let free: Vec<_> = self.ours.iter().copied().filter(is_free).collect();
        let writes = |i: usize| match is_ours(names[i]) {
            true => !names[i].contains("no fields"),
            false => names[i].contains("fields"),
        };
        let alike: Vec<_> = free.iter().copied().filter(|i| writes(*i) == writes(rival)).collect();
        if alike.is_empty() { free } else { alike }
    }

    fn of_kind(&self, kind: &str) -> Vec<usize> {
        let is_same = |i: &usize| self.matrix.contenders[*i].contains(kind);
        self.ours.iter().copied().filter(is_same).collect()
    }

    /// The contenders among these that are behind the rival in this case.
    fn behind(&self, rival: usize, ours: &[usize], case: usize) -> Option<Behind> {
        let theirs = self.cell(rival, case)?;
        let is_behind = |cell: &Cell| match self.more[case] {
            true => cell.median < theirs.median,
            false => cell.median > theirs.median,
        };
        let compared: Vec<_> =
            ours.iter().filter_map(|i| Some((*i, self.cell(*i, case)?))).collect();
        let behind: Vec<_> = compared.iter().filter(|(_, cell)| is_behind(cell)).collect();
        let far = |cell: &Cell| (cell.median - theirs.median).abs();
        let (best, cell) = behind.iter().min_by(|a, b| far(&a.1).total_cmp(&far(&b.1)))?;

        let doubt = if cell.overlaps(&theirs) { ", within the spread" } else { "" };
        let against =
            format!("{} against {}{doubt}", self.median(rival, case), self.median(*best, case));
        let mut place = match self.cases.len() {
            1 => String::new(),
            _ => self.matrix.cases[case].to_owned(),
        };
        if behind.len() < compared.len() {
            let names = behind.iter().map(|(i, _)| format!("*{}*", self.matrix.contenders[*i]));
            place += &format!(" of {}", names.collect::<Vec<_>>().join(" and "));
        }
        let colon = if place.is_empty() { "" } else { ": " };
        let text = format!("{}{colon}{against}", place.trim_start());
        let factor = (cell.median / theirs.median).ln().abs();
        Some(Behind { factor, text, against })
    }

    fn cell(&self, contender: usize, case: usize) -> Option<Cell> {
        self.matrix.cells[contender][case].1
    }

    fn median(&self, contender: usize, case: usize) -> &str {
        let (text, _) = self.matrix.cells[contender][case];
        text.split(" (").next().unwrap_or(text)
    }
}

/// One case in which a rival is ahead.
struct Behind {
    /// By how much, as a logarithm.
    factor: f64,
    /// The case, the contender of ours, and the figures.
    text: String,
    /// Only the figures.
    against: String,
}

/// The words behind the first comma of a contender's name.
fn kind(name: &str) -> Option<&str> {
    name.split_once(", ").map(|(_, kind)| kind)
}
