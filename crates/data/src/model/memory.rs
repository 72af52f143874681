//! Where the data of requests lie: rows of `request_memory`.

use super::checked_words::checked_words;

checked_words! {
    /// Of what a request sends and what it receives into the farther one from the host; `request_memory.memory`.
    MemoryKind {
        Host = "host",
        /// It moves between host and accelerator.
        Managed = "managed",
        /// Of an accelerator alone.
        Device = "device",
    }
}
