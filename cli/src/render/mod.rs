//! One file per renderer.
