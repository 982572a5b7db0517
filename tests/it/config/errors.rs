//! Every mistake as the user sees it.

use starpo::config::Diagnostics;
use starpo::experiment;

use super::{Files, body, document, golden, root, strings};

/// Holds the mistakes against `golden/error/<name>.snap`: all of them are of these kinds, in this order.
#[track_caller]
fn shows<T>(name: &str, codes: &[&str], result: Result<T, Diagnostics>) {
    let Err(errors) = result else { panic!("{name} is no error") };
    assert_eq!(errors.iter().map(|error| error.code()).collect::<Vec<_>>(), codes, "{errors}");
    golden("error", name, &errors.render(false));
}

#[test]
fn keys() {
    shows("unknown-key", &["unknown-key"; 3], body("rollout { max-turn 5; steps 3 }\ntrian { steps 3 }", &[]));
    shows("other-variant", &["other-variant"], body("filter \"none\" { value 0.9 }", &[]));
    shows("duplicate-key", &["duplicate-key"; 2], body("seed 1\nseed 2\nrollout groups=1 groups=2", &[]));
    shows("child-and-property", &["child-and-property"], body("train steps=5 {\n    steps 6\n}", &[]));
    let bare = "experiment \"test\" {\n    train { }\n}\n";
    let Err(errors) = document(bare, &[]) else { panic!("a bare experiment is no error") };
    assert!(errors.iter().all(|error| error.code() == "missing-key"), "{errors}");
    shows("missing-key", &["missing-key"], body("model \"pretrained\"", &[]));
    shows("not-chosen", &["missing-key"], early());
}

/// An experiment whose first layer gives fields to a variant that no layer has chosen.
fn early() -> Result<(), Diagnostics> {
    let base = experiment::EMBEDDED.iter().find(|(path, _)| *path == "configs/base.kdl").unwrap().1;
    let early = format!("filter {{ value 0.9 }}\n{}", base.replace("\nfilter \"none\"", ""));
    let files = Files::with(&[
        ("configs/early.kdl", &early),
        ("experiments/test.kdl", "experiment \"test\" {\n    extends \"early\"\n    task \"bandit\"\n}\n"),
    ]);
    experiment::resolve_with("test", &[], &files).map(drop)
}

#[test]
fn names_and_filters_of_logs() {
    let reserved = "experiment \"warm\" {\n    extends \"base\"\n    task \"bandit\"\n}\n";
    shows("reserved-name", &["rule"], document(reserved, &[]));
    shows("rule-log", &["rule"], body("(local)execution { log \"starpo=loud\" }", &[]));
    if cfg!(not(feature = "parquet")) {
        shows("rule-parquet", &["rule"], body("(local)logging { parquet #true }", &[]));
    }
}

#[test]
fn values() {
    let wrong = "seed \"one\"\nrollout { think \"true\"; action-separator 5; max-turns 2.5; format-penalty #null }";
    shows("wrong-type", &["wrong-type"; 5], body(wrong, &[]));
    shows("wrong-choice", &["wrong-type"], body("numerics \"cpu-f23\"", &[]));
    let far = "rollout { groups 0; format-penalty 0.5 }\nseed -1";
    shows("out-of-range", &["out-of-range"; 3], body(far, &[]));
    shows("non-finite", &["non-finite"; 2], body("update { learning-rate 1e999; beta1 #nan }", &[]));
    let units = "(u32)seed 1\ntrain { steps (duration)\"4h\" }\nrollout { max-response-tokens (bytes)400 }";
    shows("unit-annotation", &["bad-annotation"; 3], body(units, &[]));
    let append = "(append)seed 1\n(append)task \"sokoban\"\nstop \"spread-collapse\"\n(append)stop \"spread-collapse\"";
    shows("bad-append", &["bad-annotation"; 3], body(append, &[]));
    let window = "rollout { window \"full\" { turns 3 } }";
    shows("window-length-node", &["other-variant"], body(window, &[]));
    shows("forgotten-file", &["forgotten-file"], body("rollout { system \"prompts/rules.txt\" }", &[]));
    let count = "seed 1 2\ntrain 5\nupdate { epochs }\nrollout { groups 5 { x 1 } }\neval sampling=1";
    shows("wrong-arguments", &["wrong-arguments"; 5], body(count, &[]));
    shows("unknown-variant", &["unknown-variant"; 2], body("filter \"topp\"\nwarm-start \"experts\" { seed 3 }", &[]));
    let annotated = "(u32)seed 1\neval every=(u64)1\n(local)train { steps (file)\"x\" }\n(unset)numerics";
    shows("bad-annotation", &["bad-annotation"; 5], body(annotated, &[]));
    let typed =
        ["seed=(file)prompts/rules.txt", "rollout.system=(dir)prompts", "filter=(run)x", "train.steps=(ref)eval.evry"];
    shows(
        "override-annotation",
        &["bad-annotation", "bad-annotation", "unknown-variant", "ref-to-nothing"],
        body("", &typed),
    );
    shows(
        "unreadable",
        &["unreadable"; 2],
        body("rollout { system (file)\"prompts/no.txt\" }\nmodel \"pretrained\" path=(dir)\"models/no\"", &[]),
    );
}

