//! What joins this node to others, and how its own processes reach each other's memory.

use super::host::Host;
use super::limits::limit;
use super::{shared_memory, Finding};

const TOPIC: &str = "transports";

pub fn look(host: &Host) -> Vec<Finding> {
    let adapters = adapters(host);
    let mut findings = vec![network(&adapters)];
    if adapters.iter().any(|adapter| adapter.needs_locked_memory) {
        findings.extend(locked_memory(limit(libc::RLIMIT_MEMLOCK)));
    }
    findings.extend(shared_memory::look(host, TOPIC));
    findings
}

struct Adapter {
    /// `mlx5_0 InfiniBand, 200 Gb/sec (4X HDR)`
    title: String,
    is_up: bool,
    needs_locked_memory: bool,
}

/// Adapters of RDMA (Linux: Documentation/ABI/stable/sysfs-class-infiniband), and HPE Slingshot's.
fn adapters(host: &Host) -> Vec<Adapter> {
    let mut adapters = Vec::new();
    for device in host.names("/sys/class/infiniband") {
        let ports = format!("/sys/class/infiniband/{device}/ports");
        for port in host.names(&ports) {
            let say = |file: &str| host.read(&format!("{ports}/{port}/{file}")).unwrap_or_default();
            // "4: ACTIVE"
            let is_up = say("state").contains("ACTIVE");
            let (layer, rate) = (say("link_layer"), say("rate"));
            let title = format!("{device} {layer} {rate}").trim().to_owned();
            adapters.push(Adapter { title, is_up, needs_locked_memory: true });
        }
    }
    for device in host.names("/sys/class/cxi") {
        let title = format!("{device} Slingshot");
        adapters.push(Adapter { title, is_up: true, needs_locked_memory: false });
    }
    adapters
}

fn network(adapters: &[Adapter]) -> Finding {
    let name = "network";
    let list = |is_up: bool| {
        let of_kind = adapters.iter().filter(|adapter| adapter.is_up == is_up);
        of_kind.map(|adapter| adapter.title.as_str()).collect::<Vec<_>>().join("; ")
    };
    let (up, down) = (list(true), list(false));
    if adapters.is_empty() {
        return Finding::ok(TOPIC, name, "no RDMA adapter: messages between nodes go by TCP");
    }
    if up.is_empty() {
        let advice = "ibstat, or ask the administrators; on the login node it may be so by intent";
        return Finding::warn(TOPIC, name, format!("no port is active: {down}"), advice)
            .follows("messages between nodes go by TCP");
    }
    let rest = if down.is_empty() { String::new() } else { format!("; not active: {down}") };
    Finding::ok(TOPIC, name, format!("{up}{rest}"))
}

fn locked_memory(limit: Option<u64>) -> Option<Finding> {
    let kib = limit? >> 10;
    let says = format!("{kib} KiB may be locked");
    let advice = "ulimit -l unlimited; where that is refused: memlock in /etc/security/limits.conf, and for the job's daemon";
    let finding = Finding::warn(TOPIC, "locked memory", says, advice);
    Some(finding.follows(
        "RDMA registers buffers by locking them: transports may fall back to TCP, or fail",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::tests::tree;
    use crate::doctor::Status;

    #[test]
    fn adapters_by_their_files() {
        let root = tree(&[
            ("sys/class/infiniband/mlx5_0/ports/1/state", "4: ACTIVE\n"),
            ("sys/class/infiniband/mlx5_0/ports/1/link_layer", "InfiniBand\n"),
            ("sys/class/infiniband/mlx5_0/ports/1/rate", "200 Gb/sec (4X HDR)\n"),
            ("sys/class/infiniband/mlx5_1/ports/1/state", "1: DOWN\n"),
            ("sys/class/cxi/cxi0/dummy", ""),
        ]);
        let found = network(&adapters(&Host::made(root.path(), &[])));
        assert_eq!(found.status, Status::Ok);
        assert_eq!(
            found.says,
            "mlx5_0 InfiniBand 200 Gb/sec (4X HDR); cxi0 Slingshot; not active: mlx5_1"
        );
        let down = tree(&[("sys/class/infiniband/mlx5_1/ports/1/state", "1: DOWN\n")]);
        assert_eq!(network(&adapters(&Host::made(down.path(), &[]))).status, Status::Warn);
        let none = tree(&[]);
        assert!(network(&adapters(&Host::made(none.path(), &[]))).says.contains("TCP"));
    }

    #[test]
    fn little_locked_memory_is_a_warning() {
        assert_eq!(locked_memory(None), None);
        assert_eq!(locked_memory(Some(64 << 10)).unwrap().says, "64 KiB may be locked");
    }
}
