//! Model folders: what transformers computes from them, what is written back, and what is wrong with broken ones.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use safetensors::SafeTensors;
use starpo::policy::{self, Family, ModelFolder, Precision, Shape, Transformer, Weights};

use crate::golden;

const TOKENIZER: &str = include_str!("../../configs/model/tiny-tokenizer.json");

/// A copy of `tests/fixtures/models/<name>`, with a tokenizer.
fn model(name: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let fixture = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/models").join(name);
    for file in fs::read_dir(fixture).unwrap().map(|entry| entry.unwrap().path()) {
        fs::copy(&file, folder.path().join(file.file_name().unwrap())).unwrap();
    }
    fs::write(folder.path().join("tokenizer.json"), TOKENIZER).unwrap();
    folder
}

fn transformer(weights: Weights) -> Transformer {
    Transformer::new(weights, policy::device("cpu").unwrap(), 1)
}

/// bf16 in one file with a free head; f32 in three shards; f16 with wide heads.
#[test]
fn logits_are_those_of_transformers() {
    for (name, family) in [("llama", Family::Llama), ("qwen2", Family::Qwen2), ("qwen3", Family::Qwen3)] {
        let folder = model(name);
        let model = ModelFolder::read(folder.path()).unwrap();
        assert_eq!(model.weights.shape().family, family);
        assert_eq!((model.positions(), model.ends()), (Some(4096), Ok(vec![2, 0])));
        let bytes = fs::read(folder.path().join("expected.safetensors")).unwrap();
        let file = SafeTensors::deserialize(&bytes).unwrap();
        let ids = file.tensor("ids.0").unwrap();
        let ids: Vec<u32> = ids.data().as_chunks().0.iter().map(|id| i64::from_le_bytes(*id) as u32).collect();
        let wanted = file.tensor("logits.0").unwrap();
        let wanted: Vec<f32> = wanted.data().as_chunks().0.iter().map(|x| f32::from_le_bytes(*x)).collect();
        let ours = transformer(model.weights).logits(&ids);
        assert_eq!(ours.len(), wanted.len());
        let difference = ours.iter().zip(&wanted).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
        assert!(difference <= 1e-4 && wanted.iter().any(|x| x.abs() > 3.0), "{name}: {difference}");
    }
}

#[test]
fn a_folder_is_read_back_as_written() {
    let out = tempfile::tempdir().unwrap();
    for name in ["llama", "qwen2", "qwen3"] {
        let folder = model(name);
        let mut model = ModelFolder::read(folder.path()).unwrap();
        let mut weights = model.weights.clone();
        weights.values_mut()[5] = 0.1234567;
        model = model.with(weights);
        model.write(&out.path().join(name)).unwrap();
        let read = ModelFolder::read(&out.path().join(name)).unwrap();
        assert!(read.weights == model.weights && read.ends() == model.ends());
        let config = fs::read_to_string(out.path().join(name).join("config.json")).unwrap();
        assert!(config.contains("\"dtype\": \"float32\"") && config.contains("\"max_position_embeddings\": 4096"));
    }
    // Rounded once: what is between two neighbours goes to the nearer one, and to the even one from the middle.
    let folder = model("llama");
    let mut model = ModelFolder::read(folder.path()).unwrap();
    let values = [(1.0 + 0.0078125 / 2.0, 1.0), (1.0 + 0.0234375 / 2.0, 1.015625), (-0.123_456_7, -0.123_535_156)];
    values.iter().zip(model.weights.values_mut()).for_each(|((value, _), weight)| *weight = *value);
    model.write_as(&out.path().join("half"), Precision::Bf16).unwrap();
    let half = ModelFolder::read(&out.path().join("half")).unwrap();
    assert_eq!(half.weights.values()[..3], values.map(|(_, rounded)| rounded));
    let size = |name: &str| fs::metadata(out.path().join(name).join("model.safetensors")).unwrap().len();
    assert!(size("half") < 6 * size("llama") / 10);
    let config = fs::read_to_string(out.path().join("half/config.json")).unwrap();
    assert!(config.contains("\"dtype\": \"bfloat16\""));
    half.write_as(&out.path().join("again"), Precision::Bf16).unwrap();
    assert_eq!(ModelFolder::read(&out.path().join("again")), Ok(half));
    for (family, tied) in [(Family::Llama, true), (Family::Qwen2, false), (Family::Qwen3, true)] {
        let (rope_theta, norm_eps) = (1e4, 1e-6);
        let shape = Shape {
            family,
            vocab: 512,
            width: 8,
            layers: 1,
            heads: 2,
            kv_heads: 1,
            head_dim: 6,
            ffn: 16,
            rope_theta,
            norm_eps,
            tied,
        };
        let made = ModelFolder::new(Weights::random(shape, 0.1, 1).unwrap(), TOKENIZER.to_owned());
        made.write(&out.path().join("made")).unwrap();
        assert_eq!(ModelFolder::read(&out.path().join("made")), Ok(made));
    }
}

