//! Sends that went from copies of lapscope's: waits for them say nothing of their transfers, and a program that would block without
//! copies does not.

use std::collections::BTreeMap;

use lapscope_data::model::{Bytes, CopiedSends, Rank, RankInfo};
use lapscope_data::text::plural;
use lapscope_data::text::ranks::in_words as ranks_in_words;
use lapscope_data::text::units::{bytes, count, percent};

use lapscope_trace::problem::{Problem, ProblemKind};

/// What to know of a run in which sends were to be copied.
pub(super) fn find(ranks: &[&RankInfo]) -> Vec<Problem> {
    let asked: Vec<(Rank, &CopiedSends)> =
        ranks.iter().filter_map(|info| Some((info.rank, info.copied_sends.as_ref()?))).collect();
    let Some(limit) = asked.iter().map(|(_, of)| of.limit).max() else { return Vec::new() };
    let sum = |value: fn(&CopiedSends) -> u64| asked.iter().map(|(_, of)| value(of)).sum::<u64>();
    let mut sentences = vec![copied(limit, sum(|of| of.sends), sum(|of| of.at_once))];
    let (no_memory, datatype, device) =
        (sum(|of| of.no_memory), sum(|of| of.datatype), sum(|of| of.device));
    sentences.extend(as_they_were([no_memory, datatype, device]));
    let most = asked.iter().map(|(_, of)| of.most).max().unwrap_or_default();
    sentences.push(format!("At most {} of copies were under way on a rank.", bytes(most.0)));
    let (at_finalize, failed) = (sum(|of| of.at_finalize), sum(|of| of.failed));
    sentences.extend(
        (at_finalize > 0)
            .then(|| format!("Under way when MPI_Finalize was called: {}.", count(at_finalize))),
    );
    let mut problems = vec![Problem::new(ProblemKind::CopiedSends, sentences.join(" "), vec![])];
    problems.extend((failed > 0).then(|| {
        let message = format!(
            "MPI could not complete {} copied send{}, which the program took for sent",
            count(failed),
            plural(failed)
        );
        Problem::new(ProblemKind::CopiedSends, message, vec![])
    }));
    problems.extend(stopped(&asked, ranks.len()));
    problems
}

fn copied(limit: Bytes, sends: u64, at_once: u64) -> String {
    format!(
        "LAPSCOPE_BUFFER_SENDS: {} standard send{} of up to {} went from copies. Waits and overlap of these say nothing of their \
         transfers; {} of them might have blocked without.",
        count(sends),
        plural(sends),
        bytes(limit.0),
        percent(sends.saturating_sub(at_once) as f64 / sends.max(1) as f64)
    )
}

fn as_they_were(sends: [u64; 3]) -> Option<String> {
    const WHY: [&str; 3] = [
        "LAPSCOPE_BUFFER_SENDS_MB was in use",
        "their data could not be copied",
        "their data may lie in the memory of a GPU",
    ];
    let all = sends.into_iter().zip(WHY).filter(|(sends, _)| *sends > 0);
    let reasons: Vec<String> =
        all.map(|(sends, why)| format!("{} because {why}", count(sends))).collect();
    (!reasons.is_empty()).then(|| format!("Others went as they were: {}.", reasons.join(", ")))
}

/// Why ranks copied nothing from some moment on, each reason once.
fn stopped(asked: &[(Rank, &CopiedSends)], all: usize) -> Vec<Problem> {
    let mut of_reasons: BTreeMap<&str, Vec<Rank>> = BTreeMap::new();
    for (rank, of) in asked {
        if let Some(problem) = &of.problem {
            of_reasons.entry(problem).or_default().push(*rank);
        }
    }
    let said = of_reasons.into_iter().map(|(reason, ranks)| {
        let whose = ranks_in_words(&ranks, all);
        let message = format!("LAPSCOPE_BUFFER_SENDS copied nothing any more: {reason} ({whose})");
        Problem::new(ProblemKind::CopiedSends, message, ranks)
    });
    said.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use lapscope_trace::made_up::MadeUp;

    fn said(of_ranks: &[Option<CopiedSends>]) -> Vec<String> {
        let mut run = MadeUp::new(of_ranks.len());
        for (rank, copied) in of_ranks.iter().enumerate() {
            run.info(rank).copied_sends.clone_from(copied);
        }
        let infos: Vec<RankInfo> = (0..of_ranks.len()).map(|rank| run.info(rank).clone()).collect();
        find(&infos.iter().collect::<Vec<_>>()).into_iter().map(|problem| problem.message).collect()
    }

    fn some() -> CopiedSends {
        CopiedSends {
            problem: None,
            limit: Bytes(1 << 20),
            sends: 10,
            bytes: Bytes(10 << 19),
            at_once: 4,
            no_memory: 0,
            datatype: 0,
            device: 0,
            most: Bytes(3 << 20),
            at_finalize: 0,
            failed: 0,
        }
    }

    #[test]
    fn runs_without_copies_have_no_word_of_them() {
        assert_eq!(said(&[None, None]), Vec::<String>::new());
    }

    #[test]
    fn ranks_are_summed() {
        let more = CopiedSends { no_memory: 3, datatype: 2, device: 5, at_finalize: 1, ..some() };
        assert_eq!(
            said(&[Some(some()), None, Some(more)]),
            ["LAPSCOPE_BUFFER_SENDS: 20 standard sends of up to 1.00 MiB went from copies. Waits and overlap of these say nothing of \
              their transfers; 60.0 % of them might have blocked without. Others went as they were: 3 because \
              LAPSCOPE_BUFFER_SENDS_MB was in use, 2 because their data could not be copied, 5 because their \
              data may lie in the memory of a GPU. At most 3.00 MiB of copies were under way on a rank. Under way when MPI_Finalize was called: 1."]
        );
    }

    #[test]
    fn what_failed_and_why_ranks_stopped_are_said_apart() {
        let broken =
            CopiedSends { failed: 1, problem: Some("the program uses sessions".into()), ..some() };
        let said = said(&[Some(broken), Some(some())]);
        assert_eq!(
            said[1],
            "MPI could not complete 1 copied send, which the program took for sent"
        );
        assert!(said[2].contains("nothing any more: the program uses sessions"), "{said:?}");
        assert_eq!(said.len(), 3);
    }
}
