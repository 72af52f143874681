//! By what call sites are sorted, as it is typed.

use clap::ValueEnum;

use lapscope_measure::sites::Order;

/// An [`Order`] with its explanation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum SiteOrder {
    /// Time inside MPI
    #[default]
    Time,
    /// Exposed time: in calls that complete requests
    Exposed,
    /// Time in calls that make requests
    Posting,
    /// Number of calls
    Calls,
    /// Bytes transferred
    Bytes,
    /// Overlap window: from post to completing call
    OverlapWindow,
}

impl From<SiteOrder> for Order {
    fn from(typed: SiteOrder) -> Order {
        match typed {
            SiteOrder::Time => Order::Time,
            SiteOrder::Exposed => Order::Exposed,
            SiteOrder::Posting => Order::Posting,
            SiteOrder::Calls => Order::Calls,
            SiteOrder::Bytes => Order::Bytes,
            SiteOrder::OverlapWindow => Order::OverlapWindow,
        }
    }
}