/// What is said of a copy of a model that harm was done to.
fn broken(name: &str, what: &str, harm: impl Fn(&Path)) -> String {
    let folder = model(name);
    harm(folder.path());
    let error = ModelFolder::read(folder.path()).expect_err(what);
    format!("\n{name}: {what}\n  {}\n", error.replace(&folder.path().display().to_string(), "MODEL"))
}

fn change(folder: &Path, file: &str, from: &str, to: &str) {
    let path = folder.join(file);
    let text = fs::read_to_string(&path).unwrap();
    assert!(text.contains(from), "{from}");
    fs::write(path, text.replace(from, to)).unwrap();
}

#[test]
fn configs_that_are_not_known_are_named() {
    let mut text = String::from("What was done to a config.json, and what is said of it.\n");
    for (name, what, from, to) in [
        ("llama", "another architecture", "\"llama\"", "\"mamba\""),
        ("llama", "a field that is missing", "\"hidden_size\": 32,", ""),
        ("llama", "a size that is none", "\"hidden_size\": 32", "\"hidden_size\": -32"),
        ("llama", "a field that nobody knows", "\"use_cache\": true", "\"logit_scale\": 0.5"),
        ("llama", "another activation", "\"silu\"", "\"gelu\""),
        ("llama", "biases everywhere", "\"attention_bias\": false", "\"attention_bias\": true"),
        (
            "llama",
            "scaled positions",
            "\"use_cache\": true",
            "\"rope_scaling\": {\"type\": \"linear\", \"factor\": 2.0}",
        ),
        ("qwen3", "scaled positions, as of transformers 5", "\"rope_type\": \"default\"", "\"rope_type\": \"yarn\""),
        ("qwen3", "two bases", "\"use_cache\": true", "\"rope_theta\": 77.0"),
        ("qwen2", "a sliding window", "\"use_sliding_window\": false", "\"use_sliding_window\": true"),
        ("qwen2", "a sliding layer", "\"full_attention\"\n", "\"sliding_attention\"\n"),
        ("qwen2", "heads that do not fit", "\"num_key_value_heads\": 2", "\"num_key_value_heads\": 3"),
        ("qwen3", "another width", "\"hidden_size\": 32", "\"hidden_size\": 40"),
        ("llama", "more layers than any model", "\"num_hidden_layers\": 2", "\"num_hidden_layers\": 99999999"),
        ("llama", "a vocabulary that no file has", "\"vocab_size\": 502", "\"vocab_size\": 16777216"),
        ("qwen3", "a layer too many", "\"num_hidden_layers\": 2", "\"num_hidden_layers\": 3"),
        ("llama", "a head that is not expected", "\"tie_word_embeddings\": false", "\"tie_word_embeddings\": true"),
    ] {
        text += &broken(name, what, |folder| {
            change(folder, "config.json", from, to);
            if what == "a layer too many" {
                change(folder, "config.json", "\"full_attention\",", "\"full_attention\", \"full_attention\",");
            }
        });
    }
    text += &broken("llama", "cut off", |folder| fs::write(folder.join("config.json"), "{\"a\":").unwrap());
    golden("model", "configs", &text);
}

