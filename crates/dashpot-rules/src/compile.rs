//! From what is written to what is meant. Every mistake is noted, and the reading goes on.

mod identity;
mod limits;
mod lists;
mod overload;
mod rule;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use dashpot::{Clock, SystemClock};

use limits::Names;

use crate::advice::advise;
use crate::config::{
    Config, HeaderText, HeadersSection, MatchSection, MemorySection, PrioritySection, ProxySection,
    ServeSection, StoreSection,
};
use crate::live::Seen;
use crate::matching::{Condition, Index, Methods, Wanted};
use crate::problem::{Problems, RuleErrors};
use crate::read::{List, Map};
use crate::rule::{Priority, Rule};
use crate::set::{MemorySettings, RuleSet, ServeSettings, StoreSettings};
use crate::source::{Source, Span, Written};
use crate::{AccessLog, Fact, Headers, ParseFactError, ProxySettings};

/// The longest that is waited between two words with a store.
const MINUTE: Duration = Duration::from_secs(60);

/// What is known while compiling.
pub(crate) struct Compiler<'c> {
    pub(crate) sources: Vec<Source>,
    pub(crate) directory: &'c Path,
    pub(crate) problems: Problems,
    /// Files that were read because others name them.
    pub(crate) files: Vec<Seen>,
    /// Whether something says how to verify tokens.
    pub(crate) has_tokens: bool,
    /// Facts that are told in the body, because the identity says so.
    pub(crate) in_body: Vec<Fact>,
    /// Whether counts are kept on Redis.
    pub(crate) on_redis: bool,
}

pub(crate) fn compile(sources: Vec<Source>, directory: &Path) -> Result<RuleSet, RuleErrors> {
    let mut problems = Problems::default();
    let config = Config::read(&sources, &mut problems);
    let mut compiler = Compiler {
        sources,
        directory,
        problems,
        files: Vec::new(),
        has_tokens: false,
        in_body: Vec::new(),
        on_redis: false,
    };
    let set = compiler.rule_set(&config);
    match compiler.problems.conclude(&compiler.sources) {
        Ok(advice) => Ok(RuleSet { advice, files: compiler.files, ..set }),
        Err(mut errors) => {
            errors.named = compiler.files;
            Err(errors)
        }
    }
}

