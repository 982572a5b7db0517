//! `golden/epochs.kdl`: a golden that moves takes its component's epoch along.

use std::collections::BTreeMap;
use std::fmt::Write;

use starpo::config::Kind;
use starpo::experiment::FIELDS;

use super::root;

/// Families with a folder of goldens; a member's are `<member>.snap` and `<member>-….snap`.
const FAMILIES: &[&str] = &["advantage", "env", "filter", "objective"];

/// Every member of those families with its epoch.
fn components() -> Vec<(&'static str, &'static str, u32)> {
    let mut found = Vec::new();
    for field in FIELDS {
        let kind = match field.kind {
            Kind::List(item) => item,
            kind => kind,
        };
        if let Kind::Variant { family, alternatives, .. } = kind
            && FAMILIES.contains(family)
        {
            found.extend(alternatives.iter().map(|member| (*family, member.name, member.epoch)));
        }
    }
    found
}

/// The digest of a member's goldens; None if it has none. `top-k-abs-….snap` is not `top-k`'s.
fn digest(family: &str, member: &str, members: &[&str]) -> Option<String> {
    let mut files = BTreeMap::new();
    for entry in std::fs::read_dir(root().join("golden").join(family)).ok()? {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        let belongs =
            |member: &&&str| name.strip_prefix(**member).is_some_and(|rest| rest.starts_with('-') || rest == ".snap");
        let owner = members.iter().filter(belongs).max_by_key(|member| member.len());
        if name.ends_with(".snap") && owner == Some(&member) {
            files.insert(name, std::fs::read(path).unwrap());
        }
    }
    let mut hasher = blake3::Hasher::new();
    for (name, text) in &files {
        hasher.update(name.as_bytes()).update(&[0]).update(blake3::hash(text).as_bytes());
    }
    (!files.is_empty()).then(|| hasher.finalize().to_hex().to_string())
}

#[test]
fn a_golden_moves_with_its_epoch() {
    let path = root().join("golden/epochs.kdl");
    let mut text = std::fs::read_to_string(&path).unwrap();
    let listed: kdl::KdlDocument = text.parse().unwrap();
    let all = components();
    let (mut problems, mut lines) = (Vec::new(), String::new());
    for (family, member, epoch) in &all {
        let members: Vec<_> = all.iter().filter(|other| other.0 == *family).map(|other| other.1).collect();
        let Some(digest) = digest(family, member, &members) else { continue };
        let component = format!("{family}.{member}");
        let last = listed.nodes().iter().rfind(|node| node.name().value() == component);
        let last =
            last.map(|node| (node.get(0).unwrap().as_integer().unwrap(), node.get(1).unwrap().as_string().unwrap()));
        match last {
            Some(last) if last == (i128::from(*epoch), digest.as_str()) => {}
            Some((old, _)) if old >= i128::from(*epoch) => {
                problems.push(format!("the goldens of {component} have moved: raise its epoch above {old}"));
            }
            _ => writeln!(lines, "{component} {epoch} \"{digest}\"").unwrap(),
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
    if std::env::var_os("STARPO_UPDATE_EPOCHS").is_some() {
        text.push_str(&lines);
        std::fs::write(path, text).unwrap();
    } else {
        assert!(lines.is_empty(), "to be appended to golden/epochs.kdl by STARPO_UPDATE_EPOCHS=1:\n{lines}");
    }
}