#[test]
fn references() {
    let nothing = "train { steps (ref)eval.evry }\neval { every (ref)max-turns }";
    shows("ref-to-nothing", &["ref-to-nothing"; 2], body(nothing, &[]));
    shows("ref-wrong-type", &["wrong-type"; 2], body("train { steps (ref)rollout.think }\nseed (ref)train", &[]));
    let chain: String = (0..120).map(|n| format!("task \"sokoban\" {{ boxes (ref)task.{}.boxes }}\n", n + 2)).collect();
    let chain = format!("{chain}task \"sokoban\"\n");
    let Err(errors) = body(&chain, &[]) else { panic!("a long chain is no error") };
    assert!(errors.iter().all(|error| error.code() == "too-large"), "{errors}");
    shows("ref-cycle", &["cycle"; 2], body("train { steps (ref)eval.every }\neval { every (ref)train.steps }", &[]));
}

#[test]
fn documents() {
    shows("syntax", &["syntax"; 2], body("rollout { think true }\nseed 1..5", &[]));
    let unknown = "experiment \"test\" {\n    extends \"base\"\n    use \"model/tyni\"\n    task \"bandit\"\n}";
    shows("unknown-document", &["unknown-document"], document(unknown, &[]));
    let bases = "experiment \"test\" {\n    extends \"bsae\"\n    task \"bandit\"\n}\n";
    shows("unknown-base", &["unknown-document"], document(bases, &[]));
    let defaults =
        "defaults 1 {\n    filtre \"top-p\"\n    filter\n    filter \"top\"\n    filter \"top-p\" { valeu 1 }\n}";
    let codes = ["wrong-arguments", "unknown-key", "wrong-arguments", "unknown-variant", "unknown-key"];
    shows("defaults", &codes, body(defaults, &[]));
    shows("not-first", &["not-first"], body("use \"model/tiny\"", &[]));
    shows("wrapping-node", &["wrapping-node"], document("extends \"base\"\ntask \"bandit\"\n", &[]));
    shows(
        "wrapping-name",
        &["wrapping-node"],
        document("experiment \"a/b\" { extends \"base\"; task \"bandit\" }", &[]),
    );
    for (length, sound) in [(200, true), (201, false)] {
        let text = format!("experiment \"{}\" {{ extends \"base\"; task \"bandit\" }}", "n".repeat(length));
        assert_eq!(document(&text, &[]).is_ok(), sound);
    }
    let wrapped = Files::with(&[
        ("configs/wrapped.kdl", "experiment \"wrapped\" { seed 1 }\n"),
        (
            "experiments/test.kdl",
            "experiment \"test\" {\n    extends \"base\"\n    use \"wrapped\"\n    task \"bandit\"\n}\n",
        ),
    ]);
    shows("wrapping-part", &["wrapping-node"], experiment::resolve_with("test", &[], &wrapped));
    let circle = Files::with(&[
        (
            "experiments/test.kdl",
            "experiment \"test\" {\n    extends \"base\"\n    use \"one\"\n    task \"bandit\"\n}\n",
        ),
        ("configs/one.kdl", "use \"two\"\n"),
        ("configs/two.kdl", "use \"one\"\n"),
    ]);
    shows("use-cycle", &["cycle"], experiment::resolve_with("test", &[], &circle));
    let circle = Files::with(&[
        ("experiments/test.kdl", "experiment \"test\" {\n    extends \"other\"\n}\n"),
        ("experiments/other.kdl", "experiment \"other\" {\n    extends \"test\"\n}\n"),
    ]);
    shows("extends-cycle", &["cycle"], experiment::resolve_with("test", &[], &circle));
    let doubling: Vec<(String, String)> = (0..40)
        .map(|n| (format!("configs/p{n}.kdl"), format!("use \"p{0}\" \"p{0}\"\n", n + 1)))
        .chain([("configs/p40.kdl".to_owned(), String::new())])
        .chain([("experiments/test.kdl".to_owned(), "experiment \"test\" { extends \"base\"; use \"p0\" }".to_owned())])
        .collect();
    let doubling: Vec<(&str, &str)> = doubling.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    shows("too-many-documents", &["too-large"], experiment::resolve_with("test", &[], &Files::with(&doubling)));
    shows("unknown-experiment", &["unknown-document"], experiment::resolve("sokobann", &[], root()));
    let deep = format!("{}{}", "a {".repeat(40), "}".repeat(40));
    shows("too-deep", &["too-large"], document(&deep, &[]));
    assert!(document(&format!("// {}", "x".repeat(1 << 20)), &[]).is_err());
    assert!(document(&"a;".repeat(10_001), &[]).is_err());
    assert!(document(&"/*".repeat(300_000), &[]).is_err());
    let marks = format!("{}seed 1", "/- // x\n\u{a0}/-\\\n".repeat(20));
    shows("too-many-marks", &["too-large"], document(&marks, &[]));
    let apart = body(&"/- a\n/- b \"/-\" // /-\n".repeat(40), &[]);
    assert!(apart.is_ok(), "marks that stand apart are not nested");
}

