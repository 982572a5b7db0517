//! What two runs differ in: their canonical texts, value by value.

use std::collections::{BTreeMap, BTreeSet};

/// A path, and what stands there in either run: type and value.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Difference {
    pub path: String,
    pub a: Option<String>,
    pub b: Option<String>,
}

/// Where two canonical texts differ, by path; nothing for the same run.
#[must_use]
pub fn differences(a: &str, b: &str) -> Vec<Difference> {
    let (a, b) = (facts(a), facts(b));
    let paths: BTreeSet<&String> = a.keys().chain(b.keys()).collect();
    let both = paths.into_iter().map(|path| Difference {
        path: path.clone(),
        a: a.get(path).cloned(),
        b: b.get(path).cloned(),
    });
    both.filter(|difference| difference.a != difference.b).collect()
}

fn facts(canon: &str) -> BTreeMap<String, String> {
    let facts = canon.lines().skip(1).filter_map(|line| line.split_once('\t'));
    facts.map(|(path, fact)| (path.to_owned(), fact.replace('\t', " "))).collect()
}
