//! Blackjack: come closer to 21 than the dealer, after gymnasium (Sutton and Barto 2018, example 5.1) as GymCards and
//! verl-agent play it: an infinite deck, a dealer who draws below 17, no extra pay for a natural.
//!
//! How we differ: a loss pays −1, where verl-agent floors the reward at 0, so that a draw is better than a loss; the
//! task is what the player sees, and all other cards are the episode's own, where a group's members there draw alike
//! (`shared-deck #true` does so here); splits are disjoint by content.

use super::{Advice, Environment, Episode, Outcome, Step};
use crate::config::section;
use crate::rng::Stream;
use crate::trajectory::Split;

section! {
    /// Blackjack: come closer to 21 than the dealer without going over, from an infinite deck.
    ///
    /// A win pays 1, a draw 0, a loss −1. Ends when the player stands or goes over 21: solved by a win alone.
    pub struct Blackjack epoch 1 {
        /// Whether all members of a group draw from the same cards.
        pub shared_deck: bool,
    }
}

const ACTIONS: [&str; 2] = ["hit", "stand"];

/// A card's value, 1 for an ace; of thirteen cards four count ten.
fn card(stream: &mut Stream) -> usize {
    (1 + stream.below(13)).min(10)
}

/// Cards by value, in the order in which they came.
#[derive(Clone)]
struct Hand(Vec<usize>);

impl Hand {
    /// The sum, and whether an ace counts 11 in it.
    fn total(&self) -> (usize, bool) {
        let hard: usize = self.0.iter().sum();
        let soft = self.0.contains(&1) && hard + 10 <= 21;
        (if soft { hard + 10 } else { hard }, soft)
    }

    /// `A, 7 (soft 18)`.
    fn text(&self) -> String {
        let cards: Vec<String> = self.0.iter().map(|&card| name(card)).collect();
        format!("{} ({})", cards.join(", "), self.sum())
    }

    fn sum(&self) -> String {
        match self.total() {
            (sum, true) => format!("soft {sum}"),
            (sum, false) => sum.to_string(),
        }
    }
}

fn name(card: usize) -> String {
    if card == 1 { "A".to_owned() } else { card.to_string() }
}

/// Whether the player should draw: what maximises the expected reward under these rules.
fn basic_strategy((sum, soft): (usize, bool), dealer: usize) -> bool {
    match (soft, sum) {
        (true, 18) => matches!(dealer, 9 | 10 | 1),
        (true, _) => sum < 18,
        (false, 12) => !matches!(dealer, 4..=6),
        (false, 13..=16) => !matches!(dealer, 2..=6),
        (false, _) => sum < 12,
    }
}

/// What the player sees at first.
#[derive(Clone)]
struct Deal {
    player: Hand,
    dealer: usize,
}

impl Deal {
    fn find(split: Split, index: u64) -> Option<Self> {
        let candidate = |stream: &mut Stream| {
            let player = Hand(vec![card(stream), card(stream)]);
            Some(Self { player, dealer: card(stream) })
        };
        super::draw("task/blackjack", split, index, candidate, Self::text)
    }

    /// In an order of its own: two cards are the same hand whichever came first.
    fn text(&self) -> String {
        let mut player = self.player.clone();
        player.0.sort_unstable();
        format!("{} against {}", player.text(), name(self.dealer))
    }

    fn of(split: Split, index: u64) -> Self {
        Self::find(split, index).unwrap_or_else(|| panic!("no deal {index} of {}", split.name()))
    }
}

impl Environment for Blackjack {
    fn instruction(&self) -> String {
        "You are playing blackjack against a dealer. Come closer to 21 than the dealer, but not over it. Number cards \
         count their value, faces count 10, an ace counts 11 where that keeps the sum at 21 or below (a soft sum), \
         else 1. Hit draws a card; above 21 you lose. Stand ends your turn: the dealer then draws up to 17 or more. \
         Actions: hit, stand."
            .to_owned()
    }

    fn start(&self, split: Split, index: u64, dynamics: Stream) -> Box<dyn Episode> {
        let Deal { player, dealer } = Deal::of(split, index);
        Box::new(Round {
            player,
            dealer: Hand(vec![dealer]),
            over: false,
            dynamics,
            actions: ACTIONS.map(str::to_owned),
        })
    }

    /// The player's cards, the lower first, and the dealer's.
    fn identity(&self, split: Split, index: u64) -> String {
        Deal::of(split, index).text()
    }

    fn shared_dynamics(&self) -> bool {
        self.shared_deck
    }
}

struct Round {
    player: Hand,
    /// The card shown, and once the player stands those drawn after it.
    dealer: Hand,
    over: bool,
    dynamics: Stream,
    actions: [String; 2],
}

