//! The programs of `tests/apps/hang`, and what an expert says of each. Why each hangs stands at its function.

use lapscope_tests::build::Binding;

/// What a program is compiled from.
#[derive(Debug, Clone, Copy)]
pub enum Source {
    C(&'static str),
    Fortran(Binding),
}

/// How a rank that ends is kept from its launcher, which would end the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kept {
    /// It is not: no rank ends.
    Open,
    Behind,
}

/// A program that hangs.
pub struct Hanging {
    pub source: Source,
    pub name: &'static str,
    pub ranks: u32,
    /// Verdicts that an expert accepts.
    pub kinds: &'static [&'static str],
    /// Ranks that the verdict has to name.
    pub named: &'static [u64],
    /// Words that its sentence, or a candidate of it, has to have.
    pub says: &'static [&'static str],
    /// Where each rank is: a call, or what it does outside of MPI; several in order where that is not known. `gone`: it has ended.
    pub at: &'static [&'static str],
    pub kept: Kept,
}

/// A program that is only slow.
pub struct Slow {
    pub source: Source,
    pub name: &'static str,
    pub ranks: u32,
    /// It may be called hopeless with a perhaps: what will let it go on cannot be seen.
    pub may_be_doubted: bool,
}

const fn hanging(
    source: Source,
    name: &'static str,
    ranks: u32,
    kinds: &'static [&'static str],
) -> Hanging {
    Hanging { source, name, ranks, kinds, named: &[], says: &[], at: &[], kept: Kept::Open }
}

impl Hanging {
    const fn named(mut self, named: &'static [u64]) -> Self {
        self.named = named;
        self
    }

    const fn says(mut self, says: &'static [&'static str]) -> Self {
        self.says = says;
        self
    }

    const fn at(mut self, at: &'static [&'static str]) -> Self {
        self.at = at;
        self
    }

    const fn behind_a_shell(mut self) -> Self {
        self.kept = Kept::Behind;
        self
    }
}

const MESSAGES: Source = Source::C("messages");
const REQUESTS: Source = Source::C("requests");
const COLLECTIVES: Source = Source::C("collectives");
const OUTSIDE: Source = Source::C("outside");
const ASLEEP: Source = Source::C("asleep");
const WINDOWS: Source = Source::C("windows");
/// The MPIs here that have them: MPICH's.
pub const PARTITIONS: Source = Source::C("partitions");
const F08: Source = Source::Fortran(Binding::F08);
const MODULE: Source = Source::Fortran(Binding::Module);
const HEADER: Source = Source::Fortran(Binding::Header);

const DEADLOCK: &[&str] = &["deadlock"];
const NO_MATCH: &[&str] = &["no_match"];
/// That nothing matches is the cause, and that all wait for each other is as true.
const EITHER: &[&str] = &["deadlock", "no_match"];
const MISMATCH: &[&str] = &["collective_mismatch"];
const LEFT: &[&str] = &["left"];

