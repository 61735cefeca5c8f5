//! A report as people read it.

use std::fmt;

use super::report::{
    Bounds, Changes, OverTime, PolicyReport, Report, UnjudgedReport, WorstMinute, share,
};
use crate::terminal::{escaped, percent};

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { rules, requests, .. } = self;
        let (Some(first), Some(last)) = (&self.first, &self.last) else {
            return writeln!(f, "{rules}: the log has no requests");
        };
        writeln!(f, "{rules}: {requests} requests from {first} to {last}")?;
        let outcomes = self.outcomes.iter();
        let outcomes: Vec<_> = outcomes
            .map(|(outcome, count)| {
                format!("{count} {outcome} ({})", percent(share(*count, *requests)))
            })
            .collect();
        writeln!(f, "{}", outcomes.join(", "))?;
        for policy in &self.policies {
            write!(f, "\n{policy}")?;
        }
        if let Some(changes) = &self.against {
            write!(f, "\n{changes}")?;
        }
        if !self.unjudged.is_empty() {
            writeln!(f)?;
        }
        self.unjudged.iter().try_for_each(|unjudged| writeln!(f, "{unjudged}"))?;
        if !self.notes.is_empty() {
            writeln!(f)?;
        }
        self.notes.iter().try_for_each(|note| writeln!(f, "note: {note}"))?;
        let is_any = self.policies.iter().any(|policy| policy.refused > 0);
        if is_any { writeln!(f, "\n{OTHERWISE}") } else { Ok(()) }
    }
}

impl fmt::Display for UnjudgedReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { rule, lacks, requests, of } = self;
        let share = percent(share(*requests, *of));
        let lacks: Vec<_> = lacks.iter().map(|what| escaped(what)).collect();
        write!(
            f,
            "not judged: rule `{rule}` looks for {}, which the log does not have: {requests} of {of} requests ({share})",
            lacks.join(" and ")
        )
    }
}

pub(super) const OTHERWISE: &str = "A client that is refused would have behaved differently afterwards: it waits, tries again or goes away. First \
                         refusals are more certain than those that follow.";

impl fmt::Display for PolicyReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}: {}, {}", self.name, self.limit, self.rule)?;
        let mut facts = self.facts().into_iter();
        facts.try_for_each(|(what, words)| writeln!(f, "  {what:<13}{words}"))
    }
}

impl PolicyReport {
    /// What it did, in words: names and values.
    pub(super) fn facts(&self) -> Vec<(&'static str, String)> {
        let clients = match self.clients {
            Some(1) => "1 client".to_owned(),
            Some(clients) => format!("{clients} clients"),
            None => "very many clients".to_owned(),
        };
        let mut facts = vec![("requests", format!("{} from {clients}", self.requests))];
        let share = percent(self.refused_share);
        let mut refused = format!("{} ({share})", self.refused);
        if self.refused > 0 {
            let Self { first_refusals, repeated_refusals, .. } = self;
            refused.push_str(&format!(
                ": {first_refusals} first ones, {repeated_refusals} within the wait after them"
            ));
        }
        if self.refused_by_ban > 0 {
            refused.push_str(&format!("; {} by a ban", self.refused_by_ban));
        }
        facts.push(("refused", refused));
        if let Some(Bounds { at_least, at_most }) = &self.bounds {
            let most = at_most.map_or_else(|| "any number".to_owned(), |most| most.to_string());
            facts.push((
                "",
                format!("at least {at_least}, at most {most}: the log has whole seconds"),
            ));
        }
        if self.refused_on_trial > 0 {
            facts.push(("on trial", format!("{} would be refused", self.refused_on_trial)));
        }
        if let Some((used, capacity)) = self.places_in_use {
            facts.push(("places", format!("at most {used} of {capacity} in use by one client")));
        }
        if let Some(times) = &self.waited {
            facts.push(("waits", format!("{} served after a wait: {}", times.count, times.words)));
        }
        if self.refused > 0 {
            let more = if self.more_clients_refused { "more than " } else { "" };
            let share = self.clients_refused_share.map(|share| format!(" ({})", percent(share)));
            let share = share.unwrap_or_default();
            facts.push((
                "clients",
                format!("{more}{}{share} refused at least once", self.clients_refused),
            ));
            if let Some(WorstMinute { begins, refused }) = &self.worst_minute {
                facts.push(("worst minute", format!("{begins}, {refused} refused")));
            }
            let OverTime { marks, width, .. } = &self.over_time;
            facts.push(("when", format!("{marks}| each {width}")));
            facts.push(("where", counted(&self.paths)));
            facts.push(("who", counted(&self.who)));
            if let Some(times) = &self.would_wait {
                facts.push(("would wait", times.words.clone()));
            }
        }
        let others = self.otherwise_refused.iter();
        let others: Vec<_> = others.map(|(what, count)| format!("{what} {count}")).collect();
        if !others.is_empty() {
            facts.push(("refused by a", others.join(", ")));
        }
        facts
    }
}

fn counted(counts: &[(String, u64)]) -> String {
    let counts = counts.iter().map(|(what, count)| format!("{count} {}", escaped(what)));
    counts.collect::<Vec<_>>().join(", ")
}

impl fmt::Display for Changes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { against, newly_refused, no_longer_refused, refused_before, .. } = self;
        writeln!(
            f,
            "against {against}, which refuses {refused_before}: {newly_refused} newly refused, {no_longer_refused} no \
             longer refused"
        )?;
        match self.who_is_newly_refused.as_slice() {
            [] => Ok(()),
            who => writeln!(f, "  {:<13}{}", "who", counted(who)),
        }
    }
}
