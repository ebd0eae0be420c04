//! What is to be started: the page's, or what a test makes of it.

use crate::page::{block, blocks, changed};

pub(super) const PAGE: &str = include_str!("../../../../../docs/envoy.md");

/// What the page's Envoy asks about.
const ACTIONS: &str = concat!(
    "                            rate_limits:\n",
    "                              - actions:\n",
    "                                  - remote_address: {}\n",
);

#[derive(Clone)]
pub(super) struct Plan {
    /// A configuration for each Envoy.
    pub(super) envoys: Vec<String>,
    /// The file that `--envoy-config` leads to.
    pub(super) yaml: String,
    pub(super) rules: String,
    pub(super) flags: Vec<String>,
    /// More files by their names, and the flags that tell dashpot of them. Envoy finds them at
    /// `../NAME`.
    pub(super) files: Vec<(&'static str, String, Option<&'static str>)>,
    /// How many dashpots there are. Ports from 8081 on are theirs.
    pub(super) dashpots: usize,
}

impl Plan {
    /// What the page shows, word for word.
    pub(super) fn of_the_page() -> Self {
        let parts = blocks(PAGE, "yaml");
        let [envoy, yaml] = parts.as_slice() else {
            panic!("Envoy's configuration and dashpot's: {parts:?}");
        };
        Self {
            envoys: vec![envoy.clone()],
            yaml: yaml.clone(),
            rules: String::new(),
            flags: Vec::new(),
            files: Vec::new(),
            dashpots: 1,
        }
    }

    /// The same with an Envoy that waits as long as it takes, so that a machine that is busy is not
    /// taken for a dashpot that is down. If it fails all the same, that is an error.
    pub(super) fn patient() -> Self {
        let mut plan = Self::of_the_page();
        plan.change(" timeout: 0.1s", " timeout: 10s");
        plan.change("connect_timeout: 0.25s", "connect_timeout: 10s");
        plan.closed()
    }

    /// Whoever cannot be asked about does not pass.
    pub(super) fn closed(mut self) -> Self {
        self.change("failure_mode_deny: false", "failure_mode_deny: true");
        self
    }

    /// Another text in Envoy's configuration.
    pub(super) fn change(&mut self, from: &str, to: &str) {
        for envoy in &mut self.envoys {
            *envoy = changed(envoy, from, to);
        }
    }

    /// Another YAML for dashpot, of the domain `edge`.
    pub(super) fn limiting(mut self, descriptors: &str) -> Self {
        self.yaml = format!("domain: edge\ndescriptors:\n{descriptors}");
        self
    }

    /// What Envoy is to ask about, each as `{ actions: [...] }`, by `rate_limits` of the route.
    pub(super) fn asking(mut self, limits: &[&str]) -> Self {
        let mut text = "                            rate_limits:\n".to_owned();
        for limit in limits {
            text += &format!("                              - {limit}\n");
        }
        self.change(ACTIONS, &text);
        self
    }

    /// The same by `typed_per_filter_config`, where more can be said.
    pub(super) fn asking_per_filter(mut self, limits: &[&str]) -> Self {
        let mut text = concat!(
            "                          typed_per_filter_config:\n",
            "                            envoy.filters.http.ratelimit:\n",
            "                              \"@type\": type.googleapis.com/envoy.extensions.filters.http.ratelimit.v3.RateLimitPerRoute\n",
            "                              rate_limits:\n",
        )
        .to_owned();
        for limit in limits {
            text += &format!("                                - {limit}\n");
        }
        self.change(ACTIONS, &text);
        self
    }

    /// A filter before that which asks.
    pub(super) fn filter(mut self, name: &str, kind: &str, settings: &str) -> Self {
        let asking = "                  - name: envoy.filters.http.ratelimit\n";
        let text = format!(
            "                  - name: {name}\n                    typed_config:\n\
             \x20                     \"@type\": type.googleapis.com/{kind}\n\
             \x20                     {settings}\n{asking}"
        );
        self.change(asking, &text);
        self
    }

    /// More about the cluster that dashpot is, a line each.
    pub(super) fn cluster(mut self, lines: &[&str]) -> Self {
        let first = "    - name: dashpot\n";
        let text: String = lines.iter().map(|line| format!("      {line}\n")).collect();
        self.change(first, &format!("{first}{text}"));
        self
    }

    /// So many dashpots that each Envoy asks in turn.
    pub(super) fn of_dashpots(mut self, count: u16) -> Self {
        let of = |port: u16| {
            let address = format!("{{ address: 127.0.0.1, port_value: {port} }}");
            format!("              - endpoint: {{ address: {{ socket_address: {address} }} }}\n")
        };
        self.change(&of(8081), &(0..count).map(|nth| of(8081 + nth)).collect::<String>());
        self.dashpots = count.into();
        self
    }

    pub(super) fn flag(mut self, name: &str, value: &str) -> Self {
        self.flags.extend([name.to_owned(), value.to_owned()]);
        self
    }
}

/// The rule file of the page.
pub(super) fn rules_of_the_page() -> String {
    block(PAGE, "toml")
}
