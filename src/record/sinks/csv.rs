//! Tables as comma-separated values (RFC 4180, lines ended by a line feed).

use serde_json::Value;

use super::Table;

/// A line of names, then a line a row. A null is nothing; numbers are as the records have them.
#[must_use]
pub fn text(table: &Table) -> String {
    let cell = |value: &Value| match value {
        Value::Null => String::new(),
        Value::String(text) => quoted(text),
        value => value.to_string(),
    };
    let line = |cells: Vec<String>| cells.join(",") + "\n";
    let names = line(table.columns.iter().map(|name| quoted(name)).collect());
    names + &table.rows.iter().map(|row| line(row.iter().map(cell).collect())).collect::<String>()
}

fn quoted(text: &str) -> String {
    let plain = !text.is_empty() && !text.contains([',', '"', '\n', '\r']);
    if plain { text.to_owned() } else { format!("\"{}\"", text.replace('"', "\"\"")) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_would_be_misread_is_quoted() {
        let record = json!({"step": 1, "loss": -0.5, "why": null, "text": "a \"b\", c\nd", "none": ""});
        assert_eq!(text(&Table::of(&[record])), "step,loss,why,text,none\n1,-0.5,,\"a \"\"b\"\", c\nd\",\"\"\n");
    }
}
