//! Which runs are the same run.

use std::collections::BTreeSet;

use kdl::{KdlDocument, KdlNode};
use proptest::prelude::*;
use starpo::config::tree::{Body, Form, Tree};
use starpo::config::{Field, Kind, Value, canonical, fields, show};
use starpo::experiment::{self, COMPONENTS, FIELDS, Key};
use starpo::rng::Stream;

use super::{Files, golden, sokoban};

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
    let plain = super::body("seed 3\nrollout { groups 4; max-turns 2 }", &[]).unwrap();
    let same = [
        super::body("rollout {\n  // few\n  max-turns 2\n  groups 4\n}\nseed 3", &[]),
        super::body("note \"a remark\"\nalias \"s\" \"seed\"\nrollout max-turns=2 groups=4\nseed 3", &[]),
        super::body("", &["rollout.max_turns=2", "seed=3", "rollout.groups=4"]),
        super::body("seed 3\nrollout { groups 4; max-turns 2 }\n(local)execution { threads 7; log \"debug\" }", &[]),
        super::body(
            "seed 3\nrollout { groups (ref)rollout.max-actions; max-actions 4; max-turns 2 }",
            &["rollout.max-actions=10", "rollout.groups=4"],
        ),
    ];
    for run in same {
        assert_eq!(run.unwrap().canon, plain.canon);
    }
    let whole = super::body("rollout { format-penalty -1 }\nupdate { learning-rate 1 }", &[]).unwrap();
    let float = super::body("rollout { format-penalty -1.0 }\nupdate { learning-rate 1.0e0 }", &[]).unwrap();
    assert_eq!(whole.canon, float.canon);
    let zero = super::body("rollout { format-penalty 0 }", &[]).unwrap();
    assert_eq!(super::body("rollout { format-penalty -0.0 }", &[]).unwrap().canon, zero.canon);
    let file = super::body("rollout { system (file)\"prompts/rules.txt\" }", &[]).unwrap();
    assert_eq!(file.key, super::body("", &["rollout.system=(file)prompts/rules.txt"]).unwrap().key);
    let edges =
        |overrides: &[&str]| super::body("gradients { buckets \"edges\" { edges 1 3 } }", overrides).unwrap().key;
    assert_eq!(edges(&["groups=7", "edges+=(ref)rollout.groups"]), edges(&["groups=7", "edges=1,3,7"]));
    let typed = super::body("", &["train.steps=(ref)rollout.groups", "groups=4"]).unwrap();
    assert_eq!(typed.key, super::body("train { steps 4 }\nrollout { groups 4 }", &[]).unwrap().key);
    let inline = super::body("rollout { system \"Push the boxes.\" }", &[]).unwrap();
    assert_eq!(file.key, inline.key);
    assert_ne!(file.key, super::body("rollout { system \"Push the boxes!\" }", &[]).unwrap().key);
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

/// A tree of that kind: first members, one item, nothing left out.
fn plain(kind: &'static Kind) -> Tree {
    let form = match kind {
        Kind::Bool => Form::Scalar(Value::Bool(false)),
        Kind::Int { .. } => Form::Scalar(Value::Int(7)),
        Kind::Float => Form::Scalar(Value::Float(0.25)),
        Kind::Text => Form::Scalar(Value::Text("x".to_owned())),
        Kind::Input => Form::Scalar(Value::Input { text: "x".to_owned(), path: None }),
        Kind::Folder => Form::Scalar(Value::Folder { path: "x".to_owned(), digest: "0".to_owned() }),
        Kind::Choice(names) => Form::Scalar(Value::Text(names[0].to_owned())),
        Kind::List(item) => Form::List(vec![plain(item)]),
        Kind::Optional(inner) => return plain(inner),
        Kind::Section(fields) => Form::Section(body(&[fields], None)),
        Kind::Variant { alternatives, common, .. } => {
            Form::Variant { name: alternatives[0].name, fields: body(&[alternatives[0].fields, common], None) }
        }
    };
    Tree { form, place: None }
}

/// A body of those fields, of which one may be given.
fn body(fields: &[&'static [Field]], given: Option<(&'static str, Tree)>) -> Body {
    let mut all: Body = fields.iter().copied().flatten().map(|field| (field.name, plain(field.kind))).collect();
    all.extend(given);
    all
}

/// Trees of the kind that differ from the plain one in one thing, other than a field of a field.
fn others(kind: &'static Kind) -> Vec<Tree> {
    let forms: Vec<Form> = match kind {
        Kind::Bool => vec![Form::Scalar(Value::Bool(true))],
        Kind::Int { .. } => [6, 8, 1 << 53, (1 << 53) + 1].map(|value| Form::Scalar(Value::Int(value))).into(),
        Kind::Float => vec![Form::Scalar(Value::Float(0.25000000000000006))],
        Kind::Text => vec![Form::Scalar(Value::Text(" x".to_owned()))],
        Kind::Input => vec![Form::Scalar(Value::Input { text: "x\n".to_owned(), path: None })],
        Kind::Folder => vec![Form::Scalar(Value::Folder { path: "x".to_owned(), digest: "1".to_owned() })],
        Kind::Choice(names) => names[1..].iter().map(|name| Form::Scalar(Value::Text((*name).to_owned()))).collect(),
        Kind::List(item) => vec![Form::List(Vec::new()), Form::List(vec![plain(item), plain(item)])],
        Kind::Optional(inner) => {
            return others(inner).into_iter().chain([Tree { form: Form::Unset, place: None }]).collect();
        }
        Kind::Section(_) => Vec::new(),
        Kind::Variant { alternatives, common, .. } => alternatives[1..]
            .iter()
            .map(|member| Form::Variant { name: member.name, fields: body(&[member.fields, common], None) })
            .collect(),
    };
    forms.into_iter().map(|form| Tree { form, place: None }).collect()
}

