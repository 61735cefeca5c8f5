//! Which client a request is from: a key in the words of files of rules.

use sluicegate_config::{Environment, Policies, read_toml};
use sluicegate_core::adapter::{Charge, KeyHash};
use sluicegate_core::rule::Rule as _;

use crate::log::{Lacks, Record};

/// A key, as a rule that has no other purpose.
pub(super) struct Keying {
    rule: Policies,
    hash: KeyHash,
    charge: Charge,
    /// Whether the log lacks what the key is made of.
    /// `None` as long as every request could be judged.
    pub(super) is_lacking: Option<bool>,
    /// The key in TOML.
    pub(super) key: String,
    /// The settings of proxies in TOML, if there are any.
    pub(super) proxies: String,
}

impl Keying {
    pub(super) fn new(by: &str, proxies: &[String], header: Option<&str>) -> Result<Self, String> {
        if by.contains(char::is_control) {
            return Err("--by: expected a key on one line".to_owned());
        }
        let is_word = !by.is_empty() && by.bytes().all(|byte| byte.is_ascii_lowercase());
        let key = if is_word { format!("\"{by}\"") } else { by.to_owned() };
        let proxies = match (proxies, header) {
            ([], None) => String::new(),
            ([], Some(_)) => {
                return Err(
                    "--client-header: it is believed from proxies only, which --proxies names"
                        .to_owned(),
                );
            }
            (trusted, header) => {
                let header =
                    header.map(|header| format!(", header = {header:?}")).unwrap_or_default();
                format!("proxies = {{ trusted = {trusted:?}{header} }}\n")
            }
        };
        let text =
            format!("{proxies}\n[[rules]]\nname = \"key\"\nkey = {key}\nlimits = [\"1/day\"]\n");
        let rule =
            read_toml(&text).and_then(|document| Policies::new(&document, &Environment::new()));
        let rule = rule.map_err(|problems| format!("--by or --proxies: {problems}"))?;
        Ok(Self {
            rule,
            hash: KeyHash::new(),
            charge: Charge::new(),
            is_lacking: None,
            key,
            proxies,
        })
    }

    /// The hash of the client's key, or none if the rule is not for this request.
    ///
    /// # Errors
    ///
    /// The request has no such key, or the log does not have what would tell. Behind proxies, the client would be the proxy.
    #[inline]
    pub(super) fn client(&mut self, record: &Record<'_>) -> Result<Option<u64>, String> {
        self.charge = Charge::new();
        let lacks = Lacks::default();
        let charged = self.rule.charge(&record.view_noting(&lacks), &mut self.charge);
        if !lacks.is_empty() {
            self.is_lacking.get_or_insert(true);
            return Err(format!("the log does not have {}", lacks.take().join(" and ")));
        }
        if let Err(missing) = charged {
            self.is_lacking.get_or_insert(false);
            return Err(missing.to_string());
        }
        Ok(self.charge.debits().next().map(|debit| self.hash.of(0, &debit.key)))
    }

    /// The key of the request that was looked at last, for people.
    pub(super) fn name(&self) -> String {
        self.charge.debits().next().map(|debit| debit.key.legible()).unwrap_or_default()
    }
}