pub const HANGING: &[Hanging] = &[
    hanging(MESSAGES, "rendezvous_cycle", 4, DEADLOCK)
        .at(&["MPI_Send"; 4])
        .named(&[0, 1, 2, 3])
        .says(&["MPI_Send"]),
    hanging(MESSAGES, "head_to_head", 2, DEADLOCK)
        .at(&["MPI_Send"; 2])
        .named(&[0, 1])
        .says(&["MPI_Send"]),
    hanging(MESSAGES, "both_receive", 2, DEADLOCK)
        .at(&["MPI_Recv"; 2])
        .named(&[0, 1])
        .says(&["MPI_Recv"]),
    hanging(MESSAGES, "missing_receive", 2, EITHER)
        .at(&["MPI_Ssend", "MPI_Barrier"])
        .named(&[0])
        .says(&["MPI_Ssend"]),
    hanging(MESSAGES, "wrong_tag", 2, NO_MATCH)
        .at(&["MPI_Recv"; 2])
        .named(&[1])
        .says(&["tag 7", "tag 17"]),
    hanging(MESSAGES, "wrong_communicator", 2, NO_MATCH)
        .at(&["MPI_Recv"; 2])
        .named(&[1])
        .says(&["in other"]),
    hanging(MESSAGES, "wrong_source", 3, NO_MATCH)
        .at(&["MPI_Recv", "MPI_Barrier", "MPI_Barrier"])
        .named(&[0])
        .says(&["rank 2"]),
    hanging(MESSAGES, "truncated", 2, DEADLOCK)
        .at(&["MPI_Recv"; 2])
        .named(&[0, 1])
        .says(&["tag 17"]),
    hanging(MESSAGES, "iprobe_for_nothing", 2, &["polls", "deadlock"])
        .at(&["MPI_Iprobe|asleep|computes", "MPI_Barrier"])
        .named(&[0])
        .says(&["MPI_Iprobe", "from rank 1, tag 17"]),
    hanging(MESSAGES, "send_to_self", 2, EITHER)
        .at(&["MPI_Ssend", "MPI_Barrier"])
        .named(&[0])
        .says(&["MPI_Ssend"]),
    hanging(MESSAGES, "ring_without_one", 4, EITHER)
        .at(&["MPI_Barrier", "MPI_Sendrecv", "MPI_Barrier", "MPI_Sendrecv"])
        .named(&[2])
        .says(&["MPI_Sendrecv"]),
    hanging(MESSAGES, "half_of_sendrecv", 2, DEADLOCK)
        .at(&["MPI_Sendrecv", "MPI_Recv"])
        .named(&[0, 1])
        .says(&["MPI_Sendrecv", "from rank 1, tag 17"]),
    hanging(MESSAGES, "probe_for_nothing", 2, EITHER)
        .at(&["MPI_Probe", "MPI_Barrier"])
        .named(&[0])
        .says(&["MPI_Probe"]),
    hanging(MESSAGES, "anyone_but_nobody", 3, DEADLOCK).at(&["MPI_Recv"; 3]).named(&[0, 1, 2]),
    hanging(MESSAGES, "anyone_took_it", 3, EITHER)
        .at(&["MPI_Recv", "MPI_Barrier", "MPI_Recv"])
        .named(&[0]),
    hanging(MESSAGES, "both_sides_receive", 4, DEADLOCK).at(&["MPI_Recv"; 4]).named(&[0, 2]),
    hanging(MESSAGES, "three_kinds", 3, EITHER)
        .at(&["MPI_Probe", "MPI_Ssend", "MPI_Recv"])
        .named(&[0, 1, 2]),
    hanging(REQUESTS, "one_of_three", 2, EITHER)
        .at(&["MPI_Waitall", "MPI_Barrier"])
        .named(&[0])
        .says(&["tag 9", "tag 3"]),
    hanging(REQUESTS, "waitany_knot", 3, DEADLOCK)
        .at(&["MPI_Waitany"; 3])
        .named(&[0, 1, 2])
        .says(&["MPI_Waitany"]),
    hanging(REQUESTS, "waitsome_knot", 3, DEADLOCK)
        .at(&["MPI_Waitall", "MPI_Waitsome", "MPI_Waitsome"])
        .named(&[0, 1, 2])
        .says(&["MPI_Waitsome"]),
    hanging(REQUESTS, "persistent_receives", 2, DEADLOCK).at(&["MPI_Wait"; 2]).named(&[0, 1]),
    hanging(REQUESTS, "tests_for_ever", 2, &["polls", "no_match", "deadlock"])
        .at(&["MPI_Test|asleep|computes", "MPI_Recv"])
        .named(&[0]),
    hanging(REQUESTS, "tests_now_and_then", 2, &["polls", "no_match", "deadlock"])
        .at(&["MPI_Test|asleep|computes", "MPI_Recv"])
        .named(&[0]),
    hanging(REQUESTS, "sends_to_who_left", 2, LEFT)
        .at(&["MPI_Wait", "MPI_Finalize"])
        .named(&[1])
        .says(&["MPI_Finalize"]),
    hanging(REQUESTS, "icollectives_swapped", 2, MISMATCH)
        .at(&["MPI_Waitall"; 2])
        .named(&[0, 1])
        .says(&["MPI_Ibcast", "root"]),
    hanging(REQUESTS, "ibarrier_is_no_barrier", 3, MISMATCH)
        .at(&["MPI_Wait", "MPI_Barrier", "MPI_Barrier"])
        .named(&[0])
        .says(&["MPI_Ibarrier"]),
    hanging(REQUESTS, "waits_for_send_first", 2, DEADLOCK)
        .at(&["MPI_Wait"; 2])
        .named(&[0, 1])
        .says(&["MPI_Wait"]),
    hanging(COLLECTIVES, "order_swapped", 3, MISMATCH)
        .at(&["MPI_Barrier", "MPI_Allreduce", "MPI_Allreduce"])
        .named(&[0])
        .says(&["MPI_Barrier", "MPI_Allreduce"]),
    hanging(COLLECTIVES, "different_root", 2, MISMATCH)
        .at(&["MPI_Gather"; 2])
        .named(&[0, 1])
        .says(&["MPI_Gather", "root"]),
    hanging(COLLECTIVES, "scatter_from_another", 3, MISMATCH)
        .at(&["MPI_Scatter", "MPI_Scatter|MPI_Barrier", "MPI_Scatter"])
        .named(&[2])
        .says(&["MPI_Scatter", "root"]),
    hanging(COLLECTIVES, "bcast_and_reduce", 3, MISMATCH)
        .at(&["MPI_Bcast", "MPI_Reduce", "MPI_Reduce|MPI_Barrier"])
        .named(&[0])
        .says(&["MPI_Bcast", "MPI_Reduce"]),
    hanging(COLLECTIVES, "leaves_the_loop_early", 3, LEFT)
        .at(&["MPI_Allreduce", "MPI_Allreduce", "MPI_Finalize"])
        .named(&[2])
        .says(&["MPI_Finalize", "MPI_Allreduce"]),
    hanging(COLLECTIVES, "goes_on_early", 3, MISMATCH)
        .at(&["MPI_Allreduce", "MPI_Allreduce", "MPI_Gather"])
        .named(&[2])
        .says(&["MPI_Gather", "MPI_Allreduce"]),
    hanging(COLLECTIVES, "communicators_crossed", 2, &["collective_mismatch", "deadlock"])
        .at(&["MPI_Barrier"; 2])
        .named(&[0, 1])
        .says(&["MPI_Barrier", "in other"]),
    hanging(COLLECTIVES, "rows_and_columns", 4, &["collective_mismatch", "deadlock"])
        .at(&["MPI_Barrier"; 4])
        .named(&[0, 1, 2, 3]),
    hanging(COLLECTIVES, "receive_before_barrier", 2, EITHER)
        .at(&["MPI_Barrier", "MPI_Recv"])
        .named(&[1])
        .says(&["MPI_Recv"]),
    hanging(COLLECTIVES, "split_without_one", 3, EITHER)
        .at(&["MPI_Comm_split", "MPI_Comm_split", "MPI_Recv"])
        .named(&[2])
        .says(&["MPI_Recv"]),
    hanging(COLLECTIVES, "dup_and_reduce", 3, MISMATCH)
        .at(&["MPI_Comm_dup", "MPI_Comm_dup", "MPI_Allreduce|MPI_Finalize"])
        .named(&[2])
        .says(&["MPI_Comm_dup", "MPI_Allreduce"]),
    hanging(COLLECTIVES, "barrier_between_without_one", 4, EITHER)
        .at(&["MPI_Barrier", "MPI_Barrier", "MPI_Barrier", "MPI_Recv"])
        .named(&[3])
        .says(&["MPI_Barrier", "MPI_Intercomm_create"]),
    hanging(COLLECTIVES, "sides_differ", 4, MISMATCH)
        .at(&[
            "MPI_Barrier",
            "MPI_Barrier",
            "MPI_Allreduce|MPI_Finalize",
            "MPI_Allreduce|MPI_Finalize",
        ])
        .named(&[0, 1, 2, 3])
        .says(&["MPI_Barrier", "MPI_Allreduce"]),
    hanging(COLLECTIVES, "other_root_between", 4, MISMATCH)
        .at(&["MPI_Bcast", "MPI_Barrier", "MPI_Bcast", "MPI_Bcast"])
        .named(&[0, 1, 2, 3])
        .says(&["rank 0 as root", "rank 1 as root", "MPI_PROC_NULL"]),
    hanging(COLLECTIVES, "finalizes_early", 2, LEFT)
        .at(&["MPI_Recv", "MPI_Finalize"])
        .named(&[1])
        .says(&["MPI_Finalize"]),
    hanging(OUTSIDE, "computes_for_ever", 3, &["computes"])
        .at(&["MPI_Allreduce", "computes", "MPI_Sendrecv"])
        .named(&[1]),
    hanging(OUTSIDE, "reads_from_nobody", 3, &["asleep"])
        .at(&["MPI_Allreduce", "asleep", "MPI_Sendrecv"])
        .named(&[1]),
    hanging(OUTSIDE, "waits_for_child", 3, &["asleep"])
        .at(&["MPI_Allreduce", "asleep", "MPI_Sendrecv"])
        .named(&[1]),
    hanging(OUTSIDE, "wants_locked_file", 2, &["asleep"])
        .at(&["MPI_Barrier", "asleep"])
        .named(&[1]),
    hanging(OUTSIDE, "stopped", 3, &["stopped"])
        .at(&["MPI_Allreduce", "stopped", "MPI_Sendrecv"])
        .named(&[1]),
    hanging(OUTSIDE, "killed", 3, &["dead"])
        .at(&["MPI_Allreduce", "gone", "MPI_Sendrecv"])
        .named(&[1])
        .behind_a_shell(),
    hanging(OUTSIDE, "aborts_within", 3, &["dead"])
        .at(&["MPI_Allreduce", "gone", "MPI_Sendrecv"])
        .named(&[1])
        .says(&["MPI_Recv"])
        .behind_a_shell(),
    hanging(OUTSIDE, "exits", 3, &["left", "dead"])
        .at(&["MPI_Allreduce", "gone", "MPI_Sendrecv"])
        .named(&[1])
        .behind_a_shell(),
    hanging(OUTSIDE, "lock_held", 2, &["asleep", "deadlock"]).at(&["MPI_Recv"; 2]).named(&[0]),
    hanging(OUTSIDE, "all_threads_receive", 2, DEADLOCK).at(&["MPI_Recv"; 2]).named(&[0, 1]),
    hanging(ASLEEP, "nobody_is_awake", 3, &["asleep"])
        .at(&["MPI_Iprobe|asleep|computes", "MPI_Iprobe|asleep|computes", "asleep"])
        .named(&[2]),
    hanging(WINDOWS, "lock_never_released", 2, DEADLOCK)
        .at(&["MPI_Recv", "MPI_Win_lock|MPI_Win_unlock"])
        .named(&[0, 1])
        .says(&["locked"]),
    hanging(WINDOWS, "fence_without_one", 3, &["collective_mismatch", "deadlock"])
        .at(&["MPI_Win_fence", "MPI_Win_fence", "MPI_Barrier"])
        .named(&[2])
        .says(&["MPI_Win_fence"]),
    hanging(WINDOWS, "start_without_post", 2, DEADLOCK)
        .at(&["MPI_Win_start|MPI_Win_complete|MPI_Put", "MPI_Barrier"])
        .named(&[0, 1]),
    hanging(PARTITIONS, "never_ready", 2, DEADLOCK).at(&["MPI_Wait"; 2]).named(&[0]).says(&[
        "MPI_Wait",
        "partitions",
        "MPI_Psend_init",
    ]),
    hanging(F08, "sends_first", 2, DEADLOCK)
        .at(&["MPI_Send"; 2])
        .named(&[0, 1])
        .says(&["MPI_Send"]),
    hanging(MODULE, "wrong_tag", 2, NO_MATCH)
        .at(&["MPI_Recv"; 2])
        .named(&[1])
        .says(&["tag 7", "tag 17"]),
    hanging(HEADER, "leaves_early", 3, LEFT)
        .at(&["MPI_Allreduce", "MPI_Allreduce", "MPI_Finalize"])
        .named(&[2])
        .says(&["MPI_Finalize"]),
    hanging(F08, "reduce_and_bcast", 3, MISMATCH)
        .at(&["MPI_Bcast", "MPI_Reduce", "MPI_Reduce|MPI_Barrier"])
        .named(&[0])
        .says(&["MPI_Bcast", "MPI_Reduce"]),
    hanging(HEADER, "waitall_wrong_tag", 2, EITHER)
        .at(&["MPI_Waitall", "MPI_Barrier"])
        .named(&[0])
        .says(&["tag 8", "tag 17"]),
    hanging(MODULE, "computes_on", 3, &["computes"])
        .at(&["MPI_Allreduce", "computes", "MPI_Allreduce"])
        .named(&[1]),
];

