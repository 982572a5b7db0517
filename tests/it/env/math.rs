//! Math: answers, attempts, splits of a file, and the golden transcript.

use std::collections::BTreeSet;
use std::fmt::Write;

use starpo::env::math::{File, Generated, Math, Problems, QuestionsConfig};
use starpo::env::{EnvConfig, Environment, Outcome};
use starpo::trajectory::Split;

use super::{by_expert, by_script, dynamics};
use crate::golden;

fn generated(operations: usize) -> Math {
    Math { questions: QuestionsConfig::Generated(Generated { operations }), attempts: 3 }
}

fn from(lines: &str) -> Math {
    Math { questions: QuestionsConfig::File(File { path: Problems::read(lines) }), attempts: 3 }
}

/// So many questions of GSM8K's columns.
fn gsm8k(count: usize) -> String {
    let line =
        |n: usize| format!(r#"{{"question": "What is {n} plus 1?", "answer": "{n} + 1 = {0}\n#### {0}"}}"#, n + 1);
    (0..count).map(|n| line(n) + "\n").collect()
}

pub(super) fn examples() -> Vec<EnvConfig> {
    vec![EnvConfig::Math(generated(2)), EnvConfig::Math(Math { attempts: 1, ..from(&gsm8k(80)) })]
}

#[test]
fn the_right_answer_pays_half_as_much_after_each_wrong_one() {
    let play = |answers: &[&str]| {
        let mut episode = from(&gsm8k(60)).start(Split::Train, 0, dynamics(0));
        let right = episode.expert(1).unwrap().actions.remove(0);
        let said = |answer: &&str| episode.understand(&answer.replace('?', &right)).unwrap();
        let said: Vec<String> = answers.iter().map(said).collect();
        let steps: Vec<_> = said.iter().map(|answer| episode.act(answer)).collect();
        (steps.iter().map(|step| step.reward).sum::<f64>(), steps.last().unwrap().outcome)
    };
    assert_eq!(play(&["?"]), (1.0, Some(Outcome::Solved)));
    assert_eq!(play(&["$?.00."]), (1.0, Some(Outcome::Solved)));
    assert_eq!(play(&["x", "-5", "\\boxed{?}"]), (0.25, Some(Outcome::Solved)));
    assert_eq!(play(&["x", "x"]), (0.0, None));
    assert_eq!(play(&["x", "x", "x"]), (0.0, Some(Outcome::Failed)));
}

/// A file's questions are in one split each, whatever their order, case, blanks and repetition; rewordings of one
/// original question stay together.
#[test]
fn no_question_of_a_file_is_in_both_splits() {
    let reworded = |n: usize, way: usize| {
        let (query, response) =
            (format!("Way {way}: add 1 to  {n}."), format!("It is {0}.\\nThe answer is: {0}", n + 1));
        format!(r#"{{"query": "{query}", "original_question": "{n} plus 1?", "response": "{response}"}}"#)
    };
    let mut lines: Vec<String> = gsm8k(100).lines().map(String::from).collect();
    lines.extend((0..100).flat_map(|n| [reworded(n, 1), reworded(n, 2)]));
    lines.extend(gsm8k(100).lines().map(|line| line.replace("What is", "WHAT  IS")));
    // The same words as a rewording of another original: training's, so no longer held out.
    lines.extend((0..100).map(|n| reworded(n, 1).replace("plus 1?", "and one?")));
    let split = |lines: &[String]| {
        let env = from(&lines.join("\n"));
        assert_eq!(env.feasible(), Ok(()));
        let all = |split| (0..600).map(|index| env.identity(split, index)).collect::<BTreeSet<_>>();
        (all(Split::Train), all(Split::Eval))
    };
    let (train, eval) = split(&lines);
    assert!(train.is_disjoint(&eval) && eval.len() > 10, "{} {}", train.len(), eval.len());
    let original = |text: &String| text.strip_prefix("way 1: ").or(text.strip_prefix("way 2: ")).map(str::to_owned);
    let held_out: BTreeSet<String> = eval.iter().filter_map(original).collect();
    let together = |n: &String| ["way 1", "way 2"].iter().filter(|way| eval.contains(&format!("{way}: {n}"))).count();
    assert!(!held_out.is_empty() && held_out.iter().any(|n| together(n) == 2));
    lines.reverse();
    assert_eq!(split(&lines), (train, eval));
}

#[test]
fn math_reads_like_this() {
    let mut out = format!("# Math\n\n{}\n\n", generated(2).instruction());
    by_expert(&mut out, &generated(2), Split::Train, 0);
    by_script(&mut out, &generated(2), Split::Train, 0, &["1"]);
    by_expert(&mut out, &generated(5), Split::Eval, 0);
    writeln!(out, "# A file of GSM8K's columns\n").unwrap();
    by_expert(&mut out, &from(&gsm8k(60)), Split::Eval, 0);
    golden("env", "math", &out);
}
