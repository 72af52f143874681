//! What ranks may have here: cores, memory, threads, files.

use super::host::Host;
use super::Finding;

const TOPIC: &str = "limits";
/// A rank of an MPI over a network has hundreds of descriptors; the recorder three.
const FEW_FILES: u64 = 64;
/// Less is soon used up by ranks that have threads of their MPI, of OpenMP and of the recorder.
const FEW_THREADS: u64 = 256;
const LITTLE_MEMORY: u64 = 1 << 30;

pub fn look(host: &Host) -> Vec<Finding> {
    let mut findings = vec![cores(host, permitted_cores()), memory(host)];
    findings.extend(of_process(&Own::look(), host.spool_mb()));
    findings
}

// --- control groups --------------------------------------------------------------------------------------------------

/// The value of a file of our control group, or of the nearest above it that has one: version 2, or `controller` of version 1.
fn group_value(host: &Host, controller: &str, version_2: &str, version_1: &str) -> Option<String> {
    let groups = host.read("/proc/self/cgroup")?;
    let path_of = |wanted: &dyn Fn(&str) -> bool| {
        groups.lines().find_map(|line| {
            let mut parts = line.splitn(3, ':').skip(1);
            let controllers = parts.next()?;
            wanted(controllers).then(|| parts.next().unwrap_or("/").to_owned())
        })
    };
    let of_version_1 = path_of(&|it| it.split(',').any(|it| it == controller))
        .and_then(|path| upwards(host, &format!("/sys/fs/cgroup/{controller}"), &path, version_1));
    let unified =
        path_of(&str::is_empty).and_then(|path| upwards(host, "/sys/fs/cgroup", &path, version_2));
    unified.or(of_version_1)
}

/// In a container the group's own path may not be there, and its files lie at the top.
fn upwards(host: &Host, mount: &str, path: &str, file: &str) -> Option<String> {
    let mut path = path.trim_end_matches('/');
    loop {
        // "max": no limit here, perhaps one above
        let value = host.read(&format!("{mount}{path}/{file}"));
        if let Some(value) = value.filter(|value| !value.starts_with("max")) {
            return Some(value);
        }
        path = &path[..path.rfind('/')?];
    }
}

// --- cores -----------------------------------------------------------------------------------------------------------

/// Those of the machine that this process may run on.
fn permitted_cores() -> usize {
    // SAFETY: a set of the size that is said; the call fills it in.
    let count = unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &mut set);
        libc::CPU_COUNT(&set)
    };
    usize::try_from(count).unwrap_or(1)
}

fn cores(host: &Host, permitted: usize) -> Finding {
    let name = "cores";
    let online = host.read("/sys/devices/system/cpu/online").map(|list| in_list(&list));
    let of = online.filter(|online| *online > permitted).map(|online| format!(" of {online}"));
    let says = format!("{permitted}{} permitted", of.unwrap_or_default());
    if let Some(quota) = quota(host).filter(|quota| *quota < permitted as f64) {
        let says = format!("{says}, but a share of {quota:.1} of their time (control group)");
        let advice = "ask for whole cores: more --cpus-per-task, docker run --cpus";
        return Finding::warn(TOPIC, name, says, advice)
            .follows("processes are stopped when it is used up, inside MPI and outside: waits then say nothing of MPI");
    }
    let tasks =
        host.variable("SLURM_NTASKS_PER_NODE").and_then(|tasks| tasks.parse::<usize>().ok());
    if let Some(tasks) = tasks.filter(|tasks| *tasks > permitted) {
        return Finding::warn(
            TOPIC,
            name,
            format!("{says}, for {tasks} ranks on each node"),
            "ask for a core for each rank: -c 1, --ntasks-per-node",
        )
        .follows(SHARED);
    }
    if permitted == 1 {
        let advice = "ask for a core for each rank; elsewhere taskset -pc 0-N $$";
        return Finding::note(TOPIC, name, says, advice)
            .follows(format!("with two ranks here, {SHARED}"));
    }
    Finding::ok(TOPIC, name, says)
}

const SHARED: &str =
    "ranks that share a core wait for each other's computation, and overlap nothing";

/// `0-3,8`: five.
fn in_list(list: &str) -> usize {
    let number = |text: &str| text.trim().parse::<usize>().ok();
    let count = |part: &str| match part.split_once('-') {
        Some((first, last)) => Some(number(last)?.checked_sub(number(first)?)? + 1),
        None => number(part).map(|_| 1),
    };
    list.split(',').filter_map(count).sum()
}

