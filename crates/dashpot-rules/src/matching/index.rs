//! Finding what matches without looking at what does not.

use std::collections::HashMap;

use rapidhash::fast::RandomState;
use smallvec::SmallVec;

use super::path::Segment;
use super::{Condition, HostPattern, PathPattern, Wanted};
use crate::{Descriptor, Fact};

/// Conditions by host, then segment by segment of the path, then by the value of a fact: the work
/// grows with what matches, not with what there is.
#[derive(Debug, Default)]
pub(crate) struct Index {
    anywhere: Tree,
    hosts: HashMap<String, Tree, RandomState>,
    /// By domain, which begins with a dot.
    below: HashMap<String, Tree, RandomState>,
}

/// The numbers of what was found, in order.
pub(crate) type Found = SmallVec<[u32; 8]>;

impl Index {
    pub(crate) fn new<'c>(conditions: impl IntoIterator<Item = &'c Condition>) -> Self {
        let mut index = Self::default();
        for (number, condition) in (0..).zip(conditions) {
            if condition.hosts.is_empty() {
                index.anywhere.insert(number, condition);
            }
            for host in &condition.hosts {
                let tree = match host {
                    HostPattern::Is(host) => index.hosts.entry(host.clone()).or_default(),
                    HostPattern::Below(domain) => index.below.entry(domain.clone()).or_default(),
                };
                tree.insert(number, condition);
            }
        }
        index
    }

    /// All whose host, path and first fact match; the rest remains to be seen. The path is a normal
    /// one.
    pub(crate) fn find(&self, path: &str, request: &impl Descriptor) -> Found {
        let mut found = Found::new();
        self.anywhere.find(path, request, &mut found);
        if !(self.hosts.is_empty() && self.below.is_empty())
            && let Some(host) = request.fact(&Fact::Host)
            && let Ok(host) = std::str::from_utf8(&host)
        {
            let host = host.to_ascii_lowercase();
            let host = host.strip_suffix('.').unwrap_or(&host);
            if let Some(tree) = self.hosts.get(host) {
                tree.find(path, request, &mut found);
            }
            for (dot, _) in host.match_indices('.').take(LABELS_MAX) {
                let domain = host.get(dot..).unwrap_or_default();
                if let Some(tree) = self.below.get(domain) {
                    tree.find(path, request, &mut found);
                }
            }
        }
        if found.len() > 1 {
            found.sort_unstable();
            found.dedup();
        }
        found
    }
}

/// No host has more labels than this.
const LABELS_MAX: usize = 128;

#[derive(Debug, Default)]
struct Tree {
    /// Those that ask for no path.
    everywhere: Leaf,
    root: Node,
}

#[derive(Debug, Default)]
struct Node {
    /// Patterns that end here.
    here: Leaf,
    /// Patterns that cover what is here and all below.
    below: Leaf,
    next: HashMap<String, Node, RandomState>,
    any: Option<Box<Node>>,
}

impl Tree {
    fn insert(&mut self, number: u32, condition: &Condition) {
        if condition.paths.is_empty() {
            self.everywhere.insert(number, condition);
        }
        for PathPattern { segments, below } in &condition.paths {
            let mut node = &mut self.root;
            for segment in segments {
                node = match segment {
                    Segment::Is(text) => node.next.entry(text.clone()).or_default(),
                    Segment::Any(_) => node.any.get_or_insert_default(),
                };
            }
            let leaf = if *below { &mut node.below } else { &mut node.here };
            leaf.insert(number, condition);
        }
    }

    fn find(&self, path: &str, request: &impl Descriptor, found: &mut Found) {
        self.everywhere.find(request, found);
        if let Some(path) = path.strip_prefix('/') {
            self.root.find(path, request, found);
        }
    }
}

impl Node {
    /// Finds what is along a path, of which this is left: segments with one slash between them.
    fn find(&self, path: &str, request: &impl Descriptor, found: &mut Found) {
        self.below.find(request, found);
        if path.is_empty() {
            return self.here.find(request, found);
        }
        // Byte by byte: segments are short, and a searcher is slow to set up.
        let end = path.bytes().position(|byte| byte == b'/').unwrap_or(path.len());
        let first = path.get(..end).unwrap_or_default();
        let rest = path.get(end + 1..).unwrap_or_default();
        if let Some(next) = self.next.get(first) {
            next.find(rest, request, found);
        }
        if let Some(any) = &self.any {
            any.find(rest, request, found);
        }
    }
}

/// What is at the end of a pattern.
#[derive(Debug, Default)]
struct Leaf {
    plain: Vec<u32>,
    /// Those that want a certain value of a fact, by that value.
    by_fact: Vec<(Fact, Values)>,
}

type Values = HashMap<Vec<u8>, Vec<u32>, RandomState>;

impl Leaf {
    fn insert(&mut self, number: u32, condition: &Condition) {
        let exact = condition.facts.iter().find_map(|(fact, wanted)| match wanted {
            Wanted::Value(value) => Some((fact, value)),
            Wanted::Any => None,
        });
        let Some((fact, value)) = exact else {
            return self.plain.push(number);
        };
        let at = self.by_fact.iter().position(|(known, _)| known == fact);
        let at = at.unwrap_or_else(|| {
            self.by_fact.push((fact.clone(), HashMap::default()));
            self.by_fact.len() - 1
        });
        if let Some((_, values)) = self.by_fact.get_mut(at) {
            values.entry(value.clone().into_bytes()).or_default().push(number);
        }
    }

    fn find(&self, request: &impl Descriptor, found: &mut Found) {
        for number in &self.plain {
            found.push(*number);
        }
        for (fact, values) in &self.by_fact {
            if let Some(value) = request.fact(fact)
                && let Some(numbers) = values.get(value.as_ref())
            {
                for number in numbers {
                    found.push(*number);
                }
            }
        }
    }
}
