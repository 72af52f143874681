//! What the identity of a job tells of Slurm: recorders call a step `slurm.pmix.JOB.STEP`, as its PMIx does, or `JOB.STEP`.

/// Number of the job that a step is of; `None` for what another launcher has started.
pub fn job_of(identity: &str) -> Option<&str> {
    let (rest, step) = identity.rsplit_once('.')?;
    let job = match rest.rsplit_once('.') {
        None => rest,
        Some(("slurm.pmix", job)) => job,
        Some(_) => return None,
    };
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    (is_number(job) && is_number(step)).then_some(job)
}

/// Whether `SLURM_STEP_ID` is of a step that srun has started: the shell of an interactive allocation and a batch script have
/// numbers from 0xfffffff0 on.
pub fn is_step(number: &str) -> bool {
    number.parse::<u32>().is_ok_and(|number| number < 0xffff_fff0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shells_of_allocations_are_no_steps() {
        assert!(is_step("0") && is_step("17"));
        assert!(!is_step("4294967290") && !is_step("") && !is_step("none"));
    }

    #[test]
    fn steps_are_told_from_what_others_call_their_jobs() {
        assert_eq!(job_of("slurm.pmix.4711.0"), Some("4711"));
        assert_eq!(job_of("4711.12"), Some("4711"));
        for job in
            ["", "19782.ab-cd", "node1:4711", "10.0.0.1:4711", "prterun-vm-893@1", "19.", "1.2.3"]
        {
            assert_eq!(job_of(job), None, "{job}");
        }
    }
}