/// Cores' worth of time that the control group gets.
fn quota(host: &Host) -> Option<f64> {
    let value = group_value(host, "cpu", "cpu.max", "cpu.cfs_quota_us")?;
    let mut words = value.split_whitespace().filter_map(|word| word.parse::<f64>().ok());
    let quota = words.next().filter(|quota| *quota > 0.0)?;
    let period = words
        .next()
        .or_else(|| group_value(host, "cpu", "cpu.max", "cpu.cfs_period_us")?.parse().ok());
    Some(quota / period.unwrap_or(100_000.0))
}

// --- memory ----------------------------------------------------------------------------------------------------------

fn memory(host: &Host) -> Finding {
    let name = "memory";
    let facts = host.read("/proc/meminfo").unwrap_or_default();
    let kib = |name: &str| {
        let line = facts.lines().find_map(|line| line.strip_prefix(name))?;
        line.trim_start_matches(':').split_whitespace().next()?.parse::<u64>().ok()
    };
    let available = kib("MemAvailable").map(|kib| kib << 10);
    let total = kib("MemTotal").map_or(u64::MAX, |kib| kib << 10);
    let group = group_value(host, "memory", "memory.max", "memory.limit_in_bytes");
    let group = group.and_then(|value| value.parse::<u64>().ok()).filter(|limit| *limit < total);
    let mb = |bytes: u64| bytes >> 20;
    let mut says =
        available.map_or("unknown".to_owned(), |bytes| format!("{} MB available", mb(bytes)));
    if let Some(limit) = group {
        says = format!("{says}, the job's limit is {} MB (control group)", mb(limit));
    }
    if available.into_iter().chain(group).any(|bytes| bytes < LITTLE_MEMORY) {
        let advice = "ask for more (--mem), or lapscope run --max-mb 8";
        return Finding::warn(TOPIC, name, says, advice).follows(format!(
            "a rank's spool is mapped, up to {} MB of it; what does not fit ends ranks by SIGKILL",
            host.spool_mb()
        ));
    }
    Finding::ok(TOPIC, name, says)
}

// --- limits of a process ---------------------------------------------------------------------------------------------

/// `None`: no limit.
struct Own {
    file_bytes: Option<u64>,
    address_bytes: Option<u64>,
    files: Option<u64>,
    threads: Option<u64>,
    signals: Option<u64>,
}

impl Own {
    fn look() -> Own {
        Own {
            file_bytes: limit(libc::RLIMIT_FSIZE),
            address_bytes: limit(libc::RLIMIT_AS),
            files: limit(libc::RLIMIT_NOFILE),
            threads: limit(libc::RLIMIT_NPROC),
            signals: limit(libc::RLIMIT_SIGPENDING),
        }
    }
}

/// A limit of this process; `None`: no limit.
pub fn limit(which: libc::__rlimit_resource_t) -> Option<u64> {
    // SAFETY: plain data that the call fills in.
    let limit = unsafe {
        let mut limit: libc::rlimit = std::mem::zeroed();
        libc::getrlimit(which, &mut limit);
        limit.rlim_cur
    };
    (limit != libc::RLIM_INFINITY).then_some(limit)
}

