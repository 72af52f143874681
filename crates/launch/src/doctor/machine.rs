//! The machine: clock, container, counters, and what `make demo` needs.

use std::ffi::OsStr;
use std::process::Command;

use super::host::Host;
use super::Finding;
use crate::bounded;
use crate::run::line::find_executable;

const TOPIC: &str = "machine";
/// The recorder takes no counter of this rate or less (base/clock.c).
const SLOWEST_HZ: u64 = 10_000_000;

pub fn look(host: &Host) -> Vec<Finding> {
    let mut findings = vec![clock(host)];
    findings.extend(container(host));
    findings.push(papi());
    if is_source_tree() {
        findings.push(slow_link());
    }
    findings
}

fn clock(host: &Host) -> Finding {
    let source = host.read("/sys/devices/system/clocksource/clocksource0/current_clocksource");
    let source = source.unwrap_or_else(|| "unknown".into());
    match ticks_per_s() {
        Some(hz) => of_aarch64(hz, &source),
        None => of_x86(&host.read("/proc/cpuinfo").unwrap_or_default(), &source),
    }
}

/// The rate of the counter that the recorder reads (`cntvct_el0`); `None`: the processor does not say.
fn ticks_per_s() -> Option<u64> {
    #[cfg(target_arch = "aarch64")]
    {
        let hz: u64;
        // SAFETY: every program may read this register, and reading changes nothing.
        unsafe { std::arch::asm!("mrs {}, cntfrq_el0", out(reg) hz, options(nomem, nostack)) };
        Some(hz)
    }
    #[cfg(not(target_arch = "aarch64"))]
    None
}

fn of_aarch64(hz: u64, source: &str) -> Finding {
    let name = "clock";
    let mhz = hz as f64 / 1e6;
    let says = format!("generic timer, constant rate of {mhz:.1} MHz (the kernel's: {source})");
    if hz > SLOWEST_HZ {
        return Finding::ok(TOPIC, name, says);
    }
    Finding::note(TOPIC, name, says, "nothing to do; each recorded call costs more").follows(
        "too slow to record by: CLOCK_MONOTONIC is used, and LAPSCOPE_CLOCK=tsc is refused",
    )
}

fn of_x86(facts: &str, source: &str) -> Finding {
    let name = "clock";
    let flags = facts.lines().find(|line| line.starts_with("flags")).unwrap_or_default();
    let has = |flag: &str| flags.split_whitespace().any(|word| word == flag);
    let guest = if has("hypervisor") { ", virtual machine" } else { "" };
    let says = format!("time-stamp counter, the kernel's: {source}{guest}");
    if !(has("constant_tsc") && has("nonstop_tsc")) {
        return Finding::note(
            TOPIC,
            name,
            format!("no invariant {says}"),
            "nothing to do; each recorded call costs some 30 ns more",
        )
        .follows("CLOCK_MONOTONIC is used");
    }
    // kvm-clock and Hyper-V's page are computed from the counter, and pvclock's readers trust it
    if ["hpet", "acpi_pm", "jiffies", "refined-jiffies"].contains(&source) {
        return Finding::warn(
            TOPIC,
            name,
            format!("invariant {says}"),
            "export LAPSCOPE_CLOCK=monotonic",
        )
        .follows("the kernel has found the counter unreliable: times of ranks may drift apart");
    }
    Finding::ok(TOPIC, name, format!("invariant {says}"))
}

/// Inside of which kind of container this is.
fn container(host: &Host) -> Option<Finding> {
    let name = "container";
    let kind = if host.first_variable(&["APPTAINER_CONTAINER", "SINGULARITY_CONTAINER"]).is_some() {
        "Apptainer"
    } else if host.exists("/run/.containerenv") {
        "Podman"
    } else if host.exists("/.dockerenv") {
        "Docker"
    } else if host.read("/proc/1/cgroup").is_some_and(|text| text.contains("kubepods")) {
        "Kubernetes"
    } else {
        host.variable("container")?
    };
    let advice = "bind lapscope's directory and the run directory into it (apptainer exec --bind, docker run -v)";
    let finding = Finding::note(TOPIC, name, format!("inside of one ({kind})"), advice);
    Some(finding.follows(
        "what is said here is of the container; its MPI has to be that of the launcher outside, where there is one",
    ))
}

