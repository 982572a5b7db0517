//! Small KDL documents of one value a line, with every string in quotes: the lease, an attempt, a result.

use std::fmt::{self, Display};

use kdl::{KdlDocument, KdlIdentifier};

use crate::config::show::quoted;

/// Lines of a name and a value, as they are written.
#[derive(Clone, Debug, Default)]
pub(crate) struct Fields(String);

impl Fields {
    /// Adds a line whose value is written as it stands: a number, or a KDL keyword.
    pub(crate) fn with(mut self, name: &str, value: impl Display) -> Self {
        self.0.push_str(&format!("{} {value}\n", KdlIdentifier::from(name)));
        self
    }

    /// Adds a line of text.
    pub(crate) fn with_text(self, name: &str, text: &str) -> Self {
        self.with(name, quoted(text))
    }

    /// Adds a line that holds lines.
    pub(crate) fn with_lines(mut self, name: &str, lines: &Fields) -> Self {
        self.0.push_str(&format!("{name} {{\n"));
        lines.0.lines().for_each(|line| self.0.push_str(&format!("    {line}\n")));
        self.0.push_str("}\n");
        self
    }
}

impl Display for Fields {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Such a document, read back.
#[derive(Clone, Debug)]
pub(crate) struct Read(KdlDocument);

impl Read {
    pub(crate) fn parse(text: &str) -> Option<Self> {
        text.parse().ok().map(Self)
    }

    pub(crate) fn text(&self, name: &str) -> Option<String> {
        self.0.get_arg(name)?.as_string().map(str::to_owned)
    }

    /// Every line's name and first value.
    pub(crate) fn all(self) -> Vec<(String, String)> {
        let line = |node: &kdl::KdlNode| {
            let value = node.get(0)?;
            let text = value.as_string().map_or_else(|| value.to_string(), str::to_owned);
            Some((node.name().value().to_owned(), text))
        };
        self.0.nodes().iter().filter_map(line).collect()
    }

    pub(crate) fn count(&self, name: &str) -> Option<u64> {
        self.0.get_arg(name)?.as_integer()?.try_into().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_text_comes_back_from_its_line() {
        for text in ["", "plain", "a \"b\" \\ c", "two\nlines\r\t", "\u{7f}\u{0}\u{85}", "é✓\u{202e}\u{feff}\u{2028}"]
        {
            let line = Fields::default().with_text("rollout.success", text).with("n", 3).to_string();
            assert_eq!(line.lines().count(), 2, "{line}");
            let read = Read::parse(&line).unwrap();
            assert_eq!((read.text("rollout.success").as_deref(), read.count("n")), (Some(text), Some(3)));
        }
    }
}
