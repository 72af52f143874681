//! What runs of growing numbers of ranks are to show.

use clap::ValueEnum;
use lapscope_measure::scaling::ScalingMode;

/// What runs of more ranks were given.
#[derive(Debug, Clone, Copy, Default, ValueEnum)]
pub enum ScalingChoice {
    /// The same work for all runs
    #[default]
    Strong,
    /// As much work for each rank
    Weak,
}

impl From<ScalingChoice> for ScalingMode {
    fn from(choice: ScalingChoice) -> ScalingMode {
        match choice {
            ScalingChoice::Strong => ScalingMode::Strong,
            ScalingChoice::Weak => ScalingMode::Weak,
        }
    }
}
