//! Sweeps as they are written: axes, cases, and every mistake.

use starpo::config::Diagnostics;
use starpo::experiment::{self, Cells};

use super::{Files, golden, strings};

const HEAD: &str = "experiment \"test\"\n";

fn sweep(name: &str, text: &str, overrides: &[&str]) -> Result<(Cells, Vec<String>), Diagnostics> {
    let document = format!("sweep \"s\" {{\n{text}\n}}\n");
    let files = Files::with(&[
        ("experiments/test.kdl", "experiment \"test\" {\n    extends \"base\"\n    task \"sokoban\"\n}\n"),
        ("experiments/lake.kdl", "experiment \"lake\" {\n    extends \"base\"\n    task \"frozen-lake\"\n}\n"),
        ("experiments/sweeps/s.kdl", &document),
    ]);
    let mut locks = Vec::new();
    let mut visit = |run: experiment::Resolved| {
        locks.push(run.lock());
        Ok::<(), ()>(())
    };
    let cells = experiment::sweep(name, &strings(overrides), &files, &|_| true, &mut |_| Ok(()), &mut visit)?;
    Ok((cells.unwrap(), locks))
}

fn titles(cells: &Cells) -> Vec<String> {
    let title = |cell: &experiment::CellRun| {
        let axes: Vec<String> = cell.axes.iter().map(|(path, text)| format!("{path}={text}")).collect();
        format!("{}|{}|{}", cell.case, axes.join(","), cell.seed)
    };
    cells.cells.iter().map(title).collect()
}

fn file(text: &str, overrides: &[&str]) -> (Vec<String>, Vec<String>) {
    let (cells, locks) = sweep("s", &format!("{HEAD}{text}"), overrides).unwrap();
    (titles(&cells), locks)
}

fn line(words: &[&str]) -> Vec<String> {
    titles(&sweep("test", "", words).unwrap().0)
}

#[test]
fn a_command_line_is_a_sweep() {
    assert_eq!(line(&["seed=1..=3"]), ["||1", "||2", "||3"]);
    assert_eq!(
        line(&["filter=none,top-p", "seed=1,2"]),
        ["|filter=none|1", "|filter=none|2", "|filter=top-p|1", "|filter=top-p|2"]
    );
    let rates = line(&["learning-rate=1e-7..1e-5:log3", "steps=7"]);
    assert_eq!(rates, ["|update.learning-rate=1e-7|1", "|update.learning-rate=1e-6|1", "|update.learning-rate=1e-5|1"]);
}

/// The field says what a comma is: a list is one value, and so is a text.
#[test]
fn a_comma_belongs_to_a_list_and_to_a_text() {
    assert_eq!(line(&["task.size=5,6"]).len(), 1);
    assert_eq!(titles(&sweep("lake", "", &["task.size=5,6"]).unwrap().0), ["|task.size=5|1", "|task.size=6|1"]);
    assert_eq!(line(&["rollout.instruction=Push, then pull."]).len(), 1);
    let (cells, _) = file("grid { task.size \"5,5\" \"6,6\"; \"rollout.think\" #true #false }", &[]);
    assert_eq!(cells[0], "|task.size=5,5,rollout.think=true|1");
    assert_eq!(cells.len(), 4);
}

#[test]
fn cases_nest_and_cross_with_axes() {
    let cases = "grid { seed 1 2 }
case \"none\" { filter \"none\" }
case \"top-p\" {
    filter \"top-p\"
    grid { rollout.groups 4 6 }
    case \"0.9\" { filter { value 0.9 } }
    case \"many\" { grid { filter.value 0.1 0.5; seed 9 } }
}
exclude { case \"top-p\"; rollout.groups 6; seed 2 }
baseline \"none\"
noise \"again\" shift=100";
    // An inner axis takes the place of an outer one, whatever either is called.
    let inner = "grid { steps 1 5 }\ncase \"a\" { grid { train.steps 2 } }\ncase \"b\" {}";
    assert_eq!(file(inner, &[]).0, ["a||1", "b|train.steps=1|1", "b|train.steps=5|1"]);
    let (cells, locks) = file(cases, &[]);
    golden("config", "sweep-cells", &cells.join("\n"));
    assert_eq!(locks.len(), cells.len());
    let (cells, _) = file(cases, &["seed=3,4", "steps=7"]);
    assert_eq!(cells.iter().filter(|cell| cell.starts_with("none|")).count(), 2, "{cells:?}");
    assert!(cells.contains(&"again||103".to_owned()) && cells.contains(&"again||104".to_owned()), "{cells:?}");
}

#[test]
fn excludes_are_read_as_axes_are() {
    let (cells, _) = file("grid { seed \"1..=5\" }\nexclude { seed \"2..=3\" 5 }", &[]);
    assert_eq!(cells, ["||1", "||4"]);
    // An axis of one value, and one that the command line gives instead.
    let text = "grid { seed 1 2; rollout.groups 4 }\nexclude { seed 2; rollout.groups 4 }";
    assert_eq!(file(text, &[]).0, ["||1"]);
    assert_eq!(file(text, &["seed=7,8"]).0, ["||7", "||8"]);
}

#[test]
fn equal_cells_are_one_run_and_origins_are_kept() {
    let same = "case \"a\" { filter \"none\" }\ncase \"b\" { rollout { groups 8 } }";
    let (cells, locks) = file(same, &["seed=5"]);
    assert_eq!((cells.len(), locks.len()), (2, 1));
    assert!(locks[0].contains("override \"seed=5\"") && locks[0].contains("// override 1"), "{}", locks[0]);
    let (_, locks) = file("grid { seed 7 }\ncase \"a\" { train { steps 3 } }", &[]);
    assert!(locks[0].contains("// experiments/sweeps/s.kdl:3"), "{}", locks[0]);
}

