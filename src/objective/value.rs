//! The value loss with clipping (Schulman et al. 2017, arXiv:1707.06347, section 5 and its code), in the newer verl's
//! form, with the factor ½:
//!
//! ½·max((V − R)², (clip(V, V_old ± clip) − R)²)
//!
//! The derivative is V − R, or 0 where the clipped square is the larger one. Differs from verl in that the clip can be
//! left out, and that the whole loss weighs it by `objective.value-coef` (verl's critic: 1).

/// The value loss of one token.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Square {
    pub loss: f64,
    /// In the new value.
    pub derivative: f64,
    /// The clipped square is the larger one.
    pub clipped: bool,
}

/// The loss of a value against its target; `old` is the value before the update.
#[must_use]
pub fn square(clip: Option<f64>, value: f64, old: f64, target: f64) -> Square {
    let error = value - target;
    // Not `clamp`, which panics where the old value is not a number.
    let near = clip.map_or(value, |clip| value.max(old - clip).min(old + clip)) - target;
    let clipped = near * near > error * error;
    let larger = if clipped { near } else { error };
    Square { loss: 0.5 * larger * larger, derivative: if clipped { 0.0 } else { error }, clipped }
}
