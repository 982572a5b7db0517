//! Reports: what a page holds is what was recorded, whatever a model wrote.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use serde_json::Value;
use starpo::experiment::{Outside, from_lock};
use starpo::record::{Disk, RunDir, reader};
use starpo::replay::{Rules, replay};
use starpo::report::{self, episodes, outcomes, recorded::Recorded};
use starpo::sweep::{Record, SweepResult};

use crate::golden;
use crate::run::{SMALL, attempt, latest, resolve};

/// A finished run of five steps, and the folder that holds it.
fn recorded(overrides: &[&str]) -> (tempfile::TempDir, PathBuf) {
    let resolved = resolve("bandit", &[&SMALL[..], overrides].concat());
    let runs = tempfile::tempdir().unwrap();
    attempt(&Disk::default(), runs.path(), &resolved).unwrap();
    let path = runs.path().join(resolved.id().to_string());
    (runs, path)
}

fn page(run: &Path) -> String {
    report::run(&Disk::default(), run, None).unwrap()
}

fn unpacked(text: &str) -> String {
    let bytes = base64::engine::general_purpose::STANDARD.decode(text).unwrap();
    String::from_utf8(miniz_oxide::inflate::decompress_to_vec(&bytes).unwrap()).unwrap()
}

/// The records and the credit in a page, by step and group.
fn packs(page: &str) -> BTreeMap<(usize, usize), (String, Value)> {
    let pack = |element: &str| {
        let (name, rest) = element.split_once("\" data-credit=\"")?;
        let (credit, rest) = rest.split_once("\">")?;
        let (step, group) = name.split_once('-')?;
        let records = unpacked(rest.split_once("</script>")?.0);
        let credit = serde_json::from_str(&unpacked(credit)).unwrap();
        Some(((step.parse().unwrap(), group.parse().unwrap()), (records, credit)))
    };
    page.split("id=\"pack-").skip(1).filter_map(pack).collect()
}

/// What a step's file says, compressed or not.
fn text(run: &Path, step: usize) -> String {
    reader::episodes(&Disk::default(), &file(run, step)).unwrap()
}

fn file(run: &Path, step: usize) -> PathBuf {
    run.join(format!("rollouts/step-{step:06}.jsonl.zst"))
}

#[test]
fn a_page_holds_the_records_byte_for_byte_and_what_replay_makes_of_them() {
    let (_runs, run) = recorded(&["filter=top-p"]);
    let packs = packs(&page(&run));
    assert_eq!(packs.len(), 5 * 6);
    let resolved = resolve("bandit", &[&SMALL[..], &["filter=top-p"]].concat());
    for step in 1..=5 {
        let written = text(&run, step);
        let held: String = (0..6).map(|group| packs[&(step, group)].0.as_str()).collect();
        assert_eq!(held, written, "step {step}");
        let replayed: Value =
            serde_json::from_str(&replay(&written, &Rules::of(&resolved.config)).unwrap().json()).unwrap();
        for group in 0..6 {
            let credit = &packs[&(step, group)].1;
            assert_eq!(credit["group"], replayed["groups"][group]);
            let rows = replayed["rows"].as_array().unwrap().iter().filter(|row| row["group"] == group);
            assert!(rows.eq(credit["rows"].as_array().unwrap()), "step {step}, group {group}");
        }
    }
}

/// Ends elements, comments and strings, hides, turns around, and is large.
const HOSTILE: [&str; 6] = [
    "</script><script>document.title = 'taken'</script>",
    "<!-- --><img src=x onerror=\"document.title='taken'\">",
    "\u{202e}desrever\u{2066} \u{0} \u{1b}[31m \u{7f} \u{2028} \u{feff}",
    "\"'`${document.title = 'taken'}\\u003c{{ frame }}{% raw %}",
    "&lt;b&gt; <|im_end|> <think></think></answer>",
    "𝔘𝔫𝔦 e\u{301}\u{301}\u{301} ﷽",
];

#[test]
fn what_models_write_stays_text() {
    let (_runs, run) = recorded(&[]);
    let clean = page(&run);
    let large = "a<b".repeat(100_000);
    let mut lines = String::new();
    for (number, line) in text(&run, 2).lines().enumerate() {
        let mut record: Value = serde_json::from_str(line).unwrap();
        let hostile = HOSTILE.get(number).copied().unwrap_or(if number == 6 { &large } else { "plain" });
        let turn = &mut record["turns"][0];
        for field in ["observation", "anchor", "text"] {
            turn[field] = hostile.into();
        }
        turn["actions"] = Value::from(vec![hostile]);
        turn["executed"] = Value::from(vec![hostile]);
        lines.push_str(&format!("{record}\n"));
    }
    fs::write(file(&run, 2), &lines).unwrap();
    let page = page(&run);
    let held: String = (0..6).map(|group| packs(&page)[&(2, group)].0.clone()).collect();
    assert_eq!(held, lines);
    let elements = |page: &str| page.matches("<script").count();
    assert_eq!(elements(&page), elements(&clean));
    for text in HOSTILE {
        assert!(!page.contains(text), "{text:?}");
    }
    assert!(page.len() < 1_000_000, "{} bytes", page.len());
}

