//! Which runs are the same run.

use std::collections::BTreeSet;

use starpo::config::tree::{Body, Form, Tree, put, spots};
use starpo::config::{Kind, Value, canonical};
use starpo::experiment::{self, COMPONENTS, FIELDS, Key, Resolved};

use super::{body, golden, root, sokoban, strings};

#[test]
fn the_canonical_text() {
    let run = sokoban(&["top_p=0.9"]);
    golden("key", "sokoban-top-p", &run.canon);
    let (warm, id) = run.warm_start().unwrap();
    golden("key", "sokoban-warm-start", &format!("{warm}{id}"));
    assert_eq!(run.key, Key::of(&run.canon));
}

#[test]
fn what_does_not_matter_is_not_in_the_key() {
    let plain = body("seed 3\nrollout { groups 4; max-turns 2 }", &[]).unwrap();
    let same = [
        body("rollout {\n  // few\n  max-turns 2\n  groups 4\n}\nseed 3", &[]),
        body("note \"a remark\"\nalias \"s\" \"seed\"\nrollout max-turns=2 groups=4\nseed 3", &[]),
        body("", &["rollout.max_turns=2", "seed=3", "rollout.groups=4"]),
        body("seed 3\nrollout { groups 4; max-turns 2 }\n(local)execution { threads 7; log \"debug\" }", &[]),
        body(
            "seed 3\nrollout { groups (ref)rollout.max-actions; max-actions 4; max-turns 2 }",
            &["rollout.max-actions=10", "rollout.groups=4"],
        ),
    ];
    for run in same {
        assert_eq!(run.unwrap().canon, plain.canon);
    }
    let whole = body("rollout { format-penalty -1 }\nupdate { learning-rate 1 }", &[]).unwrap();
    let float = body("rollout { format-penalty -1.0 }\nupdate { learning-rate 1.0e0 }", &[]).unwrap();
    assert_eq!(whole.canon, float.canon);
    let zero = body("rollout { format-penalty 0 }", &[]).unwrap();
    assert_eq!(body("rollout { format-penalty -0.0 }", &[]).unwrap().canon, zero.canon);
    let file = body("rollout { system (file)\"prompts/rules.txt\" }", &[]).unwrap();
    let inline = body("rollout { system \"Push the boxes.\" }", &[]).unwrap();
    assert_eq!(file.key, inline.key);
    assert_ne!(file.key, body("rollout { system \"Push the boxes!\" }", &[]).unwrap().key);
}

#[test]
fn neighbouring_seeds_are_two_runs() {
    let seeds = [0, 1, (1 << 53) - 1, 1 << 53, (1 << 53) + 1, u64::MAX - 1, u64::MAX];
    let keys: BTreeSet<Key> = seeds.iter().map(|seed| sokoban(&[&format!("seed={seed}")]).key).collect();
    assert_eq!(keys.len(), seeds.len());
}

#[test]
fn a_newer_component_makes_another_run() {
    let run = sokoban(&[]);
    for index in 0..COMPONENTS.len() {
        let mut components = COMPONENTS.to_vec();
        components[index].1 += 1;
        assert_ne!(canonical(FIELDS, &run.tree, &components), run.canon);
    }
}

/// Another value of the same kind.
fn other(value: &Value, kind: &Kind) -> Option<Value> {
    Some(match value {
        Value::Bool(value) => Value::Bool(!value),
        Value::Int(value) => Value::Int(value + 1),
        Value::Float(value) => Value::Float(value + 0.5),
        Value::Text(text) => Value::Text(match kind {
            Kind::Choice(names) => (*names.iter().find(|name| **name != text)?).to_owned(),
            _ => format!("{text}x"),
        }),
        Value::Input { text, path } => Value::Input { text: format!("{text}x"), path: path.clone() },
        Value::Folder { path, .. } => Value::Folder { path: path.clone(), digest: "00".to_owned() },
        Value::List(_) | Value::Unset | Value::Section(_) | Value::Variant { .. } => return None,
    })
}

