//! What the repository promises about its own shape, held by reading it.

use std::fs;
use std::path::{Path, PathBuf};

/// Layers of `src`, lowest first: a module imports only from rows below its own, or from its own folder.
const LAYERS: [&[&str]; 14] = [
    &["rng", "stats"],
    &["trajectory"],
    &["batch"],
    &["config"],
    &["env", "chat", "filter", "objective", "diagnose", "schedule", "stop"],
    &["reward"],
    &["advantage"],
    &["policy", "experiment"],
    &["record"],
    &["rollout", "update", "replay", "learners"],
    &["evaluate", "gather", "stage", "critic", "gradients"],
    &["warm_start", "train", "sweep"],
    &["report"],
    &["cli"],
];

/// Imports across or up a row that the flow needs, each with its reason.
const EXCEPTIONS: [(&str, &str, &str); 4] = [
    ("chat", "env", "a prompt quotes an episode"),
    ("policy", "experiment", "a policy is made from its section"),
    ("policy", "chat", "the tokenizer is the chat's"),
    ("batch", "advantage", "a batch is laid out with its credit"),
];

fn root() -> PathBuf {
    env!("CARGO_MANIFEST_DIR").into()
}

/// Every file below `folder` with extension `ext`, sorted.
fn files(folder: &str, ext: &str) -> Vec<PathBuf> {
    let (mut found, mut folders) = (Vec::new(), vec![root().join(folder)]);
    while let Some(folder) = folders.pop() {
        let Ok(entries) = fs::read_dir(folder) else { continue };
        for path in entries.map(|entry| entry.unwrap().path()) {
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|found| found == ext) {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

fn sources() -> Vec<(String, String)> {
    ["src", "kernels/src", "tests", "benches"]
        .into_iter()
        .flat_map(|folder| files(folder, "rs"))
        .map(|path| {
            let name = path.strip_prefix(root()).unwrap().display().to_string();
            (name, fs::read_to_string(&path).unwrap())
        })
        .collect()
}

fn report(complaints: &[String]) {
    assert!(complaints.is_empty(), "\n{}\n", complaints.join("\n"));
}

/// The module of `src` that a file belongs to.
fn module(file: &str) -> Option<&str> {
    let inner = file.strip_prefix("src/")?;
    let top = inner.split('/').next()?;
    Some(top.strip_suffix(".rs").unwrap_or(top))
}

fn layer(module: &str) -> Option<usize> {
    LAYERS.iter().position(|row| row.contains(&module))
}

/// Modules that a file names by `crate::x`, in `use crate::{a, b::c}` too.
fn imports(text: &str) -> Vec<String> {
    let code: String = text.lines().filter(|line| !line.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n");
    let mut found = Vec::new();
    for (at, _) in code.match_indices("crate::") {
        if code[..at].ends_with('$') {
            continue;
        }
        let rest = &code[at + "crate::".len()..];
        if let Some(list) = rest.strip_prefix('{') {
            let (mut depth, mut word) = (0, String::new());
            for c in list.chars() {
                match c {
                    '{' => depth += 1,
                    '}' if depth == 0 => break,
                    '}' => depth -= 1,
                    ',' if depth == 0 => found.push(std::mem::take(&mut word)),
                    _ if depth == 0 => word.push(c),
                    _ => {}
                }
            }
            found.push(word);
        } else {
            found.push(rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect());
        }
    }
    found
        .iter()
        .map(|path| path.trim().split("::").next().unwrap_or_default().to_owned())
        .filter(|name| !name.is_empty() && name.chars().all(|c| c.is_lowercase() || c == '_'))
        .collect()
}

#[test]
fn modules_import_from_lower_layers_only() {
    let mut complaints = Vec::new();
    for (file, text) in sources() {
        let Some(own) = module(&file).filter(|own| !["lib", "main"].contains(own)) else { continue };
        let Some(height) = layer(own) else {
            complaints.push(format!("{file}: module {own} stands in no layer of tests/it/tidy.rs"));
            continue;
        };
        for other in imports(&text) {
            let allowed = other == own
                || layer(&other).is_none_or(|below| below < height)
                || EXCEPTIONS.iter().any(|(from, to, _)| *from == own && *to == other);
            if !allowed {
                complaints.push(format!("{file}: {own} may not import {other}"));
            }
        }
    }
    report(&complaints);
}

#[test]
fn libraries_stay_in_their_folders() {
    let homes: [(&str, &[&str]); 5] = [
        // How long the run is, steps learn from their horizon alone: a longer run goes on from a shorter one.
        (
            "train.steps",
            &[
                "src/train.rs",
                "src/record/prolong.rs",
                "src/report/",
                "src/cli/",
                "src/experiment/",
                "tests/",
                "benches/",
            ],
        ),
        ("burn::", &["src/policy.rs", "src/policy/", "benches/"]),
        ("cubecl::", &["src/policy/", "kernels/"]),
        ("println!", &["src/cli.rs", "src/cli/", "kernels/", "tests/", "benches/"]),
        ("Instant::now", &["src/record/timings.rs", "kernels/", "tests/", "benches/"]),
    ];
    let mut complaints = Vec::new();
    for (file, text) in sources().into_iter().filter(|(file, _)| file != "tests/it/tidy.rs") {
        for (word, folders) in homes {
            if folders.iter().any(|folder| file.starts_with(folder)) {
                continue;
            }
            for (number, line) in text.lines().enumerate() {
                if !line.trim_start().starts_with("//") && line.contains(word) {
                    complaints.push(format!("{file}:{}: {word} belongs in {}", number + 1, folders.join(", ")));
                }
            }
        }
    }
    report(&complaints);
}

/// What the system's libm computes, or the compiler in its stead, may differ from one machine to the next: `libm::exp`
/// and the like are the same everywhere. Pages are for people, and a GPU promises nothing.
#[test]
fn numbers_do_not_depend_on_the_system() {
    let functions = [
        "exp", "exp2", "exp_m1", "ln", "ln_1p", "log2", "log10", "powf", "powi", "sin", "cos", "sin_cos", "tan",
        "tanh", "sinh", "cosh", "asin", "acos", "atan", "atan2", "cbrt", "hypot",
    ];
    let mut complaints = Vec::new();
    for (file, text) in
        sources().into_iter().filter(|(file, _)| file.starts_with("src/") || file.starts_with("kernels/"))
    {
        let ends = ["#[cfg(test)]\nmod tests", "pub mod cube {"].map(|end| text.find(end).unwrap_or(text.len()));
        let rest = &text[..ends[0].min(ends[1])];
        for (number, line) in rest.lines().enumerate().filter(|_| !file.starts_with("src/report/")) {
            for name in functions.iter().filter(|name| line.contains(&format!(".{name}("))) {
                complaints.push(format!("{file}:{}: {name} of the system; take it from `libm`", number + 1));
            }
        }
    }
    report(&complaints);
}

#[test]
fn files_and_functions_are_short() {
    let mut complaints = Vec::new();
    for (file, text) in sources() {
        let lines: Vec<&str> = text.lines().collect();
        if lines.len() > 600 {
            complaints.push(format!("{file}: {} lines, at most 600", lines.len()));
        }
        for (start, line) in lines.iter().enumerate() {
            if line.chars().count() > 120 {
                complaints.push(format!("{file}:{}: {} columns, at most 120", start + 1, line.chars().count()));
            }
            if let Some(length) = function_length(&lines[start..]).filter(|length| *length > 70) {
                complaints.push(format!("{file}:{}: a function of {length} lines, at most 70", start + 1));
            }
        }
    }
    report(&complaints);
}

/// Lines of the function that starts on the first line, by rustfmt's indentation.
fn function_length(lines: &[&str]) -> Option<usize> {
    let line = lines[0];
    let indent = line.len() - line.trim_start().len();
    let words = ["pub", "pub(crate)", "pub(super)", "const", "unsafe", "async"];
    let mut code = line.trim_start();
    while let Some(rest) = words.iter().find_map(|word| code.strip_prefix(word)?.strip_prefix(' ')) {
        code = rest;
    }
    code.starts_with("fn ").then_some(())?;
    let body = lines.iter().find(|line| [';', '{', '}'].iter().any(|end| line.ends_with(*end)))?;
    body.ends_with('{').then_some(())?;
    let close = format!("{}}}", " ".repeat(indent));
    lines.iter().position(|line| *line == close).map(|end| end + 1)
}

#[test]
fn nothing_is_left_for_later() {
    let words = ["TODO", "FIXME", "XXX", "todo!(", "unimplemented!("];
    let mut complaints = Vec::new();
    for (file, text) in sources().into_iter().filter(|(file, _)| file != "tests/it/tidy.rs") {
        for (number, line) in text.lines().enumerate() {
            if words.iter().any(|word| line.contains(word)) {
                complaints.push(format!("{file}:{}: {}", number + 1, line.trim()));
            }
        }
    }
    report(&complaints);
}

#[test]
fn every_test_file_is_declared() {
    let forgotten: Vec<String> = files("tests/it", "rs")
        .iter()
        .filter(|path| {
            let name = path.file_stem().unwrap().to_str().unwrap();
            let folder = path.parent().unwrap();
            let parent = if folder.ends_with("it") { folder.join("main.rs") } else { folder.with_extension("rs") };
            name != "main" && !fs::read_to_string(parent).unwrap().contains(&format!("mod {name};"))
        })
        .map(|path| path.display().to_string())
        .collect();
    report(&forgotten);
}

/// A golden that no test names is never compared.
#[test]
fn every_golden_is_named_by_a_test() {
    let tests: String = files("tests", "rs").iter().map(|path| fs::read_to_string(path).unwrap()).collect();
    let orphans: Vec<String> = files("golden", "snap")
        .iter()
        .filter(|path| {
            let stem = path.file_stem().unwrap().to_str().unwrap();
            let folder = path.parent().unwrap().file_name().unwrap().to_str().unwrap();
            !tests.contains(&format!("\"{stem}\""))
                && !tests.contains(&format!("golden(\"{folder}\", &"))
                && !tests.contains(&format!("golden(\"{folder}\", name"))
        })
        .map(|path| path.display().to_string())
        .collect();
    report(&orphans);
}

#[test]
fn layers_name_existing_modules() {
    let missing: Vec<String> = files("src", "rs")
        .iter()
        .filter_map(|path| module(path.strip_prefix(root()).unwrap().to_str().unwrap()).map(str::to_owned))
        .filter(|name| !["lib", "main"].contains(&name.as_str()) && layer(name).is_none())
        .collect();
    report(&missing);
    assert!(Path::new(&root()).join("src/lib.rs").is_file());
}
