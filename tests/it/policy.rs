//! The policy that learns: generation against scoring, gradients, determinism, checkpoints.
#![expect(clippy::single_range_in_vec_init, reason = "shards and responses are lists of spans, often of one")]

use starpo::experiment::{LoraConfig, Projection};
use starpo::policy::{
    self, Completion, Cotangent, Family, Learner, Memory, Optimizer, Policy, Request, Row, Sampling, Scores, Shape,
    Transformer, Weights,
};
use starpo::rng::Stream;

const ADAM: Optimizer =
    Optimizer { learning_rate: 1e-2, beta1: 0.9, beta2: 0.95, epsilon: 1e-8, weight_decay: 0.01, clip_norm: 1.0 };

fn sampling(temperature: f64) -> Sampling {
    Sampling { temperature, top_k: None, top_p: 1.0, stop: vec![1] }
}

fn micro() -> Shape {
    Shape {
        family: Family::Llama,
        vocab: 12,
        width: 8,
        layers: 2,
        heads: 2,
        kv_heads: 1,
        head_dim: 4,
        ffn: 16,
        rope_theta: 1e4,
        norm_eps: 1e-6,
        tied: true,
    }
}

fn small() -> Shape {
    Shape {
        family: Family::Llama,
        vocab: 40,
        width: 64,
        layers: 3,
        heads: 4,
        kv_heads: 2,
        head_dim: 16,
        ffn: 96,
        rope_theta: 1e4,
        norm_eps: 1e-5,
        tied: true,
    }
}

/// Two layers of small-256, the shape that benches measure.
fn small_256() -> Shape {
    Shape { vocab: 2048, width: 256, layers: 2, head_dim: 64, ffn: 768, ..small() }
}

/// Two layers of SmolLM2-135M, whose heads no power of two divides.
fn smollm2() -> Shape {
    Shape { width: 576, layers: 2, heads: 9, kv_heads: 3, head_dim: 64, ffn: 1536, rope_theta: 1e5, ..small() }
}

/// The sizes that blocks, panels and heads meet in earnest.
fn real() -> [Shape; 2] {
    [small_256(), smollm2()]
}

/// The same sizes in every family, some with a head of their own and heads that are not width / heads wide.
fn families(shape: Shape) -> [Shape; 3] {
    [
        shape.clone(),
        Shape { family: Family::Qwen2, tied: false, ..shape.clone() },
        Shape { family: Family::Qwen3, head_dim: 6, ..shape },
    ]
}

fn transformer(shape: Shape, threads: usize) -> Transformer {
    let weights = Weights::random(shape, 0.3, 5).expect("the sizes fit");
    Transformer::new(weights, policy::device("cpu").expect("a CPU"), threads)
}

/// An episode's tokens, the spans that were sampled, and what was recorded of them.
#[derive(Clone, Default, PartialEq, Debug)]
struct Played {
    tokens: Vec<u32>,
    responses: Vec<std::ops::Range<usize>>,
    logprobs: Vec<f32>,
    entropies: Vec<f32>,
}