/// `make demo` is there where lapscope was built.
fn is_source_tree() -> bool {
    let own = std::env::current_exe().unwrap_or_default();
    own.ancestors().any(|place| place.join("examples/halo/demo.sh").is_file())
}

fn papi() -> Finding {
    let name = "PAPI";
    // the names that counters.c looks for
    for library in [
        c"libpapi.so.7.2",
        c"libpapi.so.7.1",
        c"libpapi.so.7.0",
        c"libpapi.so.7",
        c"libpapi.so.6.0",
        c"libpapi.so.6",
        c"libpapi.so.5.7",
        c"libpapi.so",
    ] {
        // SAFETY: a name with an end; PAPI does nothing when it is loaded, and is unloaded at once.
        let handle = unsafe { libc::dlopen(library.as_ptr(), libc::RTLD_LAZY | libc::RTLD_LOCAL) };
        if !handle.is_null() {
            // SAFETY: from dlopen.
            unsafe { libc::dlclose(handle) };
            return Finding::ok(TOPIC, name, library.to_string_lossy());
        }
    }
    Finding::note(TOPIC, name, "not found", "install it (Debian: libpapi-dev), or load its module")
        .follows("only LAPSCOPE_COUNTERS needs it")
}

/// What `make demo` needs for its slow link.
fn slow_link() -> Finding {
    let name = "network namespaces";
    let permitted = |arguments: &[&str]| {
        let said = bounded::ask(Command::new("unshare").args(arguments), bounded::LIMIT);
        said.is_some_and(|said| said.complaint().is_none())
    };
    let has_tc = ["tc", "/sbin/tc", "/usr/sbin/tc"]
        .iter()
        .any(|tc| find_executable(OsStr::new(tc)).is_some());
    if !permitted(&["-n", "true"]) && !permitted(&["-rn", "true"]) {
        return Finding::note(
            TOPIC,
            name,
            "not permitted",
            "nothing to do, it then runs over shared memory",
        )
        .follows("only `make demo` uses them");
    }
    if !has_tc {
        return Finding::note(
            TOPIC,
            name,
            "permitted, but there is no tc",
            "install it (Debian: iproute2)",
        )
        .follows("only `make demo` uses it");
    }
    Finding::ok(TOPIC, name, "permitted, and tc is here: `make demo` can make a slow link")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::tests::tree;
    use crate::doctor::Status;

    #[test]
    fn clocks() {
        let invariant = "processor: 0\nflags\t: fpu constant_tsc nonstop_tsc hypervisor\n";
        let good = of_x86(invariant, "kvm-clock");
        assert_eq!((good.status, good.says.contains("virtual machine")), (Status::Ok, true));
        assert!(of_x86(invariant, "hpet").advice.unwrap().contains("LAPSCOPE_CLOCK"));
        let varying = of_x86("flags : fpu constant_tsc\n", "tsc");
        assert_eq!(varying.status, Status::Note);
        assert!(!varying.says.contains("virtual machine"), "{}", varying.says);
    }

    #[test]
    fn a_generic_timer_may_be_too_slow() {
        assert_eq!(of_aarch64(62_500_000, "arch_sys_counter").status, Status::Ok);
        let slow = of_aarch64(SLOWEST_HZ, "arch_sys_counter");
        assert_eq!((slow.status, slow.says.contains("10.0 MHz")), (Status::Note, true));
        assert!(slow.follows.unwrap().contains("LAPSCOPE_CLOCK=tsc is refused"));
    }

    #[test]
    fn containers_by_their_marks() {
        let kind = |files: &[(&str, &str)], variables: &[(&str, &str)]| {
            let root = tree(files);
            container(&Host::made(root.path(), variables)).map(|finding| finding.says)
        };
        assert_eq!(kind(&[], &[]), None);
        assert_eq!(kind(&[(".dockerenv", "")], &[]).as_deref(), Some("inside of one (Docker)"));
        assert_eq!(
            kind(&[("run/.containerenv", "")], &[]).as_deref(),
            Some("inside of one (Podman)")
        );
        let apptainer = kind(&[], &[("APPTAINER_CONTAINER", "/a.sif")]);
        assert_eq!(apptainer.as_deref(), Some("inside of one (Apptainer)"));
        assert_eq!(kind(&[], &[("container", "lxc")]).as_deref(), Some("inside of one (lxc)"));
    }
}