/// The tree with one thing changed, for each thing: its path, whether it is local, and the changed tree.
fn changes(tree: &Body) -> Vec<(String, bool, Body)> {
    let mut found = Vec::new();
    for spot in spots(FIELDS, tree) {
        let kind = match spot.kind {
            Kind::Optional(inner) => inner,
            kind => kind,
        };
        let forms: Vec<Form> = match (&spot.tree.unwrap().form, kind) {
            (Form::Scalar(value), _) => other(value, kind).map(Form::Scalar).into_iter().collect(),
            (Form::Unset, Kind::Int { .. }) => vec![Form::Scalar(Value::Int(5))],
            (Form::Unset, Kind::Float) => vec![Form::Scalar(Value::Float(0.5))],
            (Form::Unset, Kind::Bool) => vec![Form::Scalar(Value::Bool(false))],
            (Form::Unset, Kind::Text) => vec![Form::Scalar(Value::Text(String::new()))],
            (Form::Unset, Kind::Input) => vec![Form::Scalar(Value::Input { text: String::new(), path: None })],
            (Form::Variant { name, .. }, Kind::Variant { alternatives, .. }) => {
                let others = alternatives.iter().filter(|member| member.name != *name);
                others.map(|member| Form::Variant { name: member.name, fields: Body::new() }).collect()
            }
            (Form::List(items), _) if !items.is_empty() => {
                let longer = items.iter().chain(items.last()).cloned().collect();
                vec![Form::List(longer), Form::List(items[1..].to_vec())]
            }
            (Form::List(_) | Form::Section(_), _) => Vec::new(),
            (form, kind) => panic!("no other value for {} {form:?} {kind:?}", spot.path),
        };
        for form in forms {
            let mut changed = tree.clone();
            put(&mut changed, &spot.steps, |_| Tree { form, place: None });
            found.push((spot.path.clone(), spot.local, changed));
        }
    }
    found
}

/// Runs that together choose every member of every variant that needs no file.
fn runs() -> Vec<Resolved> {
    let mut all: Vec<Resolved> =
        ["sokoban", "frozen-lake", "bandit"].map(|name| experiment::resolve(name, &[], root()).unwrap()).into();
    for spot in spots(FIELDS, &sokoban(&["filter=top-p"]).tree) {
        if let Kind::Variant { alternatives, .. } = spot.kind {
            for member in *alternatives {
                let choice = format!("{}={}", spot.short, member.name);
                all.extend(experiment::resolve("sokoban", &strings(&[&choice]), root()));
            }
        }
    }
    all.push(body("model \"pretrained\" { path (dir)\"prompts/rules.txt\" }", &[]).unwrap());
    all
}

#[test]
fn every_value_but_the_local_ones_is_in_the_key() {
    let mut seen = 0;
    for run in runs() {
        for (path, local, changed) in changes(&run.tree) {
            let canon = canonical(FIELDS, &changed, COMPONENTS);
            assert_eq!(canon == run.canon, local, "{path}");
            seen += usize::from(!local);
        }
    }
    assert!(seen > 300, "{seen}");
}

#[test]
fn runs_share_a_warm_start_unless_it_would_differ() {
    let warm = |overrides: &[&str]| sokoban(overrides).warm_start().map(|(_, id)| id.to_string());
    let plain = warm(&[]);
    assert!(plain.as_ref().is_some_and(|id| id.starts_with("warm-")));
    let same: [&[&str]; 4] = [&["seed=9"], &["top_p=0.9"], &["update.learning-rate=0.5"], &["rollout.groups=3"]];
    for overrides in same {
        assert_eq!(warm(overrides), plain, "{overrides:?}");
    }
    let other: [&[&str]; 4] =
        [&["warm-start.seed=9"], &["task.boxes=2"], &["model.width=64"], &["rollout.think=false"]];
    for overrides in other {
        assert_ne!(warm(overrides), plain, "{overrides:?}");
    }
    assert_eq!(warm(&["warm-start=none"]), None);
}
