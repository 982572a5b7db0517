//! The derivative of an embedding: of each token's row, the sum over the places where it stands.
//!
//! `grad: [places, width]`, `tokens: [places]` → `dW: [vocab, width]`, dWᵥ = Σ over t with tokenₜ = v of gₜ, in the
//! order of places.

/// Adds the derivative to `into`, which has it all of its own beforehand: each row's sum is made first.
///
/// # Panics
/// If the shapes disagree or a token has no row.
pub fn scatter(grad: &[f32], tokens: &[u32], into: &mut [f32]) {
    let width = grad.len() / tokens.len().max(1);
    assert_eq!(grad.len(), tokens.len() * width, "a row of each of {} tokens", tokens.len());
    let mut places: Vec<usize> = (0..tokens.len()).collect();
    places.sort_by_key(|place| tokens[*place]);
    let mut sum = vec![0.0; width];
    for places in places.chunk_by(|a, b| tokens[*a] == tokens[*b]) {
        sum.fill(0.0);
        places.iter().for_each(|place| add(&mut sum, &grad[place * width..][..width]));
        let row = tokens[places[0]] as usize * width;
        add(&mut into[row..row + width], &sum);
    }
}

fn add(to: &mut [f32], from: &[f32]) {
    to.iter_mut().zip(from).for_each(|(to, from)| *to += from);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_gets_what_its_places_have() {
        let mut into = [1.0; 8];
        scatter(&[1.0, 2.0, 30.0, 40.0, 500.0, 600.0], &[3, 0, 3], &mut into);
        assert_eq!(into, [31.0, 41.0, 1.0, 1.0, 1.0, 1.0, 502.0, 603.0]);
        // The places' sum is made before what is there is added to it.
        let mut into = [1.0];
        scatter(&[1e8, -1e8], &[0, 0], &mut into);
        assert_eq!(into, [1.0]);
    }
}
