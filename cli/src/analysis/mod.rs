//! Pure functions from rows to answers.
