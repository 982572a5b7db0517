//! A replay as a table for people.

use std::fmt::{self, Write as _};

use super::{GroupReplay, LossReplay, Replay, RowReplay};

/// The whole table; lines end in newlines, columns are aligned.
pub(super) fn render(replay: &Replay) -> String {
    let mut out = String::new();
    // Writing to a string cannot fail.
    let _ = write(&mut out, replay);
    out
}

fn write(out: &mut String, replay: &Replay) -> fmt::Result {
    writeln!(out, "{:>5}  {:<12}  {:>9}  {:>9}  {:>9}  verdict", "group", "env", "mean", "std", "score")?;
    replay.groups.iter().try_for_each(|group| write_group(out, group))?;
    let filter = &replay.filter;
    let threshold = filter.threshold.map_or_else(|| "none".into(), number);
    let empty = if filter.empty { ", nothing is left" } else { "" };
    writeln!(
        out,
        "\nfilter {}: kept {} of {} groups, threshold {threshold}{empty}",
        filter.strategy,
        filter.kept.len(),
        replay.groups.len()
    )?;
    replay.rows.iter().try_for_each(|row| write_row(out, row))?;
    replay.loss.as_ref().map_or(Ok(()), |loss| write_loss(out, loss))
}

fn write_group(out: &mut String, group: &GroupReplay) -> fmt::Result {
    let score = group.score.map_or_else(|| "-".into(), number);
    let verdict = group.reason.map_or_else(|| "kept".into(), |reason| format!("dropped: {reason}"));
    let scores: Vec<String> = group.scores.iter().map(|score| number(*score)).collect();
    writeln!(
        out,
        "{:>5}  {:<12}  {:>9}  {:>9}  {score:>9}  {verdict:<20}  {}",
        group.group,
        group.env,
        number(group.mean),
        number(group.std),
        scores.join(" ")
    )
}

/// A strip of the row's tokens: runs of equal numbers.
fn write_row(out: &mut String, row: &RowReplay) -> fmt::Result {
    let turns: Vec<String> = row.turns.iter().map(ToString::to_string).collect();
    writeln!(out, "\nrow {}.{}  turns {}", row.group, row.member, turns.join(" "))?;
    writeln!(
        out,
        "  {:>11}  {:>4}  {:>9}  {:>12}  {:>12}  {:>9}",
        "tokens", "mask", "reward", "advantage", "return", "weight"
    )?;
    let numbers = |token: usize| [row.rewards[token], row.advantages[token], row.returns[token], row.weights[token]];
    let key = |token: usize| (row.mask[token], numbers(token).map(f64::to_bits));
    let tokens: Vec<usize> = (0..row.mask.len()).collect();
    for run in tokens.chunk_by(|a, b| key(*a) == key(*b)) {
        let (first, end) = (run[0], run[0] + run.len());
        let [reward, advantage, ahead, weight] = numbers(first).map(number);
        let (tokens, mask) = (format!("{first}..{end}"), row.mask[first]);
        writeln!(out, "  {tokens:>11}  {mask:>4}  {reward:>9}  {advantage:>12}  {ahead:>12}  {weight:>9}")?;
    }
    Ok(())
}

fn write_loss(out: &mut String, loss: &LossReplay) -> fmt::Result {
    let [total, policy, kl, entropy] = [loss.total, loss.policy, loss.kl, loss.entropy].map(number);
    let value = loss.value.map(|value| format!(", value {}", number(value))).unwrap_or_default();
    writeln!(out, "\nloss {total} = policy {policy}, kl {kl}, entropy {entropy}{value}; each without its coefficient")?;
    let (upper, lower) = (number(loss.clip_fraction), number(loss.clip_fraction_lower));
    writeln!(out, "clipped {upper} of tokens, {lower} by the dual bound")
}

/// Six decimals without trailing zeros; a number that is not one is `-`.
fn number(value: f64) -> String {
    if !value.is_finite() {
        return "-".into();
    }
    let text = format!("{value:.6}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" { "0".into() } else { text.into() }
}
