//! Stickers and turns, from the geometry alone.
//!
//! Corners stand at (±1, ±1, ±1): x to the right, y up, z to the viewer. Place 3·corner + axis is the sticker of a
//! corner (bit k set where coordinate k is 1) that looks along an axis. A cube says which sticker lies in each place; a
//! turn about an outward axis n takes v to v × n + n(n·v), a quarter clockwise as seen from outside.

use std::array::from_fn;
use std::sync::LazyLock;

/// Names of the moves, in RAGEN's order.
pub(super) const MOVES: [&str; 12] = ["U", "U'", "D", "D'", "L", "L'", "R", "R'", "F", "F'", "B", "B'"];

/// The faces that moves turn, in the order of [`MOVES`]: axis and whether it lies on its positive side.
const FACES: [(usize, bool); 6] = [(1, true), (1, false), (0, false), (0, true), (2, true), (2, false)];

/// Each face as it is shown: its name, its axis, and its corners by rows, seen from outside.
const VIEWS: [(char, usize, [usize; 4]); 6] = [
    ('U', 1, [0b010, 0b011, 0b110, 0b111]),
    ('L', 0, [0b010, 0b110, 0b000, 0b100]),
    ('F', 2, [0b110, 0b111, 0b100, 0b101]),
    ('R', 0, [0b111, 0b011, 0b101, 0b001]),
    ('B', 2, [0b011, 0b010, 0b001, 0b000]),
    ('D', 1, [0b100, 0b101, 0b000, 0b001]),
];

/// Where each place's sticker goes.
type Places = [u8; 24];

/// The stickers of a cube by their places.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cube(Places);

/// A quarter turn clockwise of a face, or of the whole cube.
fn quarter(axis: usize, positive: bool, whole: bool) -> Places {
    let (b, c) = ((axis + 1) % 3, (axis + 2) % 3);
    from_fn(|place| {
        let (corner, looks) = (place / 3, place % 3);
        let side = |k: usize| corner >> k & 1 == 1;
        if !whole && side(axis) != positive {
            return place as u8;
        }
        let kept = usize::from(side(axis)) << axis;
        let moved = usize::from(side(c) == positive) << b | usize::from(side(b) != positive) << c;
        let looks = if looks == axis { axis } else { b + c - looks };
        (3 * (kept | moved) + looks) as u8
    })
}

/// `first`, then `second`.
fn then(first: &Places, second: &Places) -> Places {
    first.map(|place| second[place as usize])
}

static TURNS: LazyLock<[Places; 12]> = LazyLock::new(|| {
    from_fn(|turn| {
        let (axis, positive) = FACES[turn / 2];
        let once = quarter(axis, positive, false);
        if turn % 2 == 0 { once } else { then(&then(&once, &once), &once) }
    })
});

/// The 24 rotations of the whole cube: number n takes place n to place 0.
static ROTATIONS: LazyLock<[Places; 24]> = LazyLock::new(|| {
    let mut found = vec![from_fn(|place| place as u8)];
    let mut next = 0;
    while next < found.len() {
        for axis in 0..3 {
            let further = then(&found[next], &quarter(axis, true, true));
            if !found.contains(&further) {
                found.push(further);
            }
        }
        next += 1;
    }
    let taking = |place: usize| found.iter().find(|rotation| rotation[place] == 0);
    from_fn(|place| *taking(place).unwrap_or_else(|| unreachable!("rotations act transitively on the places")))
});

impl Cube {
    /// White up, green in front.
    pub(super) fn new() -> Self {
        Self(from_fn(|place| place as u8))
    }

    /// Turned as a whole, in one of 24 ways.
    pub(super) fn positioned(&self, position: usize) -> Self {
        self.moved(&ROTATIONS[position])
    }

    fn moved(&self, places: &Places) -> Self {
        let mut cube = *self;
        self.0.iter().zip(places).for_each(|(&sticker, &to)| cube.0[to as usize] = sticker);
        cube
    }

    /// After move number `turn` of [`MOVES`].
    pub(super) fn turn(&self, turn: usize) -> Self {
        self.moved(&TURNS[turn])
    }

    /// Turned as a whole so that sticker 0 lies in place 0: what cubes that differ by their position share.
    pub(super) fn upright(&self) -> Self {
        let place = self.0.iter().position(|&sticker| sticker == 0).unwrap_or(0);
        self.positioned(place)
    }

    /// The sticker in a place.
    pub(super) fn sticker(&self, place: usize) -> usize {
        usize::from(self.0[place])
    }

    pub(super) fn solved(&self) -> bool {
        self.upright() == Self::new()
    }

    /// A line a face: its name and its rows of colours.
    pub(super) fn show(&self) -> String {
        let colour = |sticker: usize| {
            let (corner, axis) = (sticker / 3, sticker % 3);
            [['O', 'R'], ['Y', 'W'], ['B', 'G']][axis][corner >> axis & 1]
        };
        let face = |(name, axis, corners): (char, usize, [usize; 4])| {
            let [a, b, c, d] = corners.map(|corner| colour(self.sticker(3 * corner + axis)));
            format!("{name}: {a}{b} {c}{d}")
        };
        VIEWS.map(face).join("\n")
    }
}
