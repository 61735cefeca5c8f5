//! A report as people read it.

use std::fmt::{self, Write as _};

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
        for unjudged in &self.unjudged {
            let UnjudgedReport { rule, lacks, requests, of } = unjudged;
            let share = percent(share(*requests, *of));
            let lacks: Vec<_> = lacks.iter().map(|what| escaped(what)).collect();
            writeln!(
                f,
                "not judged: rule `{rule}` looks for {}, which the log does not have: {requests} of {of} requests \
                 ({share})",
                lacks.join(" and ")
            )?;
        }
        if !self.notes.is_empty() {
            writeln!(f)?;
        }
        self.notes.iter().try_for_each(|note| writeln!(f, "note: {note}"))?;
        let is_any = self.policies.iter().any(|policy| policy.refused > 0);
        if is_any { writeln!(f, "\n{OTHERWISE}") } else { Ok(()) }
    }
}

const OTHERWISE: &str = "A client that is refused would have behaved differently afterwards: it waits, tries again or goes away. First \
                         refusals are more certain than those that follow.";

impl fmt::Display for PolicyReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}: {}, {}", self.name, self.limit, self.rule)?;
        let clients = match self.clients {
            Some(1) => "1 client".to_owned(),
            Some(clients) => format!("{clients} clients"),
            None => "very many clients".to_owned(),
        };
        let mut line = |what: &str, words: String| writeln!(f, "  {what:<13}{words}");
        line("requests", format!("{} from {clients}", self.requests))?;
        let share = percent(self.refused_share);
        let mut refused = format!("{} ({share})", self.refused);
        if self.refused > 0 {
            let Self { first_refusals, repeated_refusals, .. } = self;
            write!(
                refused,
                ": {first_refusals} first ones, {repeated_refusals} within the wait after them"
            )?;
        }
        if self.refused_by_ban > 0 {
            write!(refused, "; {} by a ban", self.refused_by_ban)?;
        }
        line("refused", refused)?;
        if let Some(Bounds { at_least, at_most }) = &self.bounds {
            let most = at_most.map_or_else(|| "any number".to_owned(), |most| most.to_string());
            line("", format!("at least {at_least}, at most {most}: the log has whole seconds"))?;
        }
        if self.refused_on_trial > 0 {
            line("on trial", format!("{} would be refused", self.refused_on_trial))?;
        }
        if let Some((used, capacity)) = self.places_in_use {
            line("places", format!("at most {used} of {capacity} in use by one client"))?;
        }
        if let Some(times) = &self.waited {
            line("waits", format!("{} served after a wait: {}", times.count, times.words))?;
        }
        if self.refused > 0 {
            let more = if self.more_clients_refused { "more than " } else { "" };
            let share = self.clients_refused_share.map(|share| format!(" ({})", percent(share)));
            let share = share.unwrap_or_default();
            line(
                "clients",
                format!("{more}{}{share} refused at least once", self.clients_refused),
            )?;
            if let Some(WorstMinute { begins, refused }) = &self.worst_minute {
                line("worst minute", format!("{begins}, {refused} refused"))?;
            }
            let OverTime { marks, width, .. } = &self.over_time;
            line("when", format!("{marks}| each {width}"))?;
            line("where", counted(&self.paths))?;
            line("who", counted(&self.who))?;
            if let Some(times) = &self.would_wait {
                line("would wait", times.words.clone())?;
            }
        }
        let others = self.otherwise_refused.iter();
        let others: Vec<_> = others.map(|(what, count)| format!("{what} {count}")).collect();
        if !others.is_empty() {
            line("refused by a", others.join(", "))?;
        }
        Ok(())
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
