//! Programs whose instructions another program carries out: the stack of such a process is that other program's.

use std::fs;

use lapscope_data::symbols::base_name;

/// Why frames would be wrong, with the way out; `paths`: of the files with code that a process has mapped.
pub fn by<'a>(pid: i64, paths: impl Iterator<Item = &'a str>) -> Option<String> {
    let executable = fs::read_link(format!("/proc/{pid}/exe")).unwrap_or_default();
    let executable = executable.to_string_lossy();
    let name = base_name(&executable);
    let names: Vec<&str> = paths.map(base_name).collect();
    let has = |part: &str| names.iter().any(|name| name.starts_with(part));
    let is_emulator = |name: &str| {
        let emulated = name.strip_prefix("qemu-").filter(|it| !it.starts_with("system"));
        emulated.is_some() || ["box64", "FEXInterpreter"].iter().any(|it| name.starts_with(it))
    };
    let is_valgrind = executable.contains("/valgrind/") && name.ends_with("-linux");
    match () {
        () if is_valgrind || has("vgpreload_") => Some(format!(
            "it runs under valgrind: what can be read is not the program's stack, but \
             `gdb -ex 'target remote | vgdb --pid={pid}' PROGRAM` reads that"
        )),
        () if is_emulator(name) => Some(format!(
            "it runs under an emulator, {name}: what can be read is not the program's stack"
        )),
        () if has("librrpreload.so") || is_traced_by_rr(pid) => Some(
            "rr records it: what can be read may not be the program's stack, but `rr replay` shows that".to_owned(),
        ),
        () if has("libdynamorio.so") || has("pinbin") => Some(
            "an instrumentation tool rewrites it: what can be read is not the program's stack".to_owned(),
        ),
        () => None,
    }
}

fn is_traced_by_rr(pid: i64) -> bool {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let tracer = status.lines().find_map(|line| line.strip_prefix("TracerPid:"));
    let name = tracer.and_then(|it| fs::read_to_string(format!("/proc/{}/comm", it.trim())).ok());
    name.is_some_and(|name| name.trim() == "rr")
}
