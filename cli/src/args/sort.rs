//! By what call sites and requests are sorted, as it is typed.

use clap::ValueEnum;

use lapscope_measure::sites;
use lapscope_report::requests;

/// The order of call sites, with explanations.
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

impl From<SiteOrder> for sites::SiteRanking {
    fn from(typed: SiteOrder) -> sites::SiteRanking {
        match typed {
            SiteOrder::Time => sites::SiteRanking::Time,
            SiteOrder::Exposed => sites::SiteRanking::Exposed,
            SiteOrder::Posting => sites::SiteRanking::Posting,
            SiteOrder::Calls => sites::SiteRanking::Calls,
            SiteOrder::Bytes => sites::SiteRanking::Bytes,
            SiteOrder::OverlapWindow => sites::SiteRanking::OverlapWindow,
        }
    }
}

/// The order of requests, with explanations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum RequestOrder {
    /// Time in the completing call
    Completion,
    /// Time in the posting call
    Post,
    /// Overlap window: from post to completing call
    OverlapWindow,
    /// Bytes transferred
    Bytes,
    /// Unsuccessful tests
    UnsuccessfulTests,
    /// In the order of their posts, the earliest first
    Begin,
    /// As the files have them, rank by rank: needs no memory, however many they are
    Stored,
}

impl From<RequestOrder> for requests::RequestRanking {
    fn from(typed: RequestOrder) -> requests::RequestRanking {
        match typed {
            RequestOrder::Completion => requests::RequestRanking::Completion,
            RequestOrder::Post => requests::RequestRanking::Post,
            RequestOrder::OverlapWindow => requests::RequestRanking::OverlapWindow,
            RequestOrder::Bytes => requests::RequestRanking::Bytes,
            RequestOrder::UnsuccessfulTests => requests::RequestRanking::UnsuccessfulTests,
            RequestOrder::Begin => requests::RequestRanking::Begin,
            RequestOrder::Stored => requests::RequestRanking::Stored,
        }
    }
}
