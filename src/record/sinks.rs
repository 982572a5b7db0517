//! What a run recorded, in the files that other tools read. All of it is made from the records, so it can be made, or
//! made anew, at any time, and is part of no digest.

pub mod csv;
pub mod parquet;
pub mod table;
pub mod tensorboard;

pub use table::Table;
pub use tensorboard::Events;