#[test]
fn aliases() {
    shows("alias-to-nothing", &["alias-to-nothing"], body("alias \"lr\" \"update.learning_rat\"", &[]));
    shows("alias-to-section", &["alias-to-section"], body("alias \"u\" \"update\"", &[]));
    shows("alias-hidden", &["alias-hidden"], body("alias \"seed\" \"train.steps\"", &[]));
    let twice = "alias \"s\" \"seed\"\nalias \"s\" \"train.steps\" { x }";
    shows("alias-twice", &["wrong-arguments", "duplicate-key"], body(twice, &[]));
    shows("alias-arguments", &["wrong-arguments"], body("alias \"lr\"", &[]));
    let notes = "note\nnote 3\nnote \"a\" \"b\"\nnote \"a\" y=3";
    let wrong = "wrong-arguments";
    let twice = "duplicate-key";
    shows("note-arguments", &[wrong, twice, "wrong-type", twice, wrong, twice, wrong], body(notes, &[]));
    shows("note-block", &["wrong-arguments", "bad-annotation"], body("note (foo)\"x\" { a 1 }", &[]));
}

#[test]
fn overrides() {
    let run = |overrides: &[&str]| experiment::resolve("sokoban", &strings(overrides), root());
    shows("ambiguous-name", &["ambiguous-name"], run(&["seed=3", "temperature=0.5"]));
    shows("unknown-override", &["unknown-override"; 2], run(&["rollout.grups=3", "learning_rat=1"]));
    shows("override-of-no-member", &["unknown-override"; 2], run(&["stop.below=0.1", "stop.0.below=0.1"]));
    shows("override-other-variant", &["other-variant"], run(&["filter.value=0.5"]));
    shows("override-variant-given", &["other-variant"], run(&["filter=none", "filter.value=0.5"]));
    let lists = ["task.1.size=5,5", "task.size.5=8", "task.0.symbols.9=x", "filter.0.value=0.3"];
    shows("override-beyond-list", &["unknown-override"; 4], run(&lists));
    shows(
        "override-of-other-member",
        &["unknown-override"; 2],
        run(&["task=sokoban,bandit", "task.low=1", "task.0.high=2"]),
    );
    let given = ["task=bandit", "task.size=5,5", "eval.task=bandit,bandit", "eval.task.1.size=4,4"];
    shows("override-of-no-given-member", &["unknown-override"; 2], run(&given));
    shows("override-far", &["out-of-range"; 2], run(&["clip.low=-1e308", "rollout.format-penalty=1e-300"]));
    shows("override-of-section", &["override-of-section"], run(&["rollout=3"]));
    shows("override-of-list", &["unknown-variant"; 2], run(&["eval.task=sokoban,sokobn", "stop+=rul"]));
    shows("not-a-list", &["not-a-list"], run(&["train.steps+=5"]));
    shows("several-values", &["several-values"; 3], run(&["seed=1,2,3", "filter=none,top-p", "train.steps=1..=5"]));
    shows("not-an-override", &["not-an-override"], run(&["fmt"]));
    shows("override-twice", &["duplicate-key"], run(&["seed=1", "seed=2"]));
    shows("override-wrong-type", &["wrong-type"; 3], run(&["seed=high", "rollout.think=maybe", "task.size=6,x"]));
    shows("override-unknown-variant", &["unknown-variant"], run(&["filter=top"]));
    shows("window-length", &["other-variant"], run(&["rollout.window.turns=3"]));
}

