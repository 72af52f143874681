//! Where programs with a known overlap run: over shared memory, and over a slow link of their own.

use std::ffi::OsString;
use std::path::Path;
use std::process::Stdio;
use std::sync::OnceLock;

use crate::child;
use crate::launch::{Form, Job};
use crate::mpi::Mpi;

/// Loopback held to 200 bytes a microsecond: transfers take time while the processors are free, which shared memory cannot
/// show, where every copy is a processor's work.
const SLOW_LINK: &str = "PATH=$PATH:/usr/sbin:/sbin; ip link set lo up && \
     tc qdisc add dev lo root tbf rate 1600mbit burst 256kb latency 20ms";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bed {
    SharedMemory,
    SlowLink,
}

/// How to get a network name space of one's own here: `unshare -n`, as another user `unshare -rn`.
fn unshare() -> Option<&'static [&'static str]> {
    static FOUND: OnceLock<Option<&'static [&'static str]>> = OnceLock::new();
    *FOUND.get_or_init(|| {
        let forms: [&[&str]; 2] = [&["unshare", "-n"], &["unshare", "-rn"]];
        let found = forms.into_iter().find(|form| {
            child::command(form[0])
                .args(&form[1..])
                .args(["sh", "-c", SLOW_LINK])
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .status()
                .is_ok_and(|status| status.success())
        });
        if found.is_none() {
            crate::say!(
                "NOT TESTED over a slow link: network namespaces or tc are not permitted here"
            );
        }
        found
    })
}

/// The front of a command line that runs over the slow link; `None`, said loudly, where that is not permitted.
pub fn slow_link() -> Option<Vec<OsString>> {
    let script = format!("{SLOW_LINK} && exec \"$@\"");
    let front = unshare()?.iter().copied();
    Some(front.chain(["sh", "-c", &script, "sh"]).map(OsString::from).collect())
}

/// What makes an MPI send between ranks of one machine through the network. Empty: not known.
fn through_the_network(mpi: &Mpi) -> &'static [(&'static str, &'static str)] {
    match mpi.name {
        "openmpi" | "openmpi5" => {
            &[("OMPI_MCA_btl", "tcp,self"), ("OMPI_MCA_btl_tcp_if_include", "lo")]
        }
        "intel" => {
            &[("I_MPI_FABRICS", "ofi"), ("I_MPI_OFI_PROVIDER", "tcp"), ("FI_TCP_IFACE", "lo")]
        }
        // Debian's MPICH 4.0.2 would, told MPIR_CVAR_NOLOCAL=1 UCX_TLS=tcp,self UCX_NET_DEVICES=lo, but of twenty runs some hang
        // in MPI_Finalize, without lapscope too
        _ => &[],
    }
}

impl Bed {
    pub const ALL: [Self; 2] = [Self::SharedMemory, Self::SlowLink];

    pub fn word(self) -> &'static str {
        match self {
            Self::SharedMemory => "shared memory",
            Self::SlowLink => "slow link",
        }
    }

    /// Whether programs can be run here; says loudly when not.
    pub fn is_there(self, mpi: &Mpi) -> bool {
        if self == Self::SlowLink && through_the_network(mpi).is_empty() {
            crate::say!("NOT TESTED over a slow link: {}", mpi.name);
            return false;
        }
        self == Self::SharedMemory || unshare().is_some()
    }

    /// A launch on this bed with lapscope preloaded.
    ///
    /// # Panics
    /// When the bed [is not there](Self::is_there).
    pub fn job<'a>(
        self,
        mpi: &'a Mpi,
        ranks: u32,
        program: impl Into<OsString>,
        place: &'a Path,
    ) -> Job<'a> {
        self.around(mpi, Job::new(mpi, ranks, program, Form::Preload, place))
    }

    /// A job whose ranks of `mpi` are to be on this bed.
    ///
    /// # Panics
    /// When the bed [is not there](Self::is_there).
    #[must_use]
    pub fn around<'a>(self, mpi: &Mpi, job: Job<'a>) -> Job<'a> {
        if self == Self::SharedMemory {
            return job;
        }
        let front = slow_link().expect("asked before");
        through_the_network(mpi)
            .iter()
            .fold(job.inside(front), |job, (name, value)| job.env(name, *value))
    }
}
