use super::*;
use crate::stacks::layers::ProgramFiles;

/// `function@module`, innermost first.
fn named(frame: &str) -> FrameName {
    let (function, module) = frame.split_once('@').expect("a module");
    let name = FrameName {
        function: (!function.is_empty()).then(|| function.to_owned()),
        offset: None,
        file: Some("x.c".to_owned()),
        line: Some(1),
        column: None,
        module: Some(module.to_owned()),
        address: 1,
        inlined: false,
    };
    match function {
        "signal" => name.of_signal(),
        _ => name,
    }
}

fn found(stack: &str) -> Nesting {
    let names: Vec<FrameName> = stack.split_whitespace().map(named).collect();
    let files = ProgramFiles::made_up(&["app", "libapp.so"]);
    let layers: Vec<Layer> = names.iter().map(|name| files.layer(name)).collect();
    nesting(&names, &layers)
}

fn functions(nesting: &Nesting) -> String {
    let names = nesting.frames.iter().map(|it| it.function.clone().unwrap_or_default());
    names.collect::<Vec<String>>().join(" ")
}

const MPI: &str =
    "poll@libc.so.6 opal_progress@libopen-pal.so.40 x@mca_pml.so PMPI_Recv@libmpi.so.40";

#[test]
fn a_call_is_cut_above_mpi() {
    let it = found(&format!("{MPI} work@app main@app"));
    assert_eq!((it.call.as_deref(), functions(&it).as_str()), (Some("MPI_Recv"), "work main"));
    assert_eq!((&it.within, it.wrapper_frames, it.entry), (&None, 0, Some(3)));
    let it = found("x@libmpi.so.40 PMPI_Waitall@libmpi.so.40 y@libmpi.so.40 PMPI_File_write_all@libmpi.so.40 main@app");
    assert_eq!(it.call.as_deref(), Some("MPI_File_write_all"), "MPI calls itself");
    let it = found("poll@libc.so.6 main@app");
    assert_eq!((it.call.as_deref(), functions(&it).as_str()), (None, "poll main"));
    let it = found("poll@libc.so.6 progress@libopen-pal.so.40 start_thread@libc.so.6");
    assert_eq!(it.call, None, "a thread of MPI's own");
}

/// Calls of MPI, the C library and the program's own in between, then a function that MPI calls.
#[test]
fn functions_that_mpi_calls_are_seen() {
    let reduce = "ompi_op@libmpi.so.40 x@mca_coll.so PMPI_Allreduce@libmpi.so.40 step@app main@app";
    let it = found(&format!("nanosleep@libc.so.6 helper@libapp.so combine@app {reduce}"));
    assert_eq!((it.call.as_deref(), it.within.as_deref()), (None, Some("MPI_Allreduce")));
    assert_eq!(functions(&it), "nanosleep helper combine MPI_Allreduce step main");
    assert!(is_call(&it.frames[3]) && !is_call(&it.frames[2]) && !it.by_signal);
    let it = found(&format!("malloc@app {reduce}"));
    assert_eq!((it.call.as_deref(), it.within), (Some("MPI_Allreduce"), None));
    let it = found(&format!("{MPI} combine@app {reduce}"));
    assert_eq!(it.call.as_deref(), Some("MPI_Recv"), "it calls MPI itself");
    assert_eq!(it.within.as_deref(), Some("MPI_Allreduce"));
    assert_eq!(functions(&it), "combine MPI_Allreduce step main");
    let it = found(&format!("x@libucs.so.0 x@libfabric.so.1 {reduce}"));
    assert_eq!(it.call.as_deref(), Some("MPI_Allreduce"), "what MPI loads is not the program's");
}

#[test]
fn libraries_that_pass_calls_on_are_seen_through() {
    let it = found(&format!("{MPI} log@libwatch.so MPI_Recv@libwatch.so work@app main@app"));
    assert_eq!((it.call.as_deref(), it.wrapper_frames), (Some("MPI_Recv"), 2));
    assert_eq!(it.called_as, None);
    assert_eq!(functions(&it), "log MPI_Recv work main");
    let it = found("x@libmpi.so.40 PMPI_Barrier@libmpi.so.40 MPI_Reduce@libmpitrace.so.1 work@app");
    assert_eq!(
        (it.call.as_deref(), functions(&it).as_str()),
        (Some("MPI_Barrier"), "MPI_Reduce work")
    );
    assert_eq!(it.called_as.as_deref(), Some("MPI_Reduce"));
    let it = found(&format!("{MPI} MPI_Recv@app mpi_recv_@libmpi_mpifh.so.40 work@app"));
    assert_eq!((it.call.as_deref(), functions(&it).as_str()), (Some("MPI_Recv"), "MPI_Recv work"));
    let it = found("log@libwatch.so MPI_Recv@libwatch.so work@app");
    assert_eq!((it.call.as_deref(), it.wrapper_frames), (None, 0), "it is not in MPI");
    let it = found(&format!("{MPI} mpi_exchange_halo_@app main@app"));
    assert_eq!((functions(&it).as_str(), it.wrapper_frames), ("mpi_exchange_halo_ main", 0));
    let it = found("MPID_Progress@libmpi_dbg.so.7 MPI_Recv@libmpi_dbg.so.7 work@app");
    assert_eq!(it.call.as_deref(), Some("MPI_Recv"), "an MPI of a name that is not known");
}

#[test]
fn handlers_of_signals_interrupt() {
    let it = found(&format!("handler@app signal@libc.so.6 {MPI} work@app main@app"));
    assert_eq!((it.call.as_deref(), it.within.as_deref()), (None, Some("MPI_Recv")));
    assert!(it.by_signal);
    assert_eq!(functions(&it), "handler <signal handler called> MPI_Recv work main");
    let it = found("handler@app signal@libc.so.6 work@app main@app");
    assert_eq!((it.call, it.within, it.by_signal), (None, None, false));
    let it = found(&format!("sample@liblapscope-openmpi.so signal@libc.so.6 {MPI} main@app"));
    assert_eq!((it.call.as_deref(), functions(&it).as_str()), (Some("MPI_Recv"), "main"));
    assert_eq!(it.entry, Some(5));
    let it = found("sample@liblapscope-openmpi.so signal@libc.so.6 work@app main@app");
    assert_eq!((it.call.as_deref(), functions(&it).as_str()), (None, "work main"));
}
