//! From what is written to what is meant. Every mistake is noted, and the reading goes on.

mod identity;
mod limits;
mod lists;
mod overload;
mod rule;
mod settings;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use dashpot::{Clock, SystemClock};

use limits::Names;

use crate::advice::advise;
use crate::config::{Config, HeaderText, MatchSection, PrioritySection};
use crate::live::Seen;
use crate::matching::{Condition, Index, Methods, Wanted};
use crate::problem::{Problems, RuleErrors};
use crate::read::{List, Map};
use crate::rule::{Priority, Rule};
use crate::set::RuleSet;
use crate::source::{Source, Span, Written};
use crate::{Fact, ParseFactError};

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
