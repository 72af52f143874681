//! Stretches of a long run that were recorded row by row.

/// A slot of time in which a rank recorded rows (table `detail`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Detail {
    pub slot: i64,
    /// 0: from the begin of the recording on; k: drawn with probability 4^-k.
    pub stage: u32,
    /// Moments as those of endpoints.
    pub begin: i64,
    pub end: i64,
    /// Given up before the slot's end.
    pub is_cut: bool,
}