#[test]
fn broken_folders_are_named() {
    let mut text = String::from("What was done to a folder, and what is said of it.\n");
    let remove = |file: &'static str| move |folder: &Path| fs::remove_file(folder.join(file)).unwrap();
    text += &broken("llama", "no weights", remove("model.safetensors"));
    text += &broken("llama", "no tokenizer", remove("tokenizer.json"));
    text += &broken("qwen2", "a shard is gone", remove("model-00002-of-00003.safetensors"));
    text += &broken("llama", "weights that are cut off", |folder| {
        let bytes = fs::read(folder.join("model.safetensors")).unwrap();
        fs::write(folder.join("model.safetensors"), &bytes[..bytes.len() - 1]).unwrap();
    });
    text += &broken("llama", "weights that are something else", |folder| {
        fs::write(folder.join("model.safetensors"), "version https://git-lfs.github.com/spec/v1\n").unwrap();
    });
    text += &broken("qwen2", "a tensor is in no shard", |folder| {
        let path = folder.join("model.safetensors.index.json");
        let text = fs::read_to_string(&path).unwrap();
        fs::write(&path, text.replace("00003-of", "00002-of")).unwrap();
    });
    text += &broken("qwen2", "both one file and shards", |folder| {
        fs::copy(folder.join("model-00001-of-00003.safetensors"), folder.join("model.safetensors")).unwrap();
    });
    text += &broken("qwen2", "an index that leaves the folder", |folder| {
        change(folder, "model.safetensors.index.json", "\"model-00003", "\"../model-00003")
    });
    text += &broken("llama", "a number that is none", |folder| {
        let mut bytes = fs::read(folder.join("model.safetensors")).unwrap();
        let end = bytes.len();
        bytes[end - 2..].copy_from_slice(&[0xC0, 0x7F]);
        fs::write(folder.join("model.safetensors"), bytes).unwrap();
    });
    text += &broken("llama", "an end that is no token", |folder| {
        fs::write(folder.join("generation_config.json"), "{\"eos_token_id\": [2, 512]}").unwrap();
    });
    text += &broken("llama", "more tokens than the vocabulary", |folder| {
        let path = folder.join("tokenizer.json");
        let text =
            fs::read_to_string(&path).unwrap().replacen("\" target\": 501", "\" target\": 501,\n\"more\": 502", 1);
        fs::write(path, text).unwrap();
    });
    golden("model", "broken", &text);
}

/// The binary in `folder`, with something on its standard input.
fn starpo(folder: &Path, arguments: &[&str], input: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_starpo"));
    command.args(arguments).current_dir(folder).env("NO_COLOR", "1").stdin(Stdio::piped());
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    child.wait_with_output().unwrap()
}

