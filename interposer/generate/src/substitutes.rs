//! What LAPSCOPE_BUFFER_SENDS has wrappers call in the place of MPI's functions: sends that may go from copies, and calls by which
//! what was sent so has to have arrived.

use crate::body::{Body, Language};
use crate::calls::Call;
use crate::symbols::{bindings, Binding};
use crate::tables::{c_params, fortran_params, function_name};
use crate::verb::Verb;
use crate::{banner, line};

/// A function for each call that the clauses `copies` and `settles` speak of, in each of its bindings, and the table of all.
pub fn functions(calls: &[Call]) -> String {
    let mut text = banner("Functions in the place of MPI's, and their table.");
    let mut table = String::new();
    for call in calls.iter().filter(|call| is_copied(call) || !call.clauses.settles.is_empty()) {
        for binding in bindings(call) {
            function(&mut text, call, binding);
            let function = function_name(call, binding);
            line!(&mut table, "    [FUNCTION_{function}] = (void *)substitute_{function},");
        }
    }
    line!(&mut text);
    line!(&mut text, "static void *const all[FUNCTION_COUNT] = {{");
    text + &table + "};\n"
}

/// Sends of other modes than the standard one, and those that are prepared, go as they are.
fn is_copied(call: &Call) -> bool {
    let sends = matches!(call.verb, Verb::Call | Verb::Post) && call.facts.mode == Some("standard");
    sends && !call.clauses.copies.is_empty()
}

fn function(text: &mut String, call: &Call, binding: Binding) {
    let name = function_name(call, binding);
    let language = if binding == Binding::C { Language::C } else { Language::Fortran };
    let body = Body { call, language };
    let next = format!("NEXT({name})({})", body.arguments());
    line!(text);
    match language {
        Language::C => line!(text, "static int substitute_{name}({})", c_params(call)),
        Language::Fortran => line!(text, "static void substitute_{name}({})", fortran_params(call)),
    }
    line!(text, "{{");
    if is_copied(call) {
        send(text, &body, binding);
        line!(text, "    if (sent == SENT_NOT)");
        line!(text, "        {}{next};", if language == Language::C { "error = " } else { "" });
    } else {
        settle(text, &body);
        line!(text, "    {}{next};", if language == Language::C { "int error = " } else { "" });
    }
    if language == Language::C {
        line!(text, "    return error;");
    }
    line!(text, "}}");
}

/// A handle may be a null pointer, of which MPI says that it is wrong.
fn settle(text: &mut String, body: &Body<'_>) {
    let settles = &body.call.clauses.settles;
    let behind = |name: &str| settles.contains(&format!("*{name}"));
    let handle = body.call.params.iter().find(|param| behind(&param.name));
    if let Some(handle) = handle.filter(|_| body.language == Language::C) {
        line!(text, "    if ({})", handle.name);
        line!(text, "        {};", body.clause(settles));
    } else {
        line!(text, "    {};", body.clause(settles));
    }
}

/// The function that the application has called is first made to send nothing to MPI_PROC_NULL: it tells of wrong arguments, in
/// the way that the application has chosen, before anything is on its way; and makes the request that the application gets.
fn send(text: &mut String, body: &Body<'_>, binding: Binding) {
    let Body { call, language } = *body;
    let (name, copies) = (function_name(call, binding), &call.clauses.copies);
    let is_c = language == Language::C;
    let request = call.params.iter().find(|param| param.kind.name == "request*");
    body.load(text);
    if is_c {
        line!(text, "    int error = MPI_SUCCESS;");
        line!(text, "    struct asked_send asked = {{{copies}}};");
    } else {
        let descriptors = i32::from(binding == Binding::F08ts);
        line!(text, "    struct asked_send asked = fortran_asked({descriptors}, {copies});");
    }
    // of what MPI is to say that it is wrong
    let may = if is_c && request.is_some() { "!request ? NULL : " } else { "" };
    line!(text, "    struct copy *copy = {may}sends_copy(&asked);");
    line!(text, "    enum sent sent = SENT_NOT;");
    line!(text, "    if (copy) {{");
    let (set, error, place) =
        if is_c { ("error = ", "error", "&error") } else { ("", "*ierror", "ierror") };
    let nothing = body.arguments_but(|param| match (param.name.as_str(), is_c, call.large) {
        ("count", true, _) => Some("0"),
        ("count", false, false) => Some("&no_elements"),
        ("count", false, true) => Some("&no_large_elements"),
        ("dest", true, _) => Some("MPI_PROC_NULL"),
        ("dest", false, _) => Some("&nobody"),
        _ => None,
    });
    if request.is_some() {
        line!(text, "        {} before = *request;", if is_c { "MPI_Request" } else { "MPI_Fint" });
    }
    line!(text, "        {set}NEXT({name})({nothing});");
    if request.is_some() {
        line!(text, "        int is_made = {error} == MPI_SUCCESS;");
    }
    line!(text, "        sent = sends_send(copy, &asked, {place});");
    if request.is_some() {
        let made = if is_c { "*request" } else { "request_f2c(*request)" };
        line!(text, "        if (sent != SENT && is_made)");
        line!(text, "            take_back({made}, request, &before, sizeof before);");
    }
    line!(text, "    }}");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calls::parse;

    #[test]
    fn standard_sends_alone_are_copied() {
        let entry = "[A]\ncall Send, call:ready Rsend, post+request Isend, init+request Send_init\n(in buf, count count, int dest) large\n    message: to(dest)\n    copies: buf, count, dest\n";
        let text = functions(&parse(entry).expect("understood"));
        assert_eq!(text.matches("(void *)").count(), 14, "{text}");
        assert!(!text.contains("Rsend") && !text.contains("init"), "{text}");
        for said in [
            "error = NEXT(C_MPI_Send)(buf, 0, MPI_PROC_NULL);",
            "struct copy *copy = !request ? NULL : sends_copy(&asked);",
            "fortran_asked(1, buf, count, dest);",
            "NEXT(F08_MPI_Isend_c)(buf, &no_large_elements, &nobody, request, ierror);",
        ] {
            assert!(text.contains(said), "{said}\n{text}");
        }
    }

    #[test]
    fn what_was_copied_is_settled_before_the_call() {
        let entry = "[A]\nmake Comm_free(comm* comm)\n    settles: sends_comm_freed(*comm)\n";
        let text = functions(&parse(entry).expect("understood"));
        let c = "    if (comm)\n        sends_comm_freed(*comm);\n    int error = NEXT(C_MPI_Comm_free)(comm);\n    return error;\n";
        let fortran =
            "    sends_comm_freed(comm_f2c(*comm));\n    NEXT(F_MPI_Comm_free)(comm, ierror);\n";
        assert!(text.contains(c) && text.contains(fortran), "{text}");
    }
}