#[test]
fn overlays() {
    let files = Files::with(&[("configs/over.kdl", "train { steps 5 }\nseed \"x\"\n")]);
    let run = |overrides: &[&str]| experiment::resolve_with("sokoban", &strings(overrides), &files);
    shows("overlay", &["unreadable", "wrong-type"], run(&["@configs/over.kdl", "@configs/ovr.kdl"]));
    let files = Files::with(&[("over.kdl", "train { steps 5 }\n")]);
    let hidden = experiment::resolve_with("sokoban", &strings(&["train.steps=3", "@over.kdl"]), &files);
    shows("overlay-hides", &["duplicate-key"], hidden);
}

#[test]
fn an_old_base() {
    let base = experiment::EMBEDDED.iter().find(|(path, _)| *path == "configs/base.kdl").unwrap().1;
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("configs")).unwrap();
    let old = base.replace("collapse {", "/-collapse {").replace("    eps 0.01\n", "");
    std::fs::write(folder.path().join("configs/base.kdl"), old).unwrap();
    let run = experiment::resolve("sokoban", &strings(&["filter=top-p"]), folder.path());
    shows("old-base", &["missing-key"; 2], run);
    shows("no-base", &["missing-key"; 2], document("experiment \"test\" {\n    task \"bandit\"\n}\n", &[]));
}

#[test]
fn numbers_of_many_digits() {
    let digits = "4".repeat(39);
    let numbers = format!("seed {digits}\nb{digits} 1");
    shows("too-many-digits", &["too-large"], body(&numbers, &[]));
    for number in [
        format!("-{digits}"),
        format!("0.{digits}"),
        format!("1_{digits}e3"),
        format!("1e{digits}"),
        format!("(f){digits}"),
    ] {
        let errors = body(&format!("seed {number}"), &[]).map(|run| run.key).unwrap_err();
        assert!(errors.iter().all(|error| error.code() == "too-large"), "{errors}");
    }
    for name in [
        format!("b{digits}"),
        format!("é{digits}"),
        format!("\"{digits}\""),
        format!("a_{digits}"),
        format!("// {digits}\nb"),
    ] {
        let errors = body(&name, &[]).map(|run| run.key).unwrap_err();
        assert!(errors.iter().all(|error| error.code() == "unknown-key"), "{errors}");
    }
}

