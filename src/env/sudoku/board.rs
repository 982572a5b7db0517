//! A board and the numbers that still fit.

/// Kinds of unit, in the order in which they are numbered.
pub(super) const UNITS: [&str; 3] = ["row", "column", "box"];

/// A square of cells with numbers, 0 where a cell is empty, none of which repeats in a row, column or box.
#[derive(Clone, Debug)]
pub(super) struct Board {
    size: usize,
    cells: Vec<u8>,
    /// The numbers of each row, column and box, as bits.
    units: [Vec<u32>; 3],
}

impl Board {
    pub(super) fn new(size: usize) -> Self {
        Self { size, cells: vec![0; size * size], units: std::array::from_fn(|_| vec![0; size]) }
    }

    pub(super) fn parse(size: usize, text: &str) -> Result<Self, String> {
        let mut board = Self::new(size);
        let words: Vec<&str> = text.split_whitespace().collect();
        if words.len() != board.cells.len() {
            return Err(format!("{} cells, not {}", words.len(), board.cells.len()));
        }
        for (cell, word) in words.into_iter().enumerate().filter(|(_, word)| *word != "_") {
            let number = word.parse().ok().filter(|number| board.candidates(cell) >> number & 1 == 1);
            board.set(cell, number.ok_or_else(|| format!("cell {cell}: {word} does not fit"))?);
        }
        Ok(board)
    }

    pub(super) fn cells(&self) -> usize {
        self.cells.len()
    }

    pub(super) fn at(&self, cell: usize) -> u8 {
        self.cells[cell]
    }

    pub(super) fn full(&self) -> bool {
        !self.cells.contains(&0)
    }

    /// The cell's row, column and box.
    fn unit(&self, kind: usize, cell: usize) -> usize {
        let (row, column) = (cell / self.size, cell % self.size);
        let side = self.size.isqrt();
        [row, column, row / side * side + column / side][kind]
    }

    /// The cell numbered `at` of a unit.
    fn member(&self, kind: usize, unit: usize, at: usize) -> usize {
        let side = self.size.isqrt();
        match kind {
            0 => unit * self.size + at,
            1 => at * self.size + unit,
            _ => (unit / side * side + at / side) * self.size + unit % side * side + at % side,
        }
    }

    /// Puts a number that fits, or 0.
    pub(super) fn set(&mut self, cell: usize, number: u8) {
        let changed = (1 << self.cells[cell] | 1 << number) & !1;
        for kind in 0..3 {
            let unit = self.unit(kind, cell);
            self.units[kind][unit] ^= if self.cells[cell] == number { 0 } else { changed };
        }
        self.cells[cell] = number;
    }

    /// With an empty cell there.
    pub(super) fn without(&self, cell: usize) -> Self {
        let mut board = self.clone();
        board.set(cell, 0);
        board
    }

    /// Whether the cell's row, column or box has the number.
    pub(super) fn has(&self, kind: usize, cell: usize, number: u8) -> bool {
        self.units[kind][self.unit(kind, cell)] >> number & 1 == 1
    }

    /// The numbers that fit into an empty cell, as bits.
    pub(super) fn candidates(&self, cell: usize) -> u32 {
        let taken = (0..3).fold(1, |taken, kind| taken | self.units[kind][self.unit(kind, cell)]);
        ((2 << self.size) - 1) & !taken
    }

    /// Whether an empty cell is the only one of its unit that the number fits.
    pub(super) fn only_place(&self, kind: usize, cell: usize, number: u8) -> bool {
        let unit = self.unit(kind, cell);
        let fits = |at: &usize| self.cells[*at] == 0 && self.candidates(*at) >> number & 1 == 1;
        (0..self.size).map(|at| self.member(kind, unit, at)).filter(fits).eq([cell])
    }

    /// Fills every cell that singles decide, the hidden ones too if `hidden`. False at a contradiction.
    pub(super) fn deduce(&mut self, hidden: bool) -> bool {
        loop {
            let mut found = false;
            for cell in 0..self.cells.len() {
                if self.cells[cell] != 0 {
                    continue;
                }
                match self.candidates(cell) {
                    0 => return false,
                    one if one.is_power_of_two() => {
                        self.set(cell, one.trailing_zeros() as u8);
                        found = true;
                    }
                    _ => {}
                }
            }
            if found {
                continue;
            }
            if !hidden || self.full() {
                return true;
            }
            match self.hidden_singles() {
                Some(true) => {}
                Some(false) => return true,
                None => return false,
            }
        }
    }

    /// Whether some were found and filled; None where a number has no place.
    fn hidden_singles(&mut self) -> Option<bool> {
        let mut found = false;
        for kind in 0..3 {
            for unit in 0..self.size {
                let (mut once, mut twice) = (0, 0);
                for at in 0..self.size {
                    let cell = self.member(kind, unit, at);
                    if self.cells[cell] == 0 {
                        let fits = self.candidates(cell);
                        twice |= once & fits;
                        once |= fits;
                    }
                }
                let all = (2 << self.size) - 2;
                if once | self.units[kind][unit] != all {
                    return None;
                }
                let mut alone = once & !twice;
                while alone != 0 {
                    let number = alone.trailing_zeros();
                    alone &= alone - 1;
                    let place = (0..self.size).map(|at| self.member(kind, unit, at));
                    let place = place.filter(|&cell| self.cells[cell] == 0);
                    let cell = { place }.find(|&cell| self.candidates(cell) >> number & 1 == 1)?;
                    self.set(cell, number as u8);
                    found = true;
                }
            }
        }
        Some(found)
    }

    /// Rows of numbers with lines between the boxes; `*` after those that `own` says.
    pub(super) fn show(&self, own: impl Fn(usize) -> bool) -> String {
        let side = self.size.isqrt();
        let width = self.size.to_string().len() + 1;
        let cell = |cell: usize| {
            let number = if self.cells[cell] == 0 { "_".to_owned() } else { self.cells[cell].to_string() };
            format!("{:width$}", if own(cell) { number + "*" } else { number })
        };
        let row = |row: usize| {
            let cells: Vec<String> = (row * self.size..(row + 1) * self.size).map(cell).collect();
            let boxes: Vec<String> = cells.chunks(side).map(|part| part.join(" ")).collect();
            boxes.join("| ").trim_end().to_owned()
        };
        let line = vec!["-".repeat(side * (width + 1) - 1); side].join("+-");
        let rows: Vec<String> = (0..self.size).map(row).collect();
        rows.chunks(side).map(|part| part.join("\n")).collect::<Vec<_>>().join(&format!("\n{line}\n"))
    }
}