#[test]
fn a_long_record_gives_whole_groups_of_spaced_steps_with_both_ends() {
    let (_runs, run) = recorded(&["steps=20"]);
    let read = Recorded::read(&Disk::default(), &run).unwrap();
    let all = episodes::episodes(&read, usize::MAX).unwrap();
    assert_eq!((all.steps, all.entries.len()), (20, 20 * 6 * 8));
    let columns: Vec<usize> = outcomes::outcomes(&read, 4 * 6).unwrap().iter().map(|outcome| outcome.step).collect();
    assert_eq!(columns, [1, 7, 13, 20]);
    let size = |packs: &[episodes::Pack]| packs.iter().map(|p| p.records.len() + p.credit.len()).sum::<usize>();
    let budget = size(&all.packs) / 8;
    let some = episodes::episodes(&read, budget).unwrap();
    assert!(size(&some.packs) <= budget && (4..20).contains(&some.steps), "{} steps", some.steps);
    let steps: Vec<usize> = some.packs.iter().map(|pack| pack.step).collect();
    assert!(steps.is_sorted() && steps.first() == Some(&1) && steps.last() == Some(&20), "{steps:?}");
    for pack in &some.packs {
        let whole = all.packs.iter().find(|other| (other.step, other.group) == (pack.step, pack.group)).unwrap();
        assert_eq!(pack.records, whole.records);
    }
}

/// What records cannot tell is said, not guessed.
#[test]
fn a_refilled_run_has_no_verdicts_and_says_why() {
    let (_runs, run) = recorded(&["filter=top-p", "filter.empty=refill"]);
    let page = page(&run);
    assert!(page.contains("Not known from records: filter.empty &quot;refill&quot;"));
    assert!(
        packs(&page)
            .values()
            .all(|(_, credit)| credit["group"].is_null() && credit["rows"] == Value::from(vec![""; 0]))
    );
}

/// Of equal values the first is the highest, and what the experiment says of itself stands at the top.
#[test]
fn ties_and_the_note_are_told() {
    let (_runs, run) = recorded(&[]);
    let metrics = run.join("metrics.jsonl");
    let mut lines: Vec<Value> =
        fs::read_to_string(&metrics).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    for line in &mut lines[1..] {
        let top = line["step"] == 2 || line["step"] == 4;
        line["rollout"]["entropy"] = Value::from(if top { 7.5 } else { 7.0 });
    }
    fs::write(&metrics, lines.iter().map(|line| format!("{line}\n")).collect::<String>()).unwrap();
    let lock = run.join("run.lock.kdl");
    let text = fs::read_to_string(&lock).unwrap();
    fs::write(&lock, text.replacen("    key ", "    note \"to see <what> happens\"\n    key ", 1)).unwrap();
    let text = outline(&page(&run));
    assert!(text.contains("| entropy | 7 | 7 | 7.5 at step 2, the first of 2 |"), "{text}");
    assert!(text.contains("to see <what> happens"), "{text}");
}

#[test]
fn two_runs_show_what_they_differ_in() {
    let (_runs, a) = recorded(&[]);
    let (_others, b) = recorded(&["seed=2"]);
    let page = report::run(&Disk::default(), &a, Some(&b)).unwrap();
    let lines = outline(&page);
    let lines: Vec<&str> = lines.lines().skip_while(|line| !line.starts_with("## Difference")).take(3).collect();
    assert_eq!(lines[2], "| seed | u64 1 | u64 2 |", "{lines:?}");
}

/// The page as a reader meets it: headings, paragraphs, tables, what figures say. Without the config and the script.
#[test]
fn a_page_reads_as_a_document() {
    let (_runs, run) = recorded(&["filter=top-p"]);
    let name = run.file_name().unwrap().to_str().unwrap();
    let timing =
        |step: usize| format!("{{\"step\":{step},\"seconds\":1.5,\"phases\":{{\"rollout\":1.0,\"update\":0.5}}}}\n");
    fs::write(run.join("timings.jsonl"), (0..=5).map(timing).collect::<String>()).unwrap();
    fs::write(run.join("attempts/0001.kdl"), "attempt 1\ncommand \"starpo run <bandit>\"\nthreads 2\n").unwrap();
    golden("report", "bandit", &without_keys(&outline(&page(&run)).replace(name, "bandit-…")));
}

const SWEEP: &str = "sweep \"small\" {
    experiment \"bandit\"
    grid { seed \"1..=2\" }
    case \"none\" { filter \"none\" }
    case \"top-p\" { filter \"top-p\" { value 0.5 } }
    baseline \"none\"
    noise \"again\" shift=50
    report \"eval.success\" \"rollout.reward\"
}
";