/// Some turns of ragged prompts; every third episode skips the second turn.
fn play(policy: &dyn Policy, sampling: &Sampling, episodes: &[usize], limit: usize) -> Vec<Played> {
    let mut session = policy.open(sampling, 64);
    let mut played = vec![Played::default(); episodes.len()];
    for turn in 0..3 {
        let acting: Vec<usize> = (0..episodes.len()).filter(|&i| turn != 1 || episodes[i] % 3 != 2).collect();
        let prompts: Vec<Vec<u32>> = acting
            .iter()
            .map(|&i| {
                let mut stream = Stream::new("prompt", 1, &[episodes[i] as u64, turn]);
                let mut prompt = played[i].tokens.clone();
                prompt.extend((0..1 + stream.below(9)).map(|_| 2 + stream.below(8) as u32));
                prompt
            })
            .collect();
        let requests: Vec<Request<'_>> = acting
            .iter()
            .zip(&prompts)
            .map(|(&i, prompt)| Request {
                episode: episodes[i],
                prompt,
                draws: Stream::new("sample", 3, &[episodes[i] as u64, turn]),
                limit,
                legal: &[],
                advice: None,
            })
            .collect();
        let completions = session.generate(&requests);
        for ((&i, prompt), completion) in acting.iter().zip(&prompts).zip(completions) {
            let Completion { tokens, logprobs, entropies } = completion;
            assert!(!tokens.is_empty() && tokens.len() <= limit && logprobs.len() == tokens.len());
            assert!(tokens.len() == limit || sampling.stop.contains(&tokens[tokens.len() - 1]));
            let p = &mut played[i];
            p.tokens.clone_from(prompt);
            p.responses.push(p.tokens.len()..p.tokens.len() + tokens.len());
            p.tokens.extend(tokens);
            p.logprobs.extend(logprobs);
            p.entropies.extend(entropies);
        }
    }
    played
}

fn rows(played: &[Played]) -> Vec<Row<'_>> {
    played.iter().map(|p| Row { tokens: &p.tokens, responses: &p.responses }).collect()
}

/// To the bit: the cache, the batch and the turns leave no trace.
#[test]
fn what_sampling_records_is_what_scoring_computes() {
    let shapes = families(small()).into_iter().chain(real());
    for (shape, temperature) in shapes.zip([1.0, 0.7, 0.0, 1.3, 1.0]) {
        let policy = transformer(shape, 2);
        let played = play(&policy, &sampling(temperature), &(0..40).collect::<Vec<_>>(), 12);
        for (played, scores) in played.iter().zip(policy.score(&rows(&played), temperature)) {
            assert_eq!(played.logprobs, scores.logprobs);
            assert_eq!(played.entropies, scores.entropies);
        }
    }
}

/// Whatever a context has read before: a prompt that goes another way is read as if by a fresh one.
#[test]
fn a_context_forgets_what_a_prompt_does_not_say() {
    let policy = transformer(small(), 1);
    let mut session = policy.open(&sampling(1.0), 1);
    let long: Vec<u32> = (0..50).map(|i| 2 + i * 7 % 30).collect();
    let mut other = long.clone();
    other[20] += 1;
    for prompt in [&long[..], &other, &other[..40], &long[..1], &other[5..], &long] {
        let request =
            Request { episode: 0, prompt, draws: Stream::new("ask", 1, &[0]), limit: 9, legal: &[], advice: None };
        let completion = session.generate(std::slice::from_ref(&request));
        assert_eq!(completion, policy.open(&sampling(1.0), 1).generate(&[request]));
    }
}

/// Threads, the other episodes of the batch, and the order of requests leave no trace.
#[test]
fn a_completion_depends_on_its_episode_alone() {
    let all: Vec<usize> = (0..40).collect();
    let one = play(&transformer(small(), 1), &sampling(1.0), &all, 12);
    assert_eq!(one, play(&transformer(small(), 2), &sampling(1.0), &all, 12));
    let some = [31, 7, 8, 20];
    let alone = play(&transformer(small(), 2), &sampling(1.0), &some, 12);
    for (&episode, played) in some.iter().zip(&alone) {
        assert_eq!(played, &one[episode]);
    }
    for shape in real() {
        let [one, two] = [1, 2].map(|threads| transformer(shape.clone(), threads));
        let all = play(&one, &sampling(1.0), &(0..40).collect::<Vec<_>>(), 8);
        for (batch, policy) in [(1, &one), (1, &two), (2, &two), (7, &one), (16, &two), (40, &two)] {
            assert_eq!(all[..batch], play(policy, &sampling(1.0), &(0..batch).collect::<Vec<_>>(), 8));
        }
    }
}

