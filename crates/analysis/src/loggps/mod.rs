//! LogGPS: what messages, and collectives made of them, cost by a few parameters.

pub mod collective;