#[test]
fn a_sweep_reads_as_a_document() {
    let project = tempfile::tempdir().unwrap();
    let (disk, folder, runs) =
        (Disk::default(), project.path().join("experiments/sweeps"), project.path().join("runs"));
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("small.kdl"), SWEEP).unwrap();
    let record = Record::make(&disk, &runs, "small", &latest(&SMALL), &Outside::new(project.path())).unwrap().unwrap();
    for cell in &record.cells.cells {
        let lock = RunDir::open(&disk, &runs.join(&cell.run)).lock().unwrap();
        attempt(&disk, &runs, &from_lock(&lock).unwrap()).unwrap();
    }
    let result = SweepResult::read(&disk, &runs, &record, &[], 0.05).unwrap();
    let mut text = outline(&report::sweep::page(&disk, &result).unwrap()).replace(&record.name(), "small-…");
    for cell in &record.cells.cells {
        text = text.replace(&cell.run, &format!("bandit-{}-{}", cell.case, cell.seed));
    }
    golden("report", "sweep", &without_keys(&text));
}

/// The highest mean is that of arms on the same tasks.
#[test]
fn arms_on_other_tasks_are_no_rivals() {
    let project = tempfile::tempdir().unwrap();
    let (disk, folder, runs) =
        (Disk::default(), project.path().join("experiments/sweeps"), project.path().join("runs"));
    fs::create_dir_all(&folder).unwrap();
    let bold = |cases: &str| {
        fs::write(folder.join("small.kdl"), format!("sweep \"small\" {{\n experiment \"bandit\"\n{cases}\n}}\n"))
            .unwrap();
        let made = Record::make(&disk, &runs, "small", &latest(&SMALL), &Outside::new(project.path()));
        let record = made.unwrap().unwrap();
        for cell in &record.cells.cells {
            let lock = RunDir::open(&disk, &runs.join(&cell.run)).lock().unwrap();
            attempt(&disk, &runs, &from_lock(&lock).unwrap()).unwrap();
        }
        let metric = ["eval.success".to_owned()];
        let result = SweepResult::read(&disk, &runs, &record, &metric, 0.05).unwrap();
        report::sweep::page(&disk, &result).unwrap().matches("number best").count()
    };
    let same = "case \"a\" { filter \"none\" }\ncase \"b\" { update { epochs 2 } }";
    assert!(bold(same) >= 1);
    assert_eq!(bold("case \"a\" { filter \"none\" }\ncase \"b\" { task \"bandit\" { chance 0.9 } }"), 0);
}

/// Digests move with every new key.
fn without_keys(text: &str) -> String {
    let word = |word: &str| if word.starts_with("blake3:") { "blake3:…".to_owned() } else { word.to_owned() };
    let line = |line: &str| line.split(' ').map(word).collect::<Vec<_>>().join(" ");
    text.lines().map(line).collect::<Vec<_>>().join("\n")
}

/// Elements that an outline leaves out; of a drawing it keeps what it says.
const SKIPPED: [&str; 5] = ["script", "pre", "select", "svg", "details"];
/// What ends a line.
const ENDS: [&str; 11] = ["/h1", "/h2", "/h3", "/p", "/tr", "/div", "/dl", "/nav", "/figure", "/form", "/section"];

/// The text of a page, a line for each heading, paragraph, row and figure.
fn outline(page: &str) -> String {
    let body = page.split_once("<body>").unwrap().1;
    let (mut out, mut line, mut skipped) = (String::new(), String::new(), None);
    for part in body.split('<').skip(1) {
        // A script's own `<` begins no tag.
        let (tag, text) = part.split_once('>').unwrap_or((part, ""));
        let name = tag.split_whitespace().next().unwrap_or_default();
        if skipped.is_some_and(|open| name.strip_prefix('/') == Some(open)) {
            skipped = None;
        } else if skipped.is_none() && SKIPPED.contains(&name) {
            skipped = Some(name);
            let said = tag.split_once("aria-label=\"").filter(|_| name == "svg");
            line.extend(said.map(|(_, rest)| format!("[{}]", rest.split('"').next().unwrap())));
        }
        if skipped.is_some() {
            continue;
        }
        line.push_str(match name {
            "h1" => "# ",
            "h2" => "## ",
            "h3" => "### ",
            "tr" => "|",
            "th" | "td" => " ",
            "/th" | "/td" => " |",
            "/dt" => ": ",
            _ => "",
        });
        if ENDS.contains(&name) {
            let written = line.split_whitespace().collect::<Vec<_>>().join(" ");
            let heading = if written.starts_with('#') { "\n" } else { "" };
            out.push_str(&if written.is_empty() { written } else { format!("{heading}{written}\n") });
            line.clear();
        }
        line.push_str(text);
    }
    let marks = [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&#x27;", "'"), ("&amp;", "&")];
    marks.into_iter().fold(out, |out, (mark, character)| out.replace(mark, character))
}