/// What has no room in the cache is read again, and no completion shows it: with room for one context, for some, and
/// where only the last ones have none.
#[test]
fn a_cache_of_any_size_gives_the_same_completions() {
    let all: Vec<usize> = (0..40).collect();
    let ample = play(&transformer(small(), 2), &sampling(1.0), &all, 12);
    let tokens: usize = ample.iter().map(|played| played.tokens.len()).sum();
    let token = 4 * 2 * small().layers * small().kv_heads * small().head_dim;
    for room in [0, 100, tokens / 3, tokens - 20] {
        let policy = transformer(small(), 2).within(Memory { cache: room * token, ..Memory::AMPLE });
        assert_eq!(ample, play(&policy, &sampling(1.0), &all, 12), "{room} of {tokens} tokens");
    }
}

/// What runs where there is neither AVX2 nor FMA, and on whatever number of cores, is the same to the bit.
#[test]
fn a_machine_without_avx2_gives_the_same_bits() {
    let learn = |threads: usize| {
        let shape = Shape { family: Family::Qwen3, vocab: 20, ..small() };
        let mut policy = transformer(shape, threads);
        let played = play(&policy, &sampling(1.0), &[0, 1, 2, 3], 6);
        policy.gradient(&rows(&played), &[0..2, 2..4], 0.9, &cotangent);
        let norm = policy.step(&ADAM).expect("a finite gradient").gradient;
        (played, norm, policy.save(), policy.score(&rows(&play(&policy, &sampling(1.0), &[5], 6)), 1.0))
    };
    let here = learn(1);
    starpo_kernels::set_portable(true);
    let there = [1, 2, 5].map(learn);
    starpo_kernels::set_portable(false);
    assert!(there.iter().all(|there| *there == here));
}

fn cotangent(row: usize, scores: &Scores) -> Cotangent {
    let weight = |t: usize, scale: f32| scale * (1.0 + ((row + 3 * t) % 5) as f32 - 2.0);
    let count = scores.logprobs.len();
    Cotangent {
        logprobs: (0..count).map(|t| weight(t, 0.3)).collect(),
        entropies: (0..count).map(|t| weight(t, -0.1)).collect(),
        values: (0..scores.values.len()).map(|t| weight(t, 0.2)).collect(),
    }
}

fn critic(shape: Shape, shared: bool) -> Transformer {
    let mut weights = Weights::random(shape, 0.3, 5).expect("the sizes fit");
    let device = policy::device("cpu").expect("a CPU");
    if !shared {
        return Transformer::critic(weights, device, 2);
    }
    weights = weights.with_value_head();
    let head = weights.values().len() - weights.shape().width;
    weights.values_mut()[head..].iter_mut().enumerate().for_each(|(i, weight)| *weight = 0.3 - 0.1 * i as f32);
    Transformer::new(weights, device, 2)
}

/// Σ over tokens of what [`cotangent`] is the derivative of.
fn loss(policy: &Transformer, rows: &[Row<'_>]) -> f64 {
    let scores = policy.score(rows, 0.8);
    let of = |(row, scores): (usize, &Scores)| {
        let c = cotangent(row, scores);
        let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(&a, &b)| f64::from(a) * f64::from(b)).sum::<f64>();
        dot(&c.logprobs, &scores.logprobs) + dot(&c.entropies, &scores.entropies) + dot(&c.values, &scores.values)
    };
    scores.iter().enumerate().map(of).sum()
}