fn of_process(own: &Own, spool_mb: u64) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut warn = |name: &str, says: String, advice: &str, follows: &str| {
        findings.push(Finding::warn(TOPIC, name, says, advice).follows(follows));
    };
    if let Some(bytes) = own.file_bytes.filter(|bytes| *bytes < spool_mb << 20) {
        let says = format!("files may have {} KiB", bytes >> 10);
        let advice = "ulimit -f unlimited, or lapscope run --max-mb with less";
        warn(
            "file size",
            says,
            advice,
            &format!(
                "segments of shared memory are files, too: MPI_Init may end ranks by SIGXFSZ; of spools, up to {spool_mb} MB a rank, \
                 what is beyond is not recorded"
            ),
        );
    }
    if let Some(bytes) = own.address_bytes.filter(|bytes| *bytes < LITTLE_MEMORY) {
        let says = format!("{} MB of addresses a process", bytes >> 20);
        warn(
            "address space",
            says,
            "ulimit -v unlimited",
            "MPIs and the recorder map more than they use",
        );
    }
    if let Some(files) = own.files.filter(|files| *files < FEW_FILES) {
        let says = format!("{files} a process");
        warn(
            "open files",
            says,
            "ulimit -n 1024",
            "each rank has connections and the recorder's files",
        );
    }
    if let Some(threads) = own.threads.filter(|threads| *threads < FEW_THREADS) {
        let says = format!("{threads} of this user");
        warn(
            "threads",
            says,
            "ulimit -u unlimited",
            "MPIs, OpenMP and injection by thread start some a rank",
        );
    }
    if own.signals.is_some_and(|signals| signals < FEW_FILES) {
        let says = format!("{} of this user", own.signals.unwrap_or_default());
        warn("pending signals", says, "ulimit -i 4096", "each timer of injected tests holds one");
    }
    if findings.is_empty() {
        findings.push(Finding::ok(
            TOPIC,
            "limits",
            "files, addresses, threads: enough (ulimit -a)",
        ));
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::tests::tree;
    use crate::doctor::Status;

    #[test]
    fn cores_of_those_that_are_there() {
        assert_eq!((in_list("0-3,8"), in_list("0"), in_list("")), (5, 1, 0));
        let root = tree(&[("sys/devices/system/cpu/online", "0-63\n")]);
        let host = Host::made(root.path(), &[]);
        assert_eq!(cores(&host, 4).says, "4 of 64 permitted");
        assert_eq!(cores(&host, 1).status, Status::Note);
        let crowded = Host::made(root.path(), &[("SLURM_NTASKS_PER_NODE", "8")]);
        assert_eq!(cores(&crowded, 4).status, Status::Warn);
        assert_eq!(cores(&crowded, 8).status, Status::Ok);
    }

    #[test]
    fn shares_of_control_groups() {
        let second = tree(&[
            ("proc/self/cgroup", "0::/job/step\n"),
            ("sys/fs/cgroup/job/step/cpu.max", "max 100000\n"),
            ("sys/fs/cgroup/job/cpu.max", "150000 100000\n"),
        ]);
        assert_eq!(quota(&Host::made(second.path(), &[])), Some(1.5));
        assert_eq!(cores(&Host::made(second.path(), &[]), 2).status, Status::Warn);
        let first = tree(&[
            ("proc/self/cgroup", "4:cpu,cpuacct:/job\n0::/\n"),
            ("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "50000\n"),
            ("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n"),
        ]);
        assert_eq!(quota(&Host::made(first.path(), &[])), Some(0.5));
        let without = tree(&[
            ("proc/self/cgroup", "3:cpu:/\n"),
            ("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n"),
        ]);
        assert_eq!(quota(&Host::made(without.path(), &[])), None);
    }

    #[test]
    fn memory_of_the_job() {
        let files = [("proc/meminfo", "MemTotal: 16777216 kB\nMemAvailable: 8388608 kB\n")];
        let free = tree(&files);
        assert_eq!(memory(&Host::made(free.path(), &[])).says, "8192 MB available");
        let limited = [("proc/self/cgroup", "0::/\n"), ("sys/fs/cgroup/memory.max", "536870912\n")];
        let root = tree(&[&files[..], &limited].concat());
        let found = memory(&Host::made(root.path(), &[]));
        assert_eq!(found.status, Status::Warn);
        assert!(
            found.says.ends_with("the job's limit is 512 MB (control group)"),
            "{}",
            found.says
        );
        // Version 1 says "no limit" by a number beyond the machine's.
        let beyond = [
            ("proc/self/cgroup", "1:memory:/\n"),
            ("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"),
        ];
        let root = tree(&[&files[..], &beyond].concat());
        assert_eq!(memory(&Host::made(root.path(), &[])).status, Status::Ok);
    }

    #[test]
    fn limits_of_a_process() {
        let none = || Own {
            file_bytes: None,
            address_bytes: None,
            files: None,
            threads: None,
            signals: None,
        };
        assert_eq!(of_process(&none(), 50)[0].status, Status::Ok);
        let tight = Own {
            file_bytes: Some(1 << 20),
            address_bytes: Some(1 << 20),
            files: Some(16),
            threads: Some(10),
            signals: Some(0),
        };
        let names: Vec<String> =
            of_process(&tight, 50).into_iter().map(|finding| finding.name).collect();
        assert_eq!(
            names,
            ["file size", "address space", "open files", "threads", "pending signals"]
        );
        let enough = Own { file_bytes: Some(50 << 20), files: Some(1024), ..none() };
        assert_eq!(of_process(&enough, 50)[0].status, Status::Ok);
    }
}