impl Round {
    /// 1, 0 or −1, when the player stands.
    fn stand(&mut self) -> f64 {
        self.dealer.0.push(card(&mut self.dynamics));
        while self.dealer.total().0 < 17 {
            self.dealer.0.push(card(&mut self.dynamics));
        }
        let ((player, _), (dealer, _)) = (self.player.total(), self.dealer.total());
        match player.cmp(&dealer) {
            _ if dealer > 21 => 1.0,
            std::cmp::Ordering::Greater => 1.0,
            std::cmp::Ordering::Equal => 0.0,
            std::cmp::Ordering::Less => -1.0,
        }
    }
}

impl Episode for Round {
    fn observe(&self) -> String {
        let dealer = match self.dealer.0.as_slice() {
            &[shown] => format!("Dealer shows: {}", name(shown)),
            _ => format!("Dealer: {}", self.dealer.text()),
        };
        format!("Your cards: {}\n{dealer}", self.player.text())
    }

    fn actions(&self) -> &[String] {
        &self.actions
    }

    fn act(&mut self, action: &str) -> Step {
        assert!(!self.over, "the episode has ended");
        let reward = match action {
            "hit" => {
                self.player.0.push(card(&mut self.dynamics));
                (self.player.total().0 > 21).then_some(-1.0)
            }
            "stand" => Some(self.stand()),
            other => panic!("action {other}"),
        };
        self.over = reward.is_some();
        let outcome = reward.map(|reward| if reward > 0.0 { Outcome::Solved } else { Outcome::Failed });
        Step { reward: reward.unwrap_or(0.0), effective: true, outcome }
    }

    /// Basic strategy, a card at a time, since the next move depends on the card.
    fn expert(&self, _: usize) -> Option<Advice> {
        let action = if basic_strategy(self.player.total(), self.dealer.0[0]) { "hit" } else { "stand" };
        let thought = format!("{} against {}: {action}", self.player.sum(), name(self.dealer.0[0]));
        (!self.over).then(|| Advice { thought, actions: vec![action.to_owned()] })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    const CARDS: std::ops::RangeInclusive<usize> = 1..=10;

    fn weight(card: usize) -> f64 {
        if card == 10 { 4.0 / 13.0 } else { 1.0 / 13.0 }
    }

    fn with(hand: &Hand, card: usize) -> Hand {
        Hand(hand.0.iter().copied().chain([card]).collect())
    }

    /// The distribution of the dealer's last sum.
    fn dealer(hand: &Hand, share: f64, sums: &mut BTreeMap<usize, f64>) {
        match hand.total().0 {
            sum @ 17.. => *sums.entry(sum).or_default() += share,
            _ => CARDS.for_each(|card| dealer(&with(hand, card), share * weight(card), sums)),
        }
    }

    /// Hand by hand, what drawing gives more than standing; and the better of both.
    struct Values {
        sums: BTreeMap<usize, f64>,
        known: BTreeMap<(usize, bool), (f64, f64)>,
    }

    impl Values {
        fn of(&mut self, hand: &Hand) -> (f64, f64) {
            let total = hand.total();
            if total.0 > 21 {
                return (0.0, -1.0);
            }
            if let Some(&known) = self.known.get(&total) {
                return known;
            }
            let pay = |&(&sum, share): &(&usize, &f64)| match sum {
                22.. => *share,
                sum => share * (f64::from(total.0 > sum) - f64::from(total.0 < sum)),
            };
            let stand: f64 = self.sums.iter().map(|entry| pay(&entry)).sum();
            let hit: f64 = CARDS.map(|card| weight(card) * self.of(&with(hand, card)).1).sum();
            self.known.insert(total, (hit - stand, hit.max(stand)));
            (hit - stand, hit.max(stand))
        }
    }

    #[test]
    fn basic_strategy_is_the_best_play() {
        let mut expected = 0.0;
        for shown in CARDS {
            let mut sums = BTreeMap::new();
            dealer(&Hand(vec![shown]), 1.0, &mut sums);
            assert!((sums.values().sum::<f64>() - 1.0).abs() < 1e-12);
            let mut values = Values { sums, known: BTreeMap::new() };
            for hand in CARDS.flat_map(|a| CARDS.map(move |b| Hand(vec![a, b]))) {
                let share = weight(hand.0[0]) * weight(hand.0[1]) * weight(shown);
                expected += share * values.of(&hand).1;
            }
            for (total, (gain, _)) in values.known {
                assert_eq!(basic_strategy(total, shown), gain > 0.0, "{total:?} against {shown}");
            }
        }
        assert!((expected + 0.0466).abs() < 1e-4, "the dealer's edge is {expected}");
    }
}
