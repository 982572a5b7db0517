//! Word problems of arithmetic: a number of things that is added to, taken from, multiplied and shared.

use super::Problem;
use crate::rng::Stream;

const NAMES: [&str; 10] = ["Ada", "Bruno", "Chloe", "Dario", "Elif", "Farid", "Greta", "Hana", "Ivan", "Jomo"];
const THINGS: [&str; 10] =
    ["apples", "marbles", "stamps", "pencils", "shells", "buttons", "coins", "cards", "eggs", "tickets"];

/// Largest number that is multiplied further.
const LARGE: u64 = 60;

/// A problem of so many calculations; every intermediate result is a whole number of at least 1.
pub(super) fn problem(operations: usize, stream: &mut Stream) -> Problem {
    let (name, things) = (*stream.pick(&NAMES), *stream.pick(&THINGS));
    let mut value = 2 + stream.below(19) as u64;
    let mut story = vec![format!("{name} has {value} {things}.")];
    let (mut calculation, mut steps) = (value.to_string(), Vec::new());
    for _ in 0..operations {
        let (sign, operand) = operation(value, stream);
        story.push(sentence(name, things, sign, operand));
        let next = match sign {
            '+' => value + operand,
            '-' => value - operand,
            '*' => value * operand,
            _ => value / operand,
        };
        calculation.push_str(&format!(" {sign} {operand}"));
        steps.push(format!("{value} {sign} {operand} = {next}"));
        value = next;
    }
    story.push(format!("How many {things} does {name} have now?"));
    Problem { question: story.join(" "), answer: value.to_string(), thought: steps.join("; "), identity: calculation }
}

/// A calculation that `value` allows, each kind as likely.
fn operation(value: u64, stream: &mut Stream) -> (char, u64) {
    let divisors: Vec<u64> = (2..=9).filter(|divisor| value.is_multiple_of(*divisor) && value > *divisor).collect();
    let mut signs = vec!['+'];
    signs.extend((value > 1).then_some('-'));
    signs.extend((value <= LARGE).then_some('*'));
    signs.extend((!divisors.is_empty()).then_some('/'));
    let sign = *stream.pick(&signs);
    let operand = match sign {
        '+' => 1 + stream.below(20) as u64,
        '-' => 1 + stream.below(value as usize - 1) as u64,
        '*' => 2 + stream.below(4) as u64,
        _ => *stream.pick(&divisors),
    };
    (sign, operand)
}

fn sentence(name: &str, things: &str, sign: char, operand: u64) -> String {
    match sign {
        '+' => format!("Then {name} finds {operand} more."),
        '-' => format!("Then {name} gives {operand} of them away."),
        '*' => format!("Then a trade leaves {name} with {operand} times as many {things}."),
        _ => format!("Then {name} puts them into {operand} equal piles and keeps one pile."),
    }
}