#[test]
fn rules() {
    shows("rule-task", &["rule"], document("experiment \"test\" { extends \"base\" }", &[]));
    shows("rule-heads", &["rule"; 2], body("model \"tiny\" { heads 3; kv-heads 2 }", &[]));
    shows("rule-device", &["rule"], body("", &["device=cuda:0"]));
    shows("rule-tokens", &["rule"], body("rollout { max-response-tokens 2000 }", &[]));
    let boards = "task \"sokoban\" { size 6 6 6 }
task \"sokoban\" { size 5 5; boxes 9 }
task \"sokoban\" { symbols \"#\" \"#\" }";
    shows("rule-sokoban", &["rule"; 3], body(boards, &[]));
    shows("rule-bandit", &["rule"], body("task \"bandit\" { low 0.25 }", &[]));
    let file = "task \"math\" { questions \"file\" { path (file)\"prompts/rules.txt\" } }
task \"countdown\" { file (file)\"prompts/rules.txt\" }
task \"ez-points\" { target 100 }";
    shows("rule-tasks", &["rule"; 3], body(file, &[]));
    shows("rule-edges", &["rule"], body("gradients { buckets \"edges\" { edges 0.5 0.5 } }", &[]));
    shows("rule-turn-scores-unseen", &["rule"], body("reward { turn-scores #true }", &[]));
    let cold = ["rollout.sampling.temperature=1e-300", "eval.sampling.temperature=0.0000001"];
    shows("rule-temperature", &["rule"; 2], body("", &cold));
    assert!(body("", &["eval.sampling.temperature=0"]).is_ok());
    shows("rule-separator", &["rule"], body("rollout { action-separator \" \" }", &[]));
    shows("rule-critic", &["rule"], body("advantage \"gae\"", &[]));
    shows("rule-adapter", &["rule"; 2], body("adapter \"lora\" { alpha 0.0 }", &["adapter.targets="]));
    shows("rule-critic-idle", &["rule"], body("critic \"own\"", &[]));
    shows("rule-penalty", &["rule"], body("reward { penalty-to \"row\" }", &[]));
    shows("rule-turn-scores", &["rule"; 2], body("reward { turn-scores #true; normalise \"mean\" }", &[]));
    shows("rule-remax", &["rule"], body("", &["advantage=remax", "reward.normalise=mean-std"]));
    shows("rule-filter", &["rule"], body("", &["filter=top-p", "rollout.group-size=1"]));
    shows("rule-filter-lone", &["rule"], body("filter \"equal-rewards\"", &["rollout.group-size=1"]));
    let sum = "filter \"top-p\" { score \"reward-sum\" }";
    shows("rule-filter-mass", &["rule"], body(sum, &[]));
    let stops = "stop \"rule\" { when \"rollot.success\"; below 0.5 }
stop \"rule\" { when \"rollout.success\" }
stop \"rule\" { when \"update.kl\"; below 0.5; above 0.5 }
stop \"rule\" { when \"eval.success\"; below 0.5 }
stop \"validation-floor\"";
    shows("rule-stop", &["rule"; 5], body(stops, &["eval.tasks=0"]));
    let refill = "filter \"none\" { empty \"refill\" }\nstop \"rule\" { when \"update.kl\"; above 1.0; factor 0.5 }";
    shows("other-variant-empty", &["other-variant", "unknown-key"], body(refill, &[]));
    let defeated = "reward { when \"before-filter\"; normalise \"mean-std\" by=\"group\" }";
    shows("rule-defeated", &["rule"], body(defeated, &["filter=top-p"]));
    shows("rule-defeated-count", &["rule"], body("filter \"top-k-abs\" { value 8 }", &[]));
    shows("missing-key-stop", &["missing-key"], body("stop \"rule\" { above 1.0 }", &[]));
}

#[test]
fn everything_wrong_is_reported_at_once() {
    let files = Files::with(&[
        ("configs/bad.kdl", "train { step 1 }\n"),
        (
            "experiments/test.kdl",
            "experiment \"test\" {\n    extends \"base\"\n    use \"bad\"\n    task \"bandit\"\n    seed \"x\"\n}\n",
        ),
    ]);
    let errors = experiment::resolve_with("test", &strings(&["nope=1"]), &files).unwrap_err();
    let json = errors.json();
    let places: Vec<_> =
        json.as_array().unwrap().iter().map(|error| format!("{}:{}", error["file"], error["line"])).collect();
    assert_eq!(places, ["\"configs/bad.kdl\":1", "\"experiments/test.kdl\":5", "\"command line\":1"]);
}

/// What a run may do and hardly anyone wants.
#[test]
fn warnings() {
    let text = "objective \"ppo\" {\n    kl { coef 0.1; estimator \"k1\" }\n}\nwarm-start \"expert\" { episodes 4 }";
    let run = body(text, &["update.mini-batch=1000", "rollout.max-actions-per-turn=11"]).unwrap();
    let shown: Vec<String> = run.warnings().iter().map(|warning| warning.render(false)).collect();
    golden("error", "warnings", &shown.join("\n"));
    assert!(body("", &[]).unwrap().warnings().is_empty());
}
