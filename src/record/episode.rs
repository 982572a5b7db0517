//! Episode records.
