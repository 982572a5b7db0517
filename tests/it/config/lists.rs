//! Lists, overlays and cuts: what the command line lays over documents.

use starpo::config::Diagnostics;
use starpo::experiment::{self, Resolved};

use super::{Files, body, sokoban, strings};

/// An experiment with one early stop, and two overlays beside it.
fn overlaid(overrides: &[&str]) -> Result<Resolved, Diagnostics> {
    let test = "experiment \"test\" {\n    extends \"base\"\n    task \"sokoban\" { boxes 2 }\n    \
                stop \"spread-collapse\"\n    gradients { every 5; buckets \"edges\" { edges 1.0 2.0 } }\n}\n";
    let files = Files::with(&[
        ("experiments/test.kdl", test),
        ("short.kdl", "train { steps 7 }\n(append)stop \"validation-floor\"\n"),
        ("top.kdl", "use \"algorithm/dapo\"\nfilter \"top-p\" { value 0.4 }\n"),
        ("none.kdl", "(unset)stop\n"),
    ]);
    experiment::resolve_with("test", &strings(overrides), &files)
}

fn stops(run: &Resolved) -> Vec<&'static str> {
    run.config.stop.iter().map(|stop| stop.name()).collect()
}

fn edges(run: &Resolved) -> serde_json::Value {
    run.show_json()["values"]["gradients.buckets.edges"]["value"].clone()
}

#[test]
fn a_list_is_given_whole_or_added_to() {
    let run = |overrides: &[&str]| overlaid(overrides).unwrap();
    assert_eq!(stops(&run(&["stop="])), Vec::<&str>::new());
    assert_eq!(stops(&run(&["stop=validation-floor"])), ["validation-floor"]);
    assert_eq!(stops(&run(&["stop+=validation-floor"])), ["spread-collapse", "validation-floor"]);
    // Given first, then added to, whatever their order; an added node has fields at once.
    let both = run(&[
        "stop.1.below=0.5",
        "stop+=validation-floor,rule",
        "stop=rule",
        "stop.2.when=update.kl",
        "stop.2.above=1",
        "stop.0.when=eval.success",
        "stop.0.below=0.1",
    ]);
    assert_eq!(stops(&both), ["rule", "validation-floor", "rule"]);
    assert_eq!(both.show_json()["values"]["stop.1.below"]["value"], 0.5);
    // A node keeps the fields of the one in its place, if it has its name.
    let tasks = run(&["task=sokoban,frozen-lake", "task.1.size=5"]).show_json();
    assert_eq!(
        (&tasks["values"]["task.0.boxes"]["value"], &tasks["values"]["task.1.size"]["value"]),
        (&2.into(), &5.into())
    );
    assert_eq!(run(&["eval.task=bandit"]).config.eval.task.len(), 1);
    assert_eq!(edges(&run(&["edges+=3,4"])), serde_json::json!([1.0, 2.0, 3.0, 4.0]));
    assert_eq!(edges(&run(&["edges+=4", "edges=3"])), serde_json::json!([3.0, 4.0]));
}

#[test]
fn annotations_add_to_lists_and_empty_them() {
    let run = body("gradients { buckets \"edges\" { (append)edges 6.0 } }", &[]).unwrap();
    assert_eq!(edges(&run), serde_json::json!([1.0, 2.0, 3.0, 4.0, 5.0, 6.0]));
    let run = body("eval { (append)task \"sokoban\"; (append)task \"bandit\" }", &[]).unwrap();
    assert_eq!(run.config.eval.task.len(), 2);
    assert_eq!(stops(&overlaid(&["@none.kdl"]).unwrap()), Vec::<&str>::new());
}

#[test]
fn overlays_stand_where_they_are_named() {
    let run = overlaid(&["@short.kdl", "@top.kdl", "train.steps=9"]).unwrap();
    assert_eq!((run.config.train.steps, stops(&run)), (9, vec!["spread-collapse", "validation-floor"]));
    let values = run.show_json();
    assert_eq!(values["values"]["filter.value"]["origin"], "top.kdl:2");
    assert_eq!(values["values"]["objective.clip.high"]["origin"], "configs/algorithm/dapo.kdl:13");
    // Variants come first: a field of what a later overlay chooses.
    let run = overlaid(&["filter.keep=smallest", "@top.kdl"]).unwrap();
    assert_eq!(run.show_json()["values"]["filter.keep"]["value"], "smallest");
    // What a later overlay would hide is said.
    for hidden in ["filter.value=0.5", "filter=top-k"] {
        let error = overlaid(&[hidden, "@top.kdl"]).unwrap_err();
        assert_eq!(error.iter().map(|one| one.code()).collect::<Vec<_>>(), ["duplicate-key"], "{error}");
    }
}

#[test]
fn a_cut_is_an_overlay() {
    let run = sokoban(&["top_p=0.9", "rollout.sampling.top-k=7", "stop=rule", "stop.when=update.kl", "stop.above=3"]);
    let cut = |path: &str| run.show_path(path).unwrap();
    let kdl = [cut("filter"), cut("sampling.top_k"), cut("stop")].concat();
    let again = Files::with(&[("cut.kdl", &kdl)]);
    let again = experiment::resolve_with("sokoban", &strings(&["@cut.kdl"]), &again).unwrap();
    assert_eq!(again.key, run.key, "{kdl}");
    assert!(cut("task.size").starts_with("task \"sokoban\" {"), "{}", cut("task.size"));
    assert_eq!(run.show_path_json("filter.value").unwrap()["filter.value"]["value"], 0.9);
    assert!(run.show_path("filter.valeu").unwrap_err().to_string().contains("did you mean `filter.value`"));
}