/// A step of plain gradient descent in effect: the moments after one step hold the gradient.
fn gradient(policy: &mut Transformer, rows: &[Row<'_>], shards: &[std::ops::Range<usize>]) -> Vec<f32> {
    policy.gradient(rows, shards, 0.8, &cotangent);
    let optimizer = Optimizer { learning_rate: 0.0, beta1: 0.0, weight_decay: 0.0, clip_norm: 1e12, ..ADAM };
    policy.step(&optimizer).expect("a finite gradient");
    let files = policy.save();
    let file = safetensors::SafeTensors::deserialize(&files[1].1).expect("a file");
    let parts = policy.weights().shape().parts().into_iter().map(|part| part.name);
    let head = (files.len() == 3).then(|| "value_head.weight".to_owned());
    let read = |name: String| file.tensor(&format!("first.{name}")).expect("there").data().to_vec();
    let bytes: Vec<u8> = parts.chain(head).flat_map(read).collect();
    bytes.as_chunks().0.iter().map(|b| f32::from_le_bytes(*b)).collect()
}

#[test]
fn the_gradient_is_that_of_central_differences() {
    families(micro()).into_iter().for_each(|shape| differences(transformer(shape, 1)));
    differences(critic(micro(), true));
}

fn differences(mut policy: Transformer) {
    let played = play(&policy, &sampling(1.0), &[0, 1, 2], 6);
    let rows = rows(&played);
    let analytic = gradient(&mut policy, &rows, &[0..2, 2..3]);
    let values = policy.weights().values().to_vec();
    let scale = analytic.iter().fold(0.0f64, |m, &g| m.max(f64::from(g).abs()));
    for i in (0..values.len()).step_by(7) {
        let at = |delta: f32| {
            let mut weights = policy.weights().clone();
            weights.values_mut()[i] += delta;
            let step = f64::from(weights.values()[i]) - f64::from(values[i]);
            (loss(&Transformer::new(weights, policy::device("cpu").expect("a CPU"), 1), &rows), step)
        };
        let ((up, above), (down, below)) = (at(2e-2), at(-2e-2));
        let ((near_up, near_above), (near_down, near_below)) = (at(1e-2), at(-1e-2));
        let (far, near) = ((up - down) / (above - below), (near_up - near_down) / (near_above - near_below));
        let numeric = (4.0 * near - far) / 3.0;
        let difference = (numeric - f64::from(analytic[i])).abs();
        assert!(difference < 2e-3 * scale, "parameter {i}: {numeric} and {} of {scale}", analytic[i]);
    }
}

/// Nor does the memory that there is change anything.
#[test]
fn learning_is_the_same_on_any_number_of_threads_and_however_calls_are_split() {
    for shape in [small()].into_iter().chain(real()) {
        let limit = if shape == small() { 10 } else { 4 };
        let played = play(&transformer(shape.clone(), 1), &sampling(1.0), &(0..8).collect::<Vec<_>>(), limit);
        let rows = rows(&played);
        let shards = [0..3, 3..4, 4..6, 6..8];
        let [mut one, mut two, mut split, frugal] = [1, 2, 2, 3].map(|threads| transformer(shape.clone(), threads));
        let mut frugal = frugal.within(Memory { activations: 0, ..Memory::AMPLE });
        let a = one.gradient(&rows, &shards, 0.9, &cotangent);
        assert_eq!(a, one.score(&rows, 0.9));
        assert!(a == two.gradient(&rows, &shards, 0.9, &cotangent));
        assert!(a == frugal.gradient(&rows, &shards, 0.9, &cotangent));
        for part in [&shards[..1], &shards[1..3], &shards[3..]] {
            split.gradient(&rows, part, 0.9, &cotangent);
        }
        let norm = one.step(&ADAM).expect("finite").gradient;
        let saved = one.save();
        assert!(norm > 0.0);
        for mut other in [two, split, frugal] {
            assert!(other.step(&ADAM).expect("finite").gradient == norm && other.save() == saved);
        }
    }
}

/// Members of a group: one prompt, which one of them ends with; each goes its own way after it, some together.
fn group() -> Vec<(Vec<u32>, std::ops::Range<usize>)> {
    let prompt: Vec<u32> = (0..21).map(|i| 2 + i * 7 % 30).collect();
    let answers: [&[u32]; 5] = [&[3, 4, 5, 1], &[3, 4, 6], &[], &[9], &[3, 4, 5, 1]];
    answers.map(|answer| ([&prompt, answer].concat(), 18..prompt.len() + answer.len())).into()
}

/// What the rows of a shard begin with is read once: no score shows it, and the gradient is the same but for rounding.
#[test]
fn a_shared_prompt_is_learnt_from_as_if_it_stood_in_every_row() {
    let group = group();
    let rows: Vec<_> =
        group.iter().map(|(tokens, response)| Row { tokens, responses: std::slice::from_ref(response) }).collect();
    let alone: Vec<_> = (0..rows.len()).map(|row| row..row + 1).collect();
    for shape in [small()].into_iter().chain(real()) {
        let [mut shared, mut written] = [1, 1].map(|_| transformer(shape.clone(), 2));
        let scores: Vec<Scores> = rows.iter().flat_map(|row| written.score(&[*row], 0.8)).collect();
        assert_eq!(shared.score(&rows, 0.8), scores);
        let (a, b) = (gradient(&mut shared, &rows, &[0..5]), gradient(&mut written, &rows, &alone));
        let scale = b.iter().fold(0.0f32, |m, g| m.max(g.abs()));
        let worst = a.iter().zip(&b).fold(0.0f32, |m, (a, b)| m.max((a - b).abs()));
        assert!(worst < 1e-5 * scale, "{worst} of {scale}");
    }
}

/// Episodes that begin alike read their prompt once, and no completion shows it.
#[test]
fn a_shared_prompt_is_sampled_after_as_if_each_had_read_it() {
    let group = group();
    let request = |episode: usize, prompt: usize| Request {
        episode,
        prompt: &group[prompt].0[..21 + usize::from(prompt == 3)],
        draws: Stream::new("sample", 3, &[episode as u64]),
        limit: 9,
        legal: &[],
        advice: None,
    };
    let prompts = [0, 1, 3, 0, 3, 0, 1];
    let requests: Vec<_> = prompts.iter().enumerate().map(|(episode, &prompt)| request(episode, prompt)).collect();
    for shape in [small()].into_iter().chain(real()) {
        let policy = transformer(shape, 2);
        let together = policy.open(&sampling(1.0), 7).generate(&requests);
        for (request, completion) in requests.iter().zip(together) {
            assert_eq!(policy.open(&sampling(1.0), 7).generate(std::slice::from_ref(request)), [completion]);
        }
    }
}

#[test]
fn a_value_head_changes_no_score_and_values_see_what_is_before_their_token() {
    let (plain, shared, alone) = (transformer(small(), 1), critic(small(), true), critic(small(), false));
    let played = play(&plain, &sampling(1.0), &(0..12).collect::<Vec<_>>(), 10);
    assert_eq!(played, play(&shared, &sampling(1.0), &(0..12).collect::<Vec<_>>(), 10));
    for (own, both) in plain.score(&rows(&played), 0.7).iter().zip(shared.score(&rows(&played), 0.7)) {
        assert_eq!((&own.logprobs, &own.entropies, own.values.len()), (&both.logprobs, &both.entropies, 0));
        assert_eq!(both.values.len(), own.logprobs.len());
    }
    let zeros = |scores: &Scores| scores.logprobs.is_empty() && scores.values.iter().all(|value| *value == 0.0);
    assert!(alone.score(&rows(&played), 0.7).iter().all(zeros), "before it learns, every value is 0");
    let (mut tokens, response) = (vec![2, 3, 4, 5, 6], 2..5);
    let values = |tokens: &[u32]| {
        let row = Row { tokens, responses: std::slice::from_ref(&response) };
        shared.score(&[row], 1.0)[0].values.clone()
    };
    let before = values(&tokens);
    tokens[3] = 7;
    let after = values(&tokens);
    assert_eq!(before[..2], after[..2]);
    assert_ne!(before[2], after[2]);
}

#[test]
fn a_critic_learns_what_is_returned() {
    for mut critic in [critic(micro(), false), critic(micro(), true)] {
        let rows = [vec![2, 3, 4, 5], vec![2, 6, 4, 5]];
        let rows = rows.each_ref().map(|tokens| Row { tokens, responses: &[2..4] });
        for _ in 0..80 {
            critic.gradient(&rows, &[0..2], 1.0, &|row, scores| {
                let target = [1.0, -0.5][row];
                let rest = vec![0.0; scores.logprobs.len()];
                let values = scores.values.iter().map(|value| value - target).collect();
                Cotangent { logprobs: rest.clone(), entropies: rest, values }
            });
            critic.step(&ADAM).expect("a finite gradient");
        }
        for (scores, target) in critic.score(&rows, 1.0).iter().zip([1.0, -0.5]) {
            assert!(scores.values.iter().all(|value| (value - target).abs() < 0.1), "{:?} {target}", scores.values);
        }
        let files = critic.save();
        let names: Vec<&str> = files.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["model.safetensors", "optimizer.safetensors", "value-head.safetensors"]);
        let scores = critic.score(&rows, 1.0);
        critic.gradient(&rows, &[0..2], 1.0, &cotangent);
        assert!(critic.discard() > 0.0);
        assert_eq!(critic.discard(), 0.0);
        critic.restore(&files).expect("its own files");
        assert!(critic.save() == files && critic.score(&rows, 1.0) == scores);
        assert_eq!(critic.restore(&files[..2]).expect_err("no head"), "value-head.safetensors is missing");
        // The decoder alone is a model like any other.
        let model = Weights::from_safetensors(micro(), &files[0].1).expect("a decoder");
        assert_eq!(model.values().len() + micro().width, critic.weights().values().len());
    }
}

