//! Single values: from KDL or from the text of an override, checked against kind and range.

use kdl::KdlValue;

use super::error::{self, Diagnostic};
use super::schema::nearest;
use super::{Kind, Place, Source, Value};

/// Inclusive bounds of a number.
pub(super) type Range = Option<(f64, f64)>;

/// How a value of this kind reads the text of an override. Text that does not fit stays text, for [`check`] to refuse.
pub(super) fn literal(kind: &Kind, text: &str) -> KdlValue {
    let read = match kind {
        Kind::Bool => match text {
            "true" | "#true" => Some(KdlValue::Bool(true)),
            "false" | "#false" => Some(KdlValue::Bool(false)),
            _ => None,
        },
        Kind::Int { .. } | Kind::Float => {
            let digits = text.replace('_', "");
            let whole = digits.parse().map(KdlValue::Integer);
            whole.or_else(|_| digits.parse().map(KdlValue::Float)).ok()
        }
        _ => None,
    };
    read.unwrap_or_else(|| KdlValue::String(text.to_owned()))
}

/// A value of this kind from the text of an override, if it is one.
pub(super) fn parse(kind: &Kind, range: Range, text: &str) -> Option<Value> {
    let place = Place::new(&Source::document("", text), 0, 0);
    check(kind, range, &literal(kind, text), &place).ok()
}

/// Checks a scalar that is given in place.
pub(super) fn check(kind: &Kind, range: Range, literal: &KdlValue, place: &Place) -> Result<Value, Diagnostic> {
    match (kind, literal) {
        (Kind::Bool, KdlValue::Bool(value)) => Ok(Value::Bool(*value)),
        (Kind::Int { min, max, .. }, KdlValue::Integer(value)) => {
            let inside = range.is_none_or(|(low, high)| (low..=high).contains(&(*value as f64)));
            if inside && (*min..=*max).contains(value) {
                return Ok(Value::Int(*value));
            }
            let bounds = range.map(|(low, high)| (number(low), number(high)));
            let (low, high) = bounds.unwrap_or((min.to_string(), max.to_string()));
            Err(error::out_of_range(place, &value.to_string(), &low, &high))
        }
        (Kind::Float, KdlValue::Integer(value)) => float(*value as f64, range, place),
        (Kind::Float, KdlValue::Float(value)) => float(*value, range, place),
        (Kind::Text, KdlValue::String(text)) => Ok(Value::Text(text.clone())),
        (Kind::Input, KdlValue::String(text)) => Ok(Value::Input { text: text.clone(), path: None }),
        (Kind::Choice(names), KdlValue::String(text)) if names.contains(&text.as_str()) => {
            Ok(Value::Text(text.clone()))
        }
        (Kind::Choice(names), KdlValue::String(text)) => {
            Err(wrong(kind, literal, place).help(error::did_you_mean(&nearest(text, names.iter().copied()))))
        }
        _ => Err(wrong(kind, literal, place).help(hint(kind, literal))),
    }
}

fn float(value: f64, range: Range, place: &Place) -> Result<Value, Diagnostic> {
    if !value.is_finite() {
        return Err(error::non_finite(place));
    }
    match range {
        Some((low, high)) if !(low..=high).contains(&value) => {
            Err(error::out_of_range(place, &number(value), &number(low), &number(high)))
        }
        // One zero, so that equal numbers are equal bytes.
        _ => Ok(Value::Float(value + 0.0)),
    }
}

/// A number as a person writes it.
fn number(value: f64) -> String {
    let short = value == 0.0 || (1e-6..1e15).contains(&value.abs());
    if short { value.to_string() } else { format!("{value:e}") }
}

fn wrong(kind: &Kind, literal: &KdlValue, place: &Place) -> Diagnostic {
    error::wrong_type(place, &kind.expected(), &found(literal))
}

fn found(literal: &KdlValue) -> String {
    match literal {
        KdlValue::String(text) if text.chars().count() > 40 => "a long text".to_owned(),
        KdlValue::String(text) => format!("{text:?}"),
        KdlValue::Integer(value) => value.to_string(),
        KdlValue::Float(value) => format!("{value:?}"),
        KdlValue::Bool(value) => format!("#{value}"),
        KdlValue::Null => "#null".to_owned(),
    }
}

fn hint(kind: &Kind, literal: &KdlValue) -> &'static str {
    match (kind, literal) {
        (Kind::Bool, KdlValue::String(_)) => "write #true or #false, or on the command line true or false",
        (Kind::Int { .. } | Kind::Float, KdlValue::String(text)) if text.parse::<f64>().is_ok() => {
            "numbers stand without quotes"
        }
        (Kind::Int { .. }, KdlValue::Float(_)) => "write it without a fraction and without an exponent",
        (Kind::Folder, KdlValue::String(_)) => "a folder is given as (dir)\"path\"",
        _ => "",
    }
}

/// Checks a value found at another path.
pub(super) fn convert(kind: &Kind, range: Range, value: &Value, place: &Place) -> Result<Value, Diagnostic> {
    match (kind, value) {
        (Kind::Optional(_), Value::Unset) => Ok(Value::Unset),
        (Kind::Optional(inner), value) => convert(inner, range, value, place),
        (Kind::List(item), Value::List(items)) => {
            items.iter().map(|value| convert(item, range, value, place)).collect::<Result<_, _>>().map(Value::List)
        }
        (Kind::Input, Value::Input { .. }) | (Kind::Folder, Value::Folder { .. }) => Ok(value.clone()),
        (kind, Value::Bool(value)) => check(kind, range, &KdlValue::Bool(*value), place),
        (kind, Value::Int(value)) => check(kind, range, &KdlValue::Integer(*value), place),
        (kind, Value::Float(value)) => check(kind, range, &KdlValue::Float(*value), place),
        (kind, Value::Text(text)) => check(kind, range, &KdlValue::String(text.clone()), place),
        (kind, Value::Unset) => Err(wrong(kind, &KdlValue::Null, place)),
        (kind, _) => Err(error::wrong_type(place, &kind.expected(), "a value of another kind")),
    }
}