/// Holds that each change at `path` and below changes the canonical text, unless it is local; `whole` makes the tree.
fn differ(path: &str, local: bool, kind: &'static Kind, whole: &dyn Fn(Tree) -> Body, seen: &mut BTreeSet<String>) {
    seen.insert(path.to_owned());
    let canon = |tree: Tree| canonical(FIELDS, &whole(tree), COMPONENTS);
    let mut texts = BTreeSet::from([canon(plain(kind))]);
    let others = others(kind);
    let count = others.len();
    texts.extend(others.into_iter().map(canon));
    assert_eq!(texts.len(), if local { 1 } else { count + 1 }, "{path}");
    let mut fields = |own: &'static [Field], common: &'static [Field], make: &dyn Fn(Body) -> Form| {
        for field in own.iter().chain(common) {
            let whole =
                |tree: Tree| whole(Tree { form: make(body(&[own, common], Some((field.name, tree)))), place: None });
            differ(&format!("{path}.{}", field.name), local || field.local, field.kind, &whole, seen);
        }
    };
    match kind {
        Kind::Section(own) => fields(own, &[], &Form::Section),
        Kind::Variant { alternatives, common, .. } => {
            for member in *alternatives {
                fields(member.fields, common, &|fields| Form::Variant { name: member.name, fields });
            }
        }
        Kind::Optional(inner) if matches!(inner, Kind::Section(_) | Kind::Variant { .. }) => {
            differ(path, local, inner, whole, seen)
        }
        Kind::List(item) => {
            differ(path, local, item, &|tree| whole(Tree { form: Form::List(vec![tree]), place: None }), seen)
        }
        _ => {}
    }
}

#[test]
fn every_value_but_the_local_ones_is_in_the_key() {
    let mut seen = BTreeSet::new();
    for field in FIELDS {
        let whole = |tree: Tree| body(&[FIELDS], Some((field.name, tree)));
        differ(field.name, field.local, field.kind, &whole, &mut seen);
    }
    let all: BTreeSet<String> = fields(FIELDS).into_iter().map(|(path, _)| path).collect();
    assert_eq!(seen, all, "every field of the schema was changed");
}

/// The same nodes in another order, with remarks between them: repeated ones keep theirs.
fn shuffled(nodes: &[KdlNode], draws: &mut Stream) -> Vec<String> {
    let mut names: Vec<&str> = Vec::new();
    nodes.iter().map(|node| node.name().value()).for_each(|name| {
        if !names.contains(&name) {
            names.push(name);
        }
    });
    draws.shuffle(&mut names);
    let text = |node: &KdlNode| {
        let mut own = node.clone();
        let inner = own.children_mut().take().map(|block| shuffled(block.nodes(), draws).join("\n"));
        own.clear_format();
        let head = own.to_string();
        inner.map_or(head.clone(), |inner| format!("{} {{ // why\n{inner}\n}}", head.trim_end()))
    };
    let ordered = names.iter().flat_map(|name| nodes.iter().filter(move |node| node.name().value() == *name));
    ordered.map(text).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn layouts_and_orders_do_not_matter(seed in any::<u64>(), parts in 1_usize..5) {
        let run = sokoban(&["top_p=0.9", "stop=rule,spread-collapse", "stop.0.when=update.kl", "stop.0.above=3"]);
        let text = show::kdl(FIELDS, &run.tree, 0);
        let document: KdlDocument = text.parse().unwrap();
        let mut draws = Stream::new("test", seed, &[]);
        let nodes = shuffled(document.nodes(), &mut draws);
        // A list stands in one document.
        let mut files = vec![String::new(); parts];
        for node in nodes {
            let name = node.split_whitespace().next().unwrap().len();
            files[name % parts].push_str(&format!("/* a remark */ {node}\n"));
        }
        let paths: Vec<String> = (0..parts).map(|part| format!("configs/part{part}.kdl")).collect();
        let uses: String = (0..parts).map(|part| format!("    use \"part{part}\"\n")).collect();
        let test = format!("experiment \"sokoban\" {{\n    extends \"base\"\n{uses}}}\n");
        let mut all: Vec<(&str, &str)> = vec![("experiments/test.kdl", &test)];
        all.extend(paths.iter().map(String::as_str).zip(files.iter().map(String::as_str)));
        let again = experiment::resolve_with("test", &[], &Files::with(&all));
        let again = again.map_err(|error| TestCaseError::fail(error.to_string()))?;
        prop_assert_eq!((again.canon, again.key), (run.canon, run.key));
    }
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