impl Compiler<'_> {
    fn rule_set(&mut self, config: &Config) -> RuleSet {
        let store = self.store(config.store.as_ref());
        self.on_redis = !store.urls.is_empty();
        let (identity, tokens) = self.identity(config.identity.as_ref());
        let in_body = |fact: &Fact| identity.is_in_body(fact);
        self.in_body = [Fact::User, Fact::ApiKey, Fact::Tier].into_iter().filter(in_body).collect();
        let priorities = self.priorities(config.priorities());
        let mut rules = Vec::new();
        let mut names = Names::default();
        let clock: Arc<dyn Clock> = Arc::new(SystemClock::default());
        for written in config.rules() {
            let rule = self.rule(written, &identity, &store, &priorities, &mut names, &clock);
            if let Some(rule) = rule {
                rules.push(Rule { number: rules.len(), ..rule });
            }
        }
        let (allow, block) = (self.lists(config.allow.as_ref()), self.lists(config.block.as_ref()));
        let mut listed = allow.values.iter().chain(&block.values);
        let set = RuleSet {
            lists_need_body: listed.any(|(fact, _)| identity.is_in_body(fact)),
            rule_index: Index::new(rules.iter().map(|rule| &rule.condition)),
            priority_index: Index::new(priorities.iter().map(|priority| &priority.condition)),
            has_gates: rules.iter().any(|rule| rule.capacity.is_some()),
            rules,
            priorities,
            allow,
            block,
            identity,
            tokens,
            headers: self.headers(config.headers.as_ref()),
            store,
            memory: self.memory(config.memory.as_ref()),
            serve: self.serve(config.serve.as_ref()),
            proxy: self.proxy(config.proxy.as_ref()),
            advice: Vec::new(),
            files: Vec::new(),
        };
        if !self.problems.has_errors() {
            advise(&set, config, &mut self.problems);
        }
        set
    }

    pub(crate) fn error(&mut self, span: &Span, message: impl Into<String>) {
        self.problems.error(span, message);
    }

    fn error_with(&mut self, span: &Span, message: impl Into<String>, hint: impl Into<String>) {
        self.problems.error(span, message).hint(hint);
    }

    fn store(&mut self, section: Option<&Written<StoreSection>>) -> StoreSettings {
        const SCHEMES: [&str; 6] = [
            "redis",
            "rediss",
            "redis-cluster",
            "rediss-cluster",
            "redis-sentinel",
            "rediss-sentinel",
        ];
        let mut settings = StoreSettings::default();
        let Some(Written { value: section, .. }) = section else { return settings };
        for url in list(section.url.as_ref()) {
            let scheme = url.value.split_once("://").map(|(scheme, _)| scheme);
            if !scheme.is_some_and(|scheme| SCHEMES.contains(&scheme)) {
                let message = "a store is a redis://, rediss://, redis-cluster:// or \
                               redis-sentinel:// URL";
                // It may hold a password.
                self.problems.error(&url.span, message).hide();
            }
            settings.urls.push(url.value.clone());
        }
        if let Some(prefix) = &section.prefix {
            let is_plain = |c: char| c.is_ascii_graphic() && !matches!(c, '{' | '}');
            if !(1..=64).contains(&prefix.value.len()) || !prefix.value.chars().all(is_plain) {
                self.error(&prefix.span, "a prefix has 1 to 64 printable characters, no braces");
            }
            settings.prefix.clone_from(&prefix.value);
        }
        if let Some(deadline) = section.deadline.as_ref().filter(|one| one.value.is_zero()) {
            self.error(&deadline.span, "no store answers in no time");
        }
        set(&mut settings.deadline, section.deadline.as_ref());
        set(&mut settings.on_error, section.on_error.as_ref());
        self.between(section.lease.as_ref(), "a lease", [Duration::from_millis(100), MINUTE]);
        set(&mut settings.lease, section.lease.as_ref());
        self.between(
            section.reconcile.as_ref(),
            "an interval",
            [Duration::from_millis(10), MINUTE],
        );
        set(&mut settings.reconcile, section.reconcile.as_ref());
        settings
    }

    fn memory(&mut self, section: Option<&Written<MemorySection>>) -> MemorySettings {
        let mut settings = MemorySettings::default();
        let Some(Written { value: section, .. }) = section else { return settings };
        if let Some(max_keys) = &section.max_keys {
            if max_keys.value == 0 {
                self.error(&max_keys.span, "a store that remembers no key cannot limit anybody");
            }
            settings.max_keys = usize::try_from(max_keys.value).ok();
        }
        settings.state_file = section.state_file.as_ref().map(|file| self.path(&file.value));
        settings
    }

    fn serve(&mut self, section: Option<&Written<ServeSection>>) -> ServeSettings {
        let mut settings = ServeSettings::default();
        let Some(Written { value: section, .. }) = section else { return settings };
        settings.listen = value(&section.listen);
        settings.grpc_listen = value(&section.grpc_listen);
        settings.resp_listen = value(&section.resp_listen);
        let path = |file: &Option<Written<String>>| Some(self.path(&file.as_ref()?.value));
        settings.tls_certificate = path(&section.tls_certificate);
        settings.tls_key = path(&section.tls_key);
        settings.resp_password_file = path(&section.resp_password_file);
        settings.admin_token_file = path(&section.admin_token_file);
        self.pair(section.tls_certificate.as_ref(), section.tls_key.as_ref());
        settings
    }

    fn proxy(&mut self, section: Option<&Written<ProxySection>>) -> ProxySettings {
        let Some(Written { value: section, .. }) = section else { return ProxySettings::default() };
        self.pair(section.tls_certificate.as_ref(), section.tls_key.as_ref());
        let path = |file: &Option<Written<String>>| Some(self.path(&file.as_ref()?.value));
        let log = section.access_log.as_ref().map(|log| match &log.value {
            AccessLog::File(file) => AccessLog::File(self.directory.join(file)),
            other => other.clone(),
        });
        ProxySettings {
            listen: value(&section.listen),
            upstream: value(&section.upstream),
            admin_listen: value(&section.admin_listen),
            tls_certificate: path(&section.tls_certificate),
            tls_key: path(&section.tls_key),
            connect_timeout: value(&section.connect_timeout),
            response_timeout: value(&section.response_timeout),
            client_timeout: value(&section.client_timeout),
            idle_timeout: value(&section.idle_timeout),
            tunnel_timeout: value(&section.tunnel_timeout),
            max_body: value(&section.max_body),
            access_log: log,
        }
    }

    /// A certificate and its key go together.
    fn pair(&mut self, certificate: Option<&Written<String>>, key: Option<&Written<String>>) {
        match (certificate, key) {
            (Some(one), None) => self.error(&one.span, "a certificate needs its `tls_key`"),
            (None, Some(one)) => self.error(&one.span, "a key needs its `tls_certificate`"),
            _ => {}
        }
    }

    fn headers(&mut self, section: Option<&Written<HeadersSection>>) -> Headers {
        let mut headers = Headers::default();
        let Some(Written { value: section, .. }) = section else { return headers };
        if section.styles.is_some() {
            headers.styles = self.styles(list(section.styles.as_ref()));
        }
        set(&mut headers.jitter, section.jitter.as_ref());
        set(&mut headers.expose, section.expose.as_ref());
        headers
    }

    fn styles(&mut self, written: &[Written<crate::config::StyleText>]) -> Vec<crate::HeaderStyle> {
        let mut styles = Vec::new();
        for style in written {
            match style.value.0 {
                None if written.len() > 1 => {
                    self.error(&style.span, "`none` goes with no other style");
                }
                None => {}
                Some(new) => {
                    let clash = |known: &&crate::HeaderStyle| known.shares_fields_with(new);
                    if let Some(known) = styles.iter().find(clash) {
                        let message = format!(
                            "`{}` and `{}` write the same fields; choose one",
                            known.name(),
                            new.name()
                        );
                        self.error(&style.span, message);
                    }
                    styles.push(new);
                }
            }
        }
        styles
    }

    fn priorities(&mut self, written: &[Written<PrioritySection>]) -> Vec<Priority> {
        let mut priorities: Vec<Priority> = Vec::new();
        let mut places: HashMap<&String, &Span> = HashMap::new();
        for Written { value: section, .. } in written {
            let Some(name) = &section.name else { continue };
            if section.weight.is_none() && section.class.is_none() && section.misread.is_empty() {
                let hint = "write weight = 10.0, or class = \"critical\"";
                self.error_with(&name.span, "this priority has neither a weight nor a class", hint);
            }
            match places.get(&name.value.0) {
                None => {
                    places.insert(&name.value.0, &name.span);
                }
                Some(known) => {
                    self.taken("priority", &name.value.0, known, &name.span);
                }
            }
            priorities.push(Priority {
                number: priorities.len(),
                name: name.value.0.clone(),
                condition: self.condition(section.r#match.as_ref()),
                weight: value(&section.weight),
                class: value(&section.class).unwrap_or_default(),
                tally: Arc::default(),
            });
        }
        priorities
    }

    /// Notes that a name is taken, and where.
    fn taken(&mut self, what: &str, name: &str, known: &Span, span: &Span) {
        let mut message = format!("there is a {what} `{name}` already");
        // To find a line takes as long as the file.
        if !self.problems.are_many() {
            message.push_str(&format!(" ({})", known.seen_from(span, &self.sources)));
        }
        self.error(span, message);
    }

    fn condition(&mut self, section: Option<&Written<MatchSection>>) -> Condition {
        let Some(Written { value: section, .. }) = section else { return Condition::default() };
        self.not_empty(section.method.as_ref(), "method");
        self.not_empty(section.path.as_ref(), "path");
        self.not_empty(section.host.as_ref(), "host");
        self.not_empty(section.without.as_ref(), "without");
        let methods = list(section.method.as_ref());
        let mut facts = self.wanted(section.header.as_ref(), |name| {
            let Ok(HeaderText(name)) = name.parse::<HeaderText>() else {
                return Err(format!("`{name}` is not the name of a header"));
            };
            Ok(Fact::Header(name))
        });
        facts.extend(self.wanted(section.fact.as_ref(), |name| {
            let known = name.parse().or_else(|_| format!("fact:{name}").parse());
            known.map_err(|error: ParseFactError| error.to_string())
        }));
        for Written { value: fact, span } in list(section.without.as_ref()) {
            self.known_before_the_body(fact, span);
        }
        Condition {
            methods: (!methods.is_empty())
                .then(|| Methods::new(methods.iter().map(|method| method.value.clone()))),
            paths: values(section.path.as_ref()),
            hosts: values(section.host.as_ref()),
            facts,
            without: values(section.without.as_ref()),
        }
    }

    /// An empty list of what may match would match nothing, or everything: nobody can tell.
    pub(crate) fn not_empty<T>(&mut self, list: Option<&Written<List<T>>>, what: &str) {
        if let Some(list) = list
            && list.value.0.is_empty()
        {
            self.error(&list.span, format!("an empty list; leave `{what}` out or name one"));
        }
    }

    fn wanted(
        &mut self,
        map: Option<&Written<Map<String>>>,
        parse: impl Fn(&str) -> Result<Fact, String>,
    ) -> Vec<(Fact, Wanted)> {
        let mut facts = Vec::new();
        for (name, value) in map.map_or(&[][..], |map| &map.value.0) {
            match parse(&name.value) {
                Ok(fact) => {
                    self.known_before_the_body(&fact, &name.span);
                    let any = value.value == "*";
                    let wanted = if any { Wanted::Any } else { Wanted::Value(value.value.clone()) };
                    facts.push((fact, wanted));
                }
                Err(message) => self.error(&name.span, message),
            }
        }
        facts
    }

    /// Sees that a fact is known when rules are matched: before the body is read, and for no rule in
    /// particular.
    fn known_before_the_body(&mut self, fact: &Fact, span: &Span) {
        self.available(fact, span);
        let in_body = fact.is_in_body() || self.in_body.contains(fact);
        if in_body || matches!(fact, Fact::Param(_)) {
            let message = format!("`{fact}` is not known when rules are matched; use it in `by`");
            self.error(span, message);
        }
    }

    /// Sees that a time is neither too short nor too long.
    fn between(&mut self, time: Option<&Written<Duration>>, what: &str, range: [Duration; 2]) {
        let [least, most] = range;
        if let Some(time) = time.filter(|time| !(least..=most).contains(&time.value)) {
            self.error(&time.span, format!("{what} is between {least:?} and {most:?} long"));
        }
    }

    /// A file another file names.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    /// Reads a file that is named here.
    pub(crate) fn read(&mut self, name: &Written<String>) -> Option<Vec<u8>> {
        let path = self.path(&name.value);
        match std::fs::read(&path) {
            Ok(content) => {
                self.files.push(Seen::new(path, &content));
                Some(content)
            }
            Err(error) => {
                self.files.push(Seen::missing(path));
                self.error(&name.span, format!("cannot read `{}`: {error}", name.value));
                None
            }
        }
    }
}

pub(crate) fn list<T>(list: Option<&Written<List<T>>>) -> &[Written<T>] {
    list.map_or(&[], |list| &list.value.0)
}

fn values<T: Clone>(written: Option<&Written<List<T>>>) -> Vec<T> {
    list(written).iter().map(|item| item.value.clone()).collect()
}

fn value<T: Clone>(written: &Option<Written<T>>) -> Option<T> {
    written.as_ref().map(|written| written.value.clone())
}

fn set<T: Clone>(setting: &mut T, written: Option<&Written<T>>) {
    if let Some(written) = written {
        *setting = written.value.clone();
    }
}
