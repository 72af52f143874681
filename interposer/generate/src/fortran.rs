//! Wrappers of the Fortran bindings: each calls the real Fortran function and only reads its arguments.

use crate::body::{Body, Language};
use crate::calls::Call;
use crate::symbols::{bindings, Binding};
use crate::tables::{fortran_params, function_name};
use crate::{banner, line};

/// One function for each call whose wrapper is not written by hand, in each Fortran binding that it has. They differ in
/// the real function and in whether buffers come as descriptors, so the body is written, and compiled, once; what depends
/// on where the application's call stands is done in each.
pub fn wrappers(calls: &[Call]) -> String {
    let mut text = banner("Wrappers of the Fortran bindings.");
    line!(&mut text, "#include \"wrap/completion.h\"");
    line!(&mut text, "#include \"wrap/wrap_fortran.h\"");
    for call in calls.iter().filter(|call| !call.verb.by_hand()) {
        let of_fortran: Vec<Binding> =
            bindings(call).into_iter().filter(|&binding| binding != Binding::C).collect();
        let params = fortran_params(call);
        let body = Body { call, language: Language::Fortran };
        line!(&mut text);
        line!(
            &mut text,
            "static __attribute__((noinline)) void fortran_{}(struct thread *t, struct caller caller, {}_fn *real, int descriptors, {params})",
            call.name,
            function_name(call, of_fortran[0])
        );
        line!(&mut text, "{{");
        line!(&mut text, "    (void)caller, (void)descriptors;");
        body.write(&mut text);
        line!(&mut text, "}}");
        for binding in of_fortran {
            entry(&mut text, &body, binding, &params);
        }
    }
    text
}

fn entry(text: &mut String, body: &Body<'_>, binding: Binding, params: &str) {
    let (name, function) = (&body.call.name, function_name(body.call, binding));
    let (arguments, descriptors) = (body.arguments(), i32::from(binding == Binding::F08ts));
    line!(text);
    line!(text, "void wrap_{function}({params})");
    line!(text, "{{");
    line!(text, "    struct thread *t = {};", body.enter());
    line!(text, "    if (t)");
    line!(
        text,
        "        fortran_{name}(t, CALLER(), REAL({function}), {descriptors}, {arguments});"
    );
    line!(text, "    else");
    line!(text, "        REAL({function})({arguments});");
    line!(text, "}}");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calls::parse;

    const SEND: &str = "[A]\npost+request Isend(in buf, count count, comm comm) large\n    message: to(comm)\n    bytes: 4 * count\n";

    #[test]
    fn only_what_is_spoken_of_is_read() {
        let calls = parse("[A]\ncall Send(in buf, int dest, comm comm)\n    message: to(comm)\n")
            .expect("understood");
        let text = wrappers(&calls);
        assert!(text.contains("MPI_Comm comm = comm_f2c(*comm_f);"), "{text}");
        assert!(!text.contains("int dest ="), "{text}");
    }

    #[test]
    fn each_binding_calls_its_own_real_function() {
        let text = wrappers(&parse(SEND).expect("understood"));
        for (wrapper, call) in [
            (
                "void wrap_F_MPI_Isend(",
                "fortran_MPI_Isend(t, CALLER(), REAL(F_MPI_Isend), 0, buf, count_f, comm_f, request, ierror);",
            ),
            (
                "void wrap_F08TS_MPI_Isend(",
                "fortran_MPI_Isend(t, CALLER(), REAL(F08TS_MPI_Isend), 1, ",
            ),
            (
                "void wrap_F08TS_MPI_Isend_c(",
                "fortran_MPI_Isend_c(t, CALLER(), REAL(F08TS_MPI_Isend_c), 1, ",
            ),
        ] {
            let body = text.split_once(wrapper).unwrap_or_else(|| panic!("{wrapper}\n{text}")).1;
            assert!(body.split_once('}').expect("a body").0.contains(call), "{body}");
        }
        assert!(!text.contains("wrap_F_MPI_Isend_c"), "large counts are not in mpif.h");
    }

    #[test]
    fn handles_behind_addresses_are_converted() {
        let text = wrappers(
            &parse("[A]\nmake Comm_dup(comm comm, comm* made)\n    after: made_comm(*made, call, comm)\n")
                .expect("understood"),
        );
        assert!(text.contains("made_comm(comm_f2c(*made), CALL_MPI_Comm_dup, comm);"), "{text}");
    }
}