#[test]
fn a_chat_over_a_pipe() {
    let folder = model("qwen2");
    let chat = |more: &[&str]| {
        let output = starpo(folder.path(), &[&["chat", ".", "--max-tokens", "6"], more].concat(), "Hello\nAgain");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    let turns: serde_json::Value = serde_json::from_str(&chat(&["--json"])).unwrap();
    assert_eq!(turns.as_array().map(Vec::len), Some(2));
    assert!(turns[0]["user"] == "Hello" && turns[1]["tokens"].as_u64().is_some_and(|n| (1..=6).contains(&n)));
    let said: Vec<&str> = (0..2).map(|turn| turns[turn]["response"].as_str().unwrap()).collect();
    assert_eq!(chat(&[]), format!("{}\n{}\n", said[0], said[1]));
    assert_ne!(chat(&["--seed", "2"]), chat(&[]));
    for refused in [&["."][..], &["bandit", "sampling.temperature=0.5"]] {
        let words = [&["chat"], refused, &["rollout.groups=2"]].concat();
        assert_eq!(starpo(folder.path(), &words, "").status.code(), Some(2), "{words:?}");
    }
    for wrong in ["--temperature=nan", "--temperature=-1", "--top-p=2", "--top-p=nan", "--max-tokens=0"] {
        let output = starpo(folder.path(), &["chat", ".", wrong], "");
        assert_eq!(output.status.code(), Some(2), "{wrong}");
    }
}

/// A model that was written out plays as the one that it was.
#[test]
fn written_weights_play_as_before() {
    let folder = tempfile::tempdir().unwrap();
    let run = |arguments: &[&str]| {
        let output = starpo(folder.path(), arguments, "");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    let start = ["warm-start=none", "width=32", "layers=2", "eval.tasks=4"];
    let told = run(&[&["weights", "sokoban", "out", "--json"], &start[..]].concat());
    assert_eq!(told, "{\"folder\":\"out\",\"base\":null}\n");
    let twice = starpo(folder.path(), &["weights", "sokoban", "out"], "");
    assert_eq!(twice.status.code(), Some(2));
    let own = run(&[&["eval", "sokoban", "--json"], &start[..]].concat());
    let read = ["model=pretrained", "model.path=out", "warm-start=none", "eval.tasks=4"];
    assert_eq!(own, run(&[&["eval", "sokoban", "--json"], &read[..]].concat()));
}

/// What PEFT computes from an adapter and the base that it names is the merged model, after a warm start too.
#[test]
fn an_adapter_names_what_it_changes() {
    let folder = tempfile::tempdir().unwrap();
    let run = |arguments: &[&str]| {
        let output = starpo(folder.path(), arguments, "");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    };
    run(&[
        "run",
        "repro",
        "adapter=lora",
        "adapter.targets=q_proj",
        "width=32",
        "warm-start.steps=2",
        "train.steps=1",
        "filter=none",
        "eval.tasks=0",
        "entropy-coef=0.1",
        "update.learning-rate=1e-2",
    ]);
    run(&["weights", "repro-", "merged"]);
    run(&["weights", "repro-", "out", "--adapter"]);
    let read = |path: &str| fs::read(folder.path().join(path)).unwrap();
    let config: serde_json::Value = serde_json::from_slice(&read("out/adapter_config.json")).unwrap();
    let base = PathBuf::from(config["base_model_name_or_path"].as_str().unwrap());
    assert!(base.is_absolute() && base.ends_with("out/base"));
    let (base, merged) = (ModelFolder::read(&base).unwrap(), ModelFolder::read(&folder.path().join("merged")).unwrap());
    let bytes = read("out/adapter_model.safetensors");
    let adapter = SafeTensors::deserialize(&bytes).unwrap();
    let scale = config["lora_alpha"].as_f64().unwrap() / config["r"].as_f64().unwrap();
    let mut moved = 0.0_f64;
    for part in base.weights.shape().parts() {
        let (start, end) = (&base.weights.values()[part.range.clone()], &merged.weights.values()[part.range.clone()]);
        let Some(module) = part.name.strip_suffix(".weight").filter(|name| name.ends_with("q_proj")) else {
            assert!(start == end, "{}", part.name);
            continue;
        };
        let factor = |which: &str| -> Vec<f64> {
            let tensor = adapter.tensor(&format!("base_model.model.{module}.{which}.weight")).unwrap();
            tensor.data().as_chunks().0.iter().map(|x| f64::from(f32::from_le_bytes(*x))).collect()
        };
        let (a, b, width) = (factor("lora_A"), factor("lora_B"), part.shape[1]);
        let rank = a.len() / width;
        for (i, (w0, w)) in start.iter().zip(end).enumerate() {
            let change: f64 = (0..rank).map(|k| b[i / width * rank + k] * a[k * width + i % width]).sum();
            assert!((f64::from(*w0) + scale * change - f64::from(*w)).abs() < 1e-6, "{}", part.name);
            moved = moved.max((scale * change).abs());
        }
    }
    assert!(moved > 0.0);

    // Nothing is written beside an adapter whose start is a folder as it is.
    let start = ["model=pretrained", "model.path=(dir)merged", "warm-start=none", "adapter=lora"];
    run(&[&["run", "bandit", "train.steps=1", "eval.tasks=0", "--fresh"], &start[..]].concat());
    run(&["weights", "bandit-", "over", "--adapter"]);
    let config: serde_json::Value = serde_json::from_slice(&read("over/adapter_config.json")).unwrap();
    assert_eq!(config["base_model_name_or_path"].as_str(), folder.path().join("merged").to_str());
    assert!(!folder.path().join("over/base").exists());
}

/// A template that leaves out old thoughts plays where no prompt shows them, or by the word of the user.
#[test]
fn a_template_that_changes_earlier_responses_needs_a_word() {
    let folder = model("qwen3");
    let template = include_str!("../fixtures/templates/qwen3.jinja");
    fs::write(folder.path().join("chat_template.jinja"), template).unwrap();
    let evaluate = |more: &[&str]| {
        let model = ["eval", "sokoban", "model=pretrained", "model.path=.", "warm-start=none", "eval.tasks=2"];
        starpo(folder.path(), &[&model, more].concat(), "")
    };
    let refused = evaluate(&[]);
    assert_eq!(refused.status.code(), Some(2));
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(said.contains("changes earlier responses") && said.contains("model.rewrites=pin"), "{said}");
    for more in [&["model.rewrites=pin"][..], &["rollout.window=single-turn"]] {
        let output = evaluate(more);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    let long = evaluate(&["model.rewrites=pin", "max-context-tokens=5000"]);
    assert!(String::from_utf8_lossy(&long.stderr).contains("more than the 4096 positions"));
    assert_eq!(long.status.code(), Some(2));
}