#[test]
fn a_case_may_be_a_recipe() {
    let (cells, locks) = file("case \"dapo\" { use \"algorithm/dapo\" }\ncase \"plain\" {}", &[]);
    assert_eq!((cells.len(), locks.len()), (2, 2));
    assert!(locks[0].contains("configs/algorithm/dapo.kdl"), "{}", locks[0]);
}

#[track_caller]
fn shows(name: &str, text: &str, overrides: &[&str]) {
    let errors = sweep("s", text, overrides).map(|(cells, _)| titles(&cells)).unwrap_err();
    golden("error", name, &errors.render(false));
}

#[test]
fn mistakes() {
    let grammar = "experiment \"tset\"
grid { seed; filter \"none\" { x } }
cases { case \"a\" }
case \"a\" { extends \"base\" }
case \"a\" {}
exclude { }
baseline \"b\"
baseline \"a\"
noise \"a\" shift=0
report 3";
    shows("sweep-grammar", grammar, &[]);
    let parts = "experiment \"test\"\ncase \"a\" {}\ncase \"b\" {}\nbaseline \"c\"\nexclude { case \"d\" }
noise \"a\" shift=1";
    shows("sweep-parts", parts, &[]);
    let noise = "grid { seed 1 2 }\ncase \"a\" {}\nbaseline \"a\"\nnoise \"b\" shift=1";
    shows("sweep-noise", &format!("{HEAD}{noise}"), &[]);
    shows("sweep-axis-and-case", &format!("{HEAD}grid {{ seed 1 2 }}\ncase \"a\" {{ seed 3 }}"), &[]);
    shows("sweep-no-axis", &format!("{HEAD}grid {{ seed 1 2 }}\nexclude {{ sede 1 }}"), &[]);
    let cases = "grid { seed 1 2 3 }\ncase \"a\" {}\ncase \"b\" { grid { seed 4 } }";
    shows("sweep-no-value", &format!("{HEAD}{cases}\nexclude {{ seed 2 \"4..=6\" }}"), &[]);
    shows("sweep-metric", &format!("{HEAD}report \"eval.success\" \"evla.success\""), &[]);
    shows("sweep-command", "experiment \"test\"", &["seed=1,2", "@mine.kdl", "stop+=rule"]);
    shows("sweep-exclude-twice", &format!("{HEAD}{cases}\nexclude {{ case \"a\"; seed 1; case \"b\"; seed 2 }}"), &[]);
    let outer = "case \"a\" {}\ncase \"b\" { train { steps 1 } }\nexclude { case \"a\" }\nbaseline \"a\"";
    shows("sweep-no-baseline", &format!("{HEAD}{outer}"), &[]);
    let alike = "case \"a b\" {}\ncase \"a\" { case \"b\" {} }\ncase \"b, steps=1\" {}\ncase \"\" {}
baseline \"a b\"\nnoise \"c, seed=1\" shift=9";
    shows("sweep-alike", &format!("{HEAD}{alike}"), &[]);
    let ignored = "experiment (ref)\"test\" { train { steps 5 } }
(local)grid { seed 1 }
(unset)case (ref)\"a\" { filter \"none\" }
baseline \"a\" { bogus 3 }
noise (file)\"b\" shift=(ref)7
case \"c\" { (local)grid { seed 5 } }
report \"eval.success\" { bogus 3 }
exclude { (local)case \"a\" { bogus 3 }; seed 1 }
note 3";
    shows("sweep-ignored", ignored, &[]);
    let twice = "experiment \"test\"
grid { steps 1 5; train.steps 2 3; SEED 1 }
case \"a\" { grid { update.epochs 1; epochs 2 }; case \"b\" { grid { epochs 3; seed 2 } } }
exclude { seed 1; Seed 2 }
exclude { steps 1; train.steps 2 }
report a=\"eval.success\"";
    shows("sweep-grammar-twice", &twice.replace("exclude { seed 1; Seed 2 }\n", "").replace("a=", ""), &[]);
    shows("sweep-grammar-names", twice, &[]);
    let refers = format!("{HEAD}grid {{ eval.every 5 \"(ref)train.steps\" }}\nexclude {{ eval.every 5 }}");
    shows("sweep-excluded-reference", &refers, &[]);
    shows("sweep-excluded", &format!("{HEAD}grid {{ seed 1 2 }}\nexclude {{ seed 1 2 }}"), &[]);
}

/// Unknown names, empty ranges and cells that cannot be: one listing, and no run is made.
#[test]
fn all_bad_cells_are_told_at_once() {
    let text = "grid { filter.value 0.5 2; \"update.learning-rate\" \"1e-5..1e-7:log0\" }
case \"top-p\" { filter \"top-p\" }
case \"none\" { filter \"none\" }
case \"typo\" { filter \"topp\" }
case \"lone\" { filter \"top-p\"; rollout { group-size 1 } }";
    shows("sweep-cells", &format!("{HEAD}{text}"), &["seed=5..5", "steps=1,x", "sede=1,2"]);
    shows("sweep-unknown", "experiment \"test\"", &["learning-rate=0.1..0.3", "groups=1..=3:log2"]);
}

/// Documents are parsed once and laid once a case; a cell costs its own values. Generous, for a machine under load.
#[test]
#[expect(clippy::disallowed_methods, reason = "it is about time")]
fn hundreds_of_cells_resolve_quickly() {
    let start = std::time::Instant::now();
    assert_eq!(line(&["seed=1..=300"]).len(), 300);
    let seconds = start.elapsed().as_secs_f64();
    assert!(seconds < 20.0, "{seconds}");
}
