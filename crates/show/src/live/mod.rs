//! A running job in the terminal. `looker` looks at it, `view` is what the user sees and types, `screen` draws, `terminal` takes
//! the terminal and gives it back, `printed` does without one.

mod diagnosis;
mod letters;
pub mod looker;
mod paint;
pub mod printed;
mod rows;
mod screen;
mod terminal;
pub mod view;

#[cfg(test)]
mod tests;