const fn slow(source: Source, name: &'static str, ranks: u32) -> Slow {
    Slow { source, name, ranks, may_be_doubted: false }
}

const fn doubtful(name: &'static str) -> Slow {
    Slow { may_be_doubted: true, ..slow(SLOW_OUTSIDE, name, 2) }
}

const SLOW_MESSAGES: Source = Source::C("slow_messages");
const SLOW_REQUESTS: Source = Source::C("slow_requests");
const SLOW_OUTSIDE: Source = Source::C("slow_outside");

pub const SLOW: &[Slow] = &[
    slow(SLOW_MESSAGES, "late_sender", 2),
    slow(SLOW_MESSAGES, "late_receiver", 2),
    slow(SLOW_MESSAGES, "other_tag_first", 2),
    slow(SLOW_MESSAGES, "other_communicator_first", 2),
    slow(SLOW_MESSAGES, "eager_in_flight", 2),
    slow(SLOW_MESSAGES, "head_to_head_small", 2),
    slow(SLOW_MESSAGES, "chain", 4),
    slow(SLOW_MESSAGES, "master_and_workers", 3),
    slow(SLOW_MESSAGES, "anyone_late", 3),
    slow(SLOW_MESSAGES, "probes_until", 2),
    slow(SLOW_MESSAGES, "large_messages", 2),
    slow(SLOW_MESSAGES, "intercomm_late", 4),
    slow(SLOW_MESSAGES, "broadcast_too_long", 2),
    slow(SLOW_REQUESTS, "tests_until", 2),
    slow(SLOW_REQUESTS, "waitany_late", 3),
    slow(SLOW_REQUESTS, "waitall_late", 4),
    slow(SLOW_REQUESTS, "needs_progress_of_other", 2),
    slow(SLOW_REQUESTS, "persistent_late", 2),
    slow(SLOW_REQUESTS, "icollectives_late", 2),
    slow(SLOW_REQUESTS, "ibarrier_meanwhile", 2),
    slow(SLOW_REQUESTS, "lock_contended", 3),
    slow(SLOW_REQUESTS, "fence_late", 3),
    slow(SLOW_REQUESTS, "post_late", 2),
    slow(SLOW_OUTSIDE, "long_computation", 3),
    slow(SLOW_OUTSIDE, "slow_roots", 3),
    slow(SLOW_OUTSIDE, "root_is_ahead", 3),
    slow(SLOW_OUTSIDE, "split_late", 3),
    slow(SLOW_OUTSIDE, "writes_a_file", 3),
    slow(SLOW_OUTSIDE, "waits_for_child", 3),
    slow(SLOW_OUTSIDE, "pauses", 3),
    slow(SLOW_OUTSIDE, "thread_is_busy", 3),
    slow(SLOW_OUTSIDE, "thread_sends_late", 2),
    slow(SLOW_OUTSIDE, "thread_polls_first", 2),
    slow(SLOW_OUTSIDE, "thread_selects_first", 2),
    doubtful("thread_waits_first"),
    doubtful("attribute_is_waited_for"),
    doubtful("finalize_waits_for_attribute"),
    slow(SLOW_OUTSIDE, "finalizes_first", 3),
    slow(SLOW_OUTSIDE, "many_steps", 3),
    slow(SLOW_OUTSIDE, "attribute_is_copied", 2),
    slow(SLOW_OUTSIDE, "attribute_is_deleted", 2),
    slow(SLOW_OUTSIDE, "error_is_handled", 2),
    slow(PARTITIONS, "ready_late", 2),
    slow(F08, "late_sender", 2),
    slow(HEADER, "slow_reduction", 3),
];