#[test]
fn a_toy_sequence_is_learnt() {
    let mut policy = transformer(micro(), 2);
    let tokens: Vec<u32> = (0..24).map(|i| 2 + [0, 3, 1, 4, 2, 5][i % 6]).collect();
    let row = Row { tokens: &tokens, responses: &[1..24] };
    let loss = |policy: &Transformer| -policy.score(&[row], 1.0)[0].logprobs.iter().sum::<f32>() / 23.0;
    let before = loss(&policy);
    for _ in 0..60 {
        policy.gradient(&[row], &[0..1], 1.0, &|_, scores| Cotangent {
            logprobs: vec![-1.0 / 23.0; scores.logprobs.len()],
            entropies: vec![0.0; scores.logprobs.len()],
            values: vec![],
        });
        policy.step(&ADAM).expect("a finite gradient");
    }
    let after = loss(&policy);
    assert!(before > 1.5 && after < 0.1, "{before} to {after}");
}

#[test]
fn a_restored_policy_goes_on_as_the_saved_one() {
    let played = play(&transformer(micro(), 1), &sampling(1.0), &[0, 1], 6);
    let rows = rows(&played);
    let mut policy = transformer(micro(), 1);
    let train = |policy: &mut Transformer| {
        policy.gradient(&rows, &[0..2], 1.0, &cotangent);
        policy.step(&ADAM).expect("a finite gradient")
    };
    train(&mut policy);
    let files = policy.save();
    let mut other = transformer(micro(), 2);
    other.restore(&files).expect("its own files");
    assert!(other.save() == files);
    assert_eq!(train(&mut policy), train(&mut other));
    assert!(policy.save() == other.save());
}

