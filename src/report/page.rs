//! The page: what its templates are given.

use minijinja::Environment;
use serde::Serialize;
use serde_json::Value;

use super::Chapters;
use super::chart::Chart;
use super::curves::{curves, others, phases};
use super::episodes::Pack;
use super::heat::{HeatMap, cells, heat_map};
use super::plane::plane;
use super::recorded::Recorded;
use super::scale::{Unit, written};
use crate::experiment::{Difference, differences};
use crate::record::State;
use crate::record::values::at;

const TEMPLATES: [(&str, &str); 4] = [
    ("page.html", include_str!("page.html")),
    ("figures.html", include_str!("figures.html")),
    ("run.html", include_str!("run.html")),
    ("sweep.html", include_str!("sweep.html")),
];

/// What the page says of itself.
#[derive(Serialize)]
pub(super) struct Frame<'a> {
    title: &'a str,
    style: &'static str,
    script: &'static str,
}

/// A page about a run.
#[derive(Serialize)]
struct RunPage<'a> {
    frame: Frame<'a>,
    experiment: &'a str,
    name: &'a str,
    state: String,
    note: Option<&'a str>,
    lost: Option<&'a str>,
    facts: Vec<(&'static str, String)>,
    overrides: Vec<String>,
    headlines: Vec<Headline>,
    figures: Vec<Figure>,
    more: Vec<Figure>,
    heat: Option<HeatMap>,
    /// Why there are no verdicts and advantages.
    unknown: Option<String>,
    plane: Option<String>,
    packs: &'a [Pack],
    shown: Shown,
    config: Vec<(&'a str, &'a str)>,
    other: Option<&'a str>,
    differences: Vec<Difference>,
    attempts: Vec<Vec<(String, String)>>,
    islands: Vec<(&'static str, String)>,
}

/// A number of the head: where it began, where it stands.
#[derive(Serialize)]
struct Headline {
    name: &'static str,
    first: String,
    last: String,
    best: String,
}

/// A drawn chart.
#[derive(Serialize)]
pub(super) struct Figure {
    title: String,
    about: String,
    svg: String,
}

/// How much of the record is in the page.
#[derive(Serialize)]
struct Shown {
    episodes: usize,
    steps: usize,
    recorded: usize,
    /// Groups of each step that are left out, at most.
    groups_left_out: bool,
}

/// The page about a run.
pub(super) fn run(chapters: &Chapters<'_>) -> String {
    let (run, summary) = (chapters.run, &chapters.run.summary);
    let mut charts = curves(&chapters.arms);
    charts.extend(phases(&run.timings));
    let more = others(&run.metrics);
    let readouts: Vec<_> = charts.iter().chain(&more).map(Chart::readouts).collect();
    let config = run.resolved.as_ref().ok().map(|resolved| &resolved.config);
    let score = config.and_then(|config| config.filter.score()).map_or("reward-std", |score| score.name());
    let page = RunPage {
        frame: Frame::new(&summary.name),
        experiment: &summary.experiment,
        name: &summary.name,
        state: state(&summary.state),
        note: run.resolved.as_ref().ok().and_then(|resolved| resolved.note.as_deref()),
        lost: run.lost.as_deref(),
        facts: facts(run),
        overrides: run.locked("override"),
        headlines: headlines(&run.metrics),
        figures: figures(&charts, 0),
        more: figures(&more, charts.len()),
        heat: heat_map(&chapters.outcomes, score),
        unknown: run.replayable().err(),
        plane: config.and_then(|config| plane(&run.metrics, &config.collapse)),
        packs: &chapters.episodes.packs,
        shown: shown(chapters),
        config: run.config(),
        other: chapters.other.map(|other| other.summary.name.as_str()),
        differences: chapters.other.map_or_else(Vec::new, |other| differences(&run.canon, &other.canon)),
        attempts: run.attempts.clone(),
        islands: vec![
            ("charts", island(&readouts)),
            ("outcomes", island(&cells(&chapters.outcomes))),
            ("episodes", island(&chapters.episodes.entries)),
            ("vocabulary", island(&chapters.episodes.vocabulary)),
        ],
    };
    render("run.html", &page)
}

impl<'a> Frame<'a> {
    pub(super) fn new(title: &'a str) -> Self {
        Self { title, style: include_str!("style.css"), script: include_str!("script.js") }
    }
}

/// # Panics
/// If a template and what it is given do not fit, which a test of each page would show.
pub(super) fn render(template: &str, page: &impl Serialize) -> String {
    let mut environment = Environment::new();
    environment.set_trim_blocks(true);
    environment.set_lstrip_blocks(true);
    for (name, text) in TEMPLATES {
        environment.add_template(name, text).expect("the templates are sound");
    }
    let template = environment.get_template(template).expect("it is among them");
    template.render(page).expect("it is given what it names")
}

/// JSON within a script element, which no text in it can end.
pub(super) fn island(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default().replace('<', "\\u003c")
}

pub(super) fn figures(charts: &[Chart], from: usize) -> Vec<Figure> {
    let figure = |(number, chart): (usize, &Chart)| Figure {
        title: chart.title.clone(),
        about: chart.about.clone(),
        svg: chart.svg(from + number),
    };
    charts.iter().enumerate().map(figure).collect()
}

pub(super) fn state(state: &State) -> String {
    match state {
        State::Failed(reason) => format!("failed: {reason}"),
        state => state.name().to_owned(),
    }
}

fn facts(run: &Recorded) -> Vec<(&'static str, String)> {
    let mut facts = Vec::new();
    let planned = run.resolved.as_ref().map(|resolved| resolved.config.train.steps);
    let step = run.summary.step;
    facts.push(("steps", planned.map_or_else(|_| step.to_string(), |planned| format!("{step} of {planned}"))));
    let result = run.result.as_ref();
    facts.extend(result.and_then(|result| Some(("stopped", result.stop.clone()?))));
    facts.extend(result.and_then(|result| Some(("best step", result.best?.to_string()))));
    let seconds: f64 = run.timings.iter().filter_map(|line| at(line, "seconds")).sum();
    facts.push(("time", crate::record::timings::duration(seconds)));
    facts.extend(result.map(|result| ("digest", result.digest.clone())));
    facts.extend(run.locked("key").pop().map(|key| ("key", key)));
    facts
}

fn headlines(metrics: &[Value]) -> Vec<Headline> {
    let numbers = [
        ("held-out success", "eval.success", Unit::Share),
        ("held-out success, greedy", "eval.greedy.success", Unit::Share),
        ("training success", "rollout.success", Unit::Share),
        ("training reward", "rollout.reward", Unit::Plain),
        ("valid answers", "rollout.valid", Unit::Share),
        ("entropy", "rollout.entropy", Unit::Plain),
        ("mutual information", "collapse.first_turn.mi", Unit::Plain),
        ("groups kept", "filter.kept_share", Unit::Share),
    ];
    let headline = |(name, path, unit): (&'static str, &str, Unit)| {
        let error = |line: &Value| at(line, &format!("{path}_error"));
        let told = |line: &Value| {
            let error = error(line).map_or_else(String::new, |error| format!(" ± {:.1}", 100.0 * error));
            at(line, path).map(|value| written(value, unit) + &error)
        };
        let having: Vec<&Value> = metrics.iter().filter(|line| at(line, path).is_some()).collect();
        let most = having.iter().filter_map(|line| at(line, path)).max_by(f64::total_cmp)?;
        let bests: Vec<&&Value> = having.iter().filter(|line| at(line, path) == Some(most)).collect();
        let best = bests.first()?;
        let of = if bests.len() > 1 { format!(", the first of {}", bests.len()) } else { String::new() };
        Some(Headline {
            name,
            first: told(having.first()?)?,
            last: told(having.last()?)?,
            best: format!("{} at step {}{of}", told(best)?, best["step"]),
        })
    };
    numbers.into_iter().filter_map(headline).collect()
}

fn shown(chapters: &Chapters<'_>) -> Shown {
    let (episodes, steps) = (&chapters.episodes, &chapters.run.rollouts);
    let held = |step: usize| episodes.packs.iter().filter(|pack| pack.step == step).count();
    let short = |outcome: &&super::Outcome| (1..outcome.groups.len()).contains(&held(outcome.step));
    Shown {
        episodes: episodes.entries.len(),
        steps: episodes.steps,
        recorded: steps.len(),
        groups_left_out: chapters.outcomes.iter().any(|outcome| short(&outcome)),
    }
}
