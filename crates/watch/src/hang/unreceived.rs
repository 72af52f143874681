//! Messages whose sends have ended and that no receive is for: MPI keeps them, in memory that the program does not know of.

use super::document::Unreceived;
use super::messages::Messages;
use super::Job;
use lapscope_data::model::Rank;
use lapscope_data::text::plural;
use lapscope_data::text::ranks;
use lapscope_data::text::units::{bytes, count};

/// Ranks of which a note tells.
const MOST: usize = 4;
/// While a job goes on, so many are worth a note, or so many bytes.
const MANY: u64 = 1000;
const MUCH: u64 = 4 << 20;

pub fn find(job: &Job<'_>, messages: &Messages) -> Vec<Unreceived> {
    let is_whole = |rank: Rank| job.find(rank).is_some_and(|at| job.rank(at).history.is_whole);
    let mut all: Vec<Unreceived> = Vec::new();
    for rank in job.ranks().iter().map(|it| it.rank).filter(|&rank| is_whole(rank)) {
        let mut found = Unreceived { rank, messages: 0, bytes: 0, from: Vec::new() };
        for (key, flow) in messages.unmatched_to(rank) {
            let sender = Rank { number: key.sender, ..rank };
            let (messages, bytes) = flow.kept();
            if messages > 0 && is_whole(sender) {
                found.messages += messages;
                found.bytes += bytes;
                found.from.push(sender);
            }
        }
        found.from.sort_unstable();
        found.from.dedup();
        all.extend((found.messages > 0).then_some(found));
    }
    all.sort_by_key(|it| (std::cmp::Reverse((it.bytes, it.messages)), it.rank));
    all
}

/// "3,000 messages, 5.72 MiB, lie unreceived at rank 1, from rank 0"
pub fn notes(job: &Job<'_>, all: &[Unreceived]) -> Vec<String> {
    let goes_on = job.progressed.contains(&true);
    let is_told = |it: &&Unreceived| !goes_on || it.messages >= MANY || it.bytes >= MUCH;
    let note = |it: &Unreceived| {
        let (s, lie) = (plural(it.messages), if it.messages == 1 { "lies" } else { "lie" });
        let from = ranks::in_words(&it.from, job.ranks().len());
        let (messages, bytes) = (count(it.messages), bytes(it.bytes));
        format!("{messages} message{s}, {bytes}, {lie} unreceived at rank {}, from {from}: no receive is posted for", it.rank)
            + if it.messages == 1 { " it" } else { " them" }
    };
    all.iter().filter(is_told).take(MOST).map(note).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hang::made::{before, job as made_job, Does};

    #[test]
    fn what_no_receive_is_for_is_counted_at_its_receiver() {
        let mut after = made_job(3);
        after.sent(0, 1, 5, 7);
        after.sent(0, 2, 5, 1);
        after.received(1, 0, 5, 3);
        after.received(2, 0, 5, 1);
        let earlier = before(&after);
        let job = Job::new(&earlier, &after);
        let all = find(&job, &Messages::match_open(&job));
        let ranks = [0, 1].map(Rank::of_first_world);
        let expected = Unreceived { rank: ranks[1], messages: 4, bytes: 32, from: vec![ranks[0]] };
        assert_eq!(all, [expected]);
        assert_eq!(
            notes(&job, &all),
            ["4 messages, 32 B, lie unreceived at rank 1, from rank 0: no receive is posted for them"]
        );
        after.ranks[1].history.is_whole = false;
        let job = Job::new(&earlier, &after);
        assert_eq!(find(&job, &Messages::match_open(&job)), []);
    }
}
