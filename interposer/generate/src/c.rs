//! Wrappers of the C binding.

use crate::body::{Body, Language};
use crate::calls::Call;
use crate::tables::c_params;
use crate::{banner, line};

/// One function for each call whose wrapper is not written by hand.
pub fn wrappers(calls: &[Call]) -> String {
    let mut text = banner("Wrappers of the C binding.");
    line!(&mut text, "#include \"wrap/completion.h\"");
    line!(&mut text, "#include \"wrap/wrap_c.h\"");
    for call in calls.iter().filter(|call| !call.verb.by_hand()) {
        line!(&mut text);
        line!(&mut text, "int wrap_C_{}({})", call.name, c_params(call));
        line!(&mut text, "{{");
        Body { call, language: Language::C }.write(&mut text);
        line!(&mut text, "}}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calls::parse;

    #[test]
    fn a_post_stamps_before_and_behind_the_real_call() {
        let calls = parse(
            "[A]\npost+request Isend(in buf, count count, int dest)\n    message: to(dest)\n    bytes: 4 * count\n",
        )
        .expect("understood");
        let text = wrappers(&calls);
        let body = text.split_once("int wrap_C_").expect("a wrapper").1;
        assert_eq!(
            body,
            "MPI_Isend(const void *buf, int count, int dest, MPI_Request *request)
{
    struct thread *t = enter_unless_paused();
    if (!t) {
        return REAL(C_MPI_Isend)(buf, count, dest, request);
    }
    uint64_t begin = stamp_begin(t);
    int error = REAL(C_MPI_Isend)(buf, count, dest, request);
    uint64_t end = stamp_end(t);
    if (error == MPI_SUCCESS) {
        struct message message = to(dest);
        message.bytes = 4 * count;
        record_post(t, CALL_MPI_Isend, CALLER(), begin, end, message, *request, request);
    }
    leave(t);
    return error;
}
"
        );
    }

    #[test]
    fn a_handle_that_is_freed_is_read_before_the_call_unless_there_is_none() {
        let calls = parse("[A]\nmake Comm_free(comm* comm)\n    before: comm_forget(*comm)\n")
            .expect("understood");
        let text = wrappers(&calls);
        assert!(text.contains("comm ? enter() : NULL;"), "{text}");
        let (before, after) = text.split_once("int error").expect("a call");
        assert!(before.contains("comm_forget(*comm);") && !after.contains("comm_forget"), "{text}");
    }

    #[test]
    fn a_probe_that_may_say_no_polls() {
        let calls = parse("[A]\nprobe+status Probe(int tag)\nprobe+flag+status Iprobe(int tag)\n")
            .expect("understood");
        let text = wrappers(&calls);
        let (blocking, asking) = text.split_once("wrap_C_MPI_Iprobe").expect("both");
        assert!(
            !blocking.contains("record_unsuccessful_test")
                && asking.contains("record_unsuccessful_test"),
            "{text}"
        );
    }

    #[test]
    fn calls_by_hand_are_left_out() {
        let calls = parse("[A]\ncontrol Finalize()\n").expect("understood");
        assert!(!wrappers(&calls).contains("wrap_C_"));
    }
}