/// Only adapters learn; the checkpoint is the merged model beside them.
#[test]
fn low_rank_changes_learn_and_go_on() {
    let targets = vec![Projection::Query, Projection::Value, Projection::Up, Projection::Down];
    let config = LoraConfig { rank: 4, alpha: 8.0, targets };
    for shared in [false, true] {
        let start = || match shared {
            true => critic(micro(), true),
            false => transformer(micro(), 2),
        };
        let mut policy = start().with_lora(&config, 1);
        let tokens: Vec<u32> = (0..24).map(|i| 2 + [0, 3, 1, 4, 2, 5][i % 6]).collect();
        let row = Row { tokens: &tokens, responses: &[1..24] };
        let train = |policy: &mut Transformer| {
            policy.gradient(&[row], &[0..1], 1.0, &|_, scores| Cotangent {
                logprobs: vec![-1.0 / 23.0; scores.logprobs.len()],
                entropies: vec![0.0; scores.logprobs.len()],
                values: scores.values.iter().map(|value| value - 1.0).collect(),
            });
            policy.step(&ADAM).expect("a finite gradient")
        };
        let loss = |policy: &Transformer| -policy.score(&[row], 1.0)[0].logprobs.iter().sum::<f32>() / 23.0;
        let before = loss(&policy);
        (0..40).for_each(|_| {
            train(&mut policy);
        });
        assert!(loss(&policy) < 0.6 * before, "{before} to {}", loss(&policy));
        let (new, old) = (policy.weights(), start());
        for part in micro().parts() {
            let adapted = ["q_proj", "v_proj", "up_proj", "down_proj"].iter().any(|name| part.name.contains(name));
            let changed = new.values()[part.range.clone()] != old.weights().values()[part.range];
            assert_eq!(changed, adapted, "{}", part.name);
        }
        let files = policy.save();
        let mut other = start().with_lora(&config, 2);
        other.restore(&files).expect("its own files");
        assert!(other.save() == files && train(&mut policy) == train(&mut other) && policy.save() == other.save());
        let stranger = Transformer::new(
            Weights::random(micro(), 0.2, 9).expect("the sizes fit"),
            policy::device("cpu").expect("a CPU"),
            1,
        );
        if !shared {
            let error = stranger.with_lora(&config, 1).restore(&files).expect_err("another start");
            assert_eq!(error, "model.safetensors is not what this policy started from with adapter_model.safetensors");
        }
    }
}

