//! What OTF2 calls MPI's collectives and kinds of calls.

use lapscope_data::model::{CallName, Needs};

/// `OTF2_CollectiveOp` of a blocking collective; `None` of those that OTF2 has no word for.
pub(super) fn collective_op(call: &str) -> Option<u8> {
    const OPS: [&str; 17] = [
        "MPI_Barrier",
        "MPI_Bcast",
        "MPI_Gather",
        "MPI_Gatherv",
        "MPI_Scatter",
        "MPI_Scatterv",
        "MPI_Allgather",
        "MPI_Allgatherv",
        "MPI_Alltoall",
        "MPI_Alltoallv",
        "MPI_Alltoallw",
        "MPI_Allreduce",
        "MPI_Reduce",
        "MPI_Reduce_scatter",
        "MPI_Scan",
        "MPI_Exscan",
        "MPI_Reduce_scatter_block",
    ];
    OPS.iter().position(|&known| known == call).map(|op| op as u8)
}

/// Bytes that a member sent and received, of those that its operation counts.
pub(super) fn sizes(needs: Option<Needs>, is_root: bool, bytes: u64) -> (u64, u64) {
    match needs {
        Some(Needs::Root) if is_root => (bytes, 0),
        Some(Needs::Root) => (0, bytes),
        Some(Needs::AllAtRoot) if is_root => (0, bytes),
        Some(Needs::AllAtRoot) => (bytes, 0),
        _ => (bytes, bytes),
    }
}

/// `OTF2_RegionRole` of a call.
pub(super) fn role(call: &CallName) -> u8 {
    const FUNCTION: u8 = 1;
    const BARRIER: u8 = 15;
    const ONE_TO_ALL: u8 = 23;
    const ALL_TO_ONE: u8 = 24;
    const ALL_TO_ALL: u8 = 25;
    const OTHER_COLLECTIVE: u8 = 26;
    const FILE: u8 = 27;
    const POINT_TO_POINT: u8 = 28;
    const RMA: u8 = 29;
    match (call.family.as_str(), call.needs) {
        _ if call.blocking == "MPI_Barrier" => BARRIER,
        ("COLLECTIVE" | "NEIGHBORHOOD", Some(Needs::Root)) => ONE_TO_ALL,
        ("COLLECTIVE" | "NEIGHBORHOOD", Some(Needs::AllAtRoot)) => ALL_TO_ONE,
        ("COLLECTIVE" | "NEIGHBORHOOD", Some(Needs::All)) => ALL_TO_ALL,
        ("COLLECTIVE" | "NEIGHBORHOOD", _) => OTHER_COLLECTIVE,
        ("POINT_TO_POINT" | "PERSISTENT" | "PARTITIONED", _) => POINT_TO_POINT,
        ("FILE", _) => FILE,
        ("WINDOW", _) => RMA,
        _ => FUNCTION,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn collectives_have_the_numbers_of_the_headers() {
        let ops =
            ["MPI_Barrier", "MPI_Bcast", "MPI_Allreduce", "MPI_Reduce", "MPI_Reduce_scatter_block"];
        assert_eq!(ops.map(collective_op), [0, 1, 11, 12, 16].map(Some));
        assert_eq!(collective_op("MPI_Neighbor_alltoall"), None);
    }

    #[test]
    fn bytes_go_where_the_root_is() {
        assert_eq!(sizes(Some(Needs::Root), true, 8), (8, 0));
        assert_eq!(sizes(Some(Needs::Root), false, 8), (0, 8));
        assert_eq!(sizes(Some(Needs::AllAtRoot), true, 8), (0, 8));
        assert_eq!(sizes(Some(Needs::All), false, 8), (8, 8));
    }
}
