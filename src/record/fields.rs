//! Small KDL documents of one value a line: the lease, an attempt, a result.

use std::fmt;

use kdl::{KdlDocument, KdlNode, KdlValue};

/// Lines of a name and values.
#[derive(Clone, Debug, Default)]
pub(crate) struct Fields(KdlDocument);

impl Fields {
    pub(crate) fn parse(text: &str) -> Option<Self> {
        text.parse().ok().map(Self)
    }

    /// Adds a line.
    pub(crate) fn with(mut self, name: &str, value: impl Into<KdlValue>) -> Self {
        self.0.nodes_mut().push(node(name, [value.into()]));
        self
    }

    /// Adds a line of an unsigned number.
    pub(crate) fn with_count(self, name: &str, value: u64) -> Self {
        self.with(name, i128::from(value))
    }

    /// Adds a line that holds lines.
    pub(crate) fn with_lines(mut self, name: &str, lines: Fields) -> Self {
        let mut outer = node(name, []);
        outer.set_children(lines.0);
        self.0.nodes_mut().push(outer);
        self
    }

    pub(crate) fn text(&self, name: &str) -> Option<String> {
        self.0.get_arg(name)?.as_string().map(str::to_owned)
    }

    pub(crate) fn count(&self, name: &str) -> Option<u64> {
        self.0.get_arg(name)?.as_integer()?.try_into().ok()
    }
}

impl fmt::Display for Fields {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut document = self.0.clone();
        document.autoformat();
        document.fmt(f)
    }
}

/// A node with its arguments.
pub(crate) fn node(name: &str, values: impl IntoIterator<Item = KdlValue>) -> KdlNode {
    let mut node = KdlNode::new(name);
    values.into_iter().for_each(|value| node.push(value));
    node
}