#[test]
fn what_cannot_be_restored_is_named() {
    let mut policy = transformer(micro(), 1);
    let files = policy.save();
    let fails = |policy: &mut Transformer, files: &[(String, Vec<u8>)]| policy.restore(files).expect_err("bad files");
    assert_eq!(fails(&mut policy, &files[..1]), "optimizer.safetensors is missing");
    let mut cut = files.clone();
    cut[0].1.pop();
    assert!(fails(&mut policy, &cut).starts_with("model.safetensors: not a whole safetensors file"));
    let mut extra = files.clone();
    extra.push(("a".into(), vec![]));
    assert_eq!(fails(&mut policy, &extra), "a is not a file of this policy");
    let wider = transformer(Shape { ffn: 24, ..micro() }, 1).save();
    assert_eq!(
        fails(&mut policy, &wider),
        "model.safetensors: tensor `model.layers.0.mlp.gate_proj.weight` has shape [24, 8], not [16, 8]"
    );
    let deeper = transformer(Shape { layers: 3, ..micro() }, 1).save();
    assert!(fails(&mut policy, &deeper).ends_with("is not one of this model's"));
    assert!(policy.save() == files);
}

#[test]
fn a_gradient_that_is_not_finite_changes_nothing() {
    let mut policy = transformer(micro(), 1);
    let files = policy.save();
    let row = Row { tokens: &[2, 3, 4], responses: &[1..3] };
    policy.gradient(&[row], &[0..1], 1.0, &|_, _| Cotangent {
        logprobs: vec![f32::INFINITY, 1.0],
        entropies: vec![0.0; 2],
        values: vec![],
    });
    assert!(policy.step(&ADAM).is_err_and(|norm| !norm.is_finite()));
    assert!(policy.save() == files);
    assert_eq!(policy.step(&ADAM).map(|n| n.gradient), Ok(0.0));
}

#[test]
fn a_device_that_is_not_there_is_one_clear_error() {
    let error = policy::device("tpu").expect_err("no such device");
    assert_eq!(error, "device `tpu` is none of `cpu`, `wgpu`, `cuda:0`, `cuda:1`, …");
    assert!(policy::device("cuda:7").expect_err("no such device").starts_with("device `cuda:7`: "));
}
