//! A Slurm of a test's own on this machine: munged, slurmctld and a slurmd for each node, with their own key, socket, ports and
//! folders. Another Slurm or munged of the machine is not touched.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::net::TcpListener;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::launch::{place, Form, Job};
use crate::mpi::{find_program, Mpi};
use crate::namespace::Nodes;
use crate::{build, child};

pub const NODES: [&str; 2] = ["node1", "node2"];
/// Of a larger one.
pub const MANY_NODES: [&str; 4] = ["node1", "node2", "node3", "node4"];

/// How long the daemons may take until all nodes can be used. They need half a second.
const LONGEST_START: Duration = Duration::from_secs(40);

/// Waits until its standard input is closed, by the end of the test, however that ends; then kills every process that has this Slurm's
/// configuration in its environment, and removes its folder. Ranks and slurmstepd have it from those that started them.
const GUARD: &str = r#"
cat >/dev/null
quiet=0
while [ $quiet -lt 2 ]; do
    quiet=$((quiet + 1))
    for environment in /proc/[0-9]*/environ; do
        if grep -qzxF "SLURM_CONF=$1/slurm.conf" "$environment" 2>/dev/null; then
            process=${environment%/environ}
            kill -9 "${process#/proc/}" 2>/dev/null
            quiet=0
        fi
    done
    sleep 0.05
done
rm -rf "$1"
"#;

/// A Slurm that runs. When the last of the tests that use it lets it go, all of it is ended.
pub struct Cluster {
    folder: PathBuf,
    daemons: Vec<Child>,
    guard: Child,
    nodes: &'static [&'static str],
    has_nodes: bool,
    plugins: String,
}

/// A daemon, also where it is only in root's PATH.
fn daemon(name: &str) -> Option<PathBuf> {
    let elsewhere =
        ["/usr/sbin", "/usr/local/sbin", "/sbin"].iter().map(|it| Path::new(it).join(name));
    find_program(name).or_else(|| elsewhere.into_iter().find(|path| path.is_file()))
}

/// As many ports as nobody listens on.
fn free_ports(count: usize) -> io::Result<Vec<u16>> {
    let held: io::Result<Vec<TcpListener>> =
        (0..count).map(|_| TcpListener::bind(("0.0.0.0", 0))).collect();
    held?.iter().map(|listener| Ok(listener.local_addr()?.port())).collect()
}

fn output_of(command: &mut Command) -> String {
    let output = command.stdin(Stdio::null()).output();
    output.map_or_else(
        |error| error.to_string(),
        |output| {
            String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).trim().to_owned()
        },
    )
}

fn host_name() -> String {
    output_of(child::command("uname").arg("-n"))
}

/// What slurm.conf says: nothing of accounting, control groups, binding and time, which differ from machine to machine.
fn configuration(folder: &Path, nodes: &[&str], ports: &[u16]) -> String {
    let folder = folder.display();
    let host = host_name();
    let host = host.split('.').next().unwrap_or_default();
    let user = output_of(child::command("id").arg("-un"));
    let mut text = format!(
        "ClusterName=lapscope_test
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={}
FirstJobId={}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={folder}/munge/socket
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool/%n
TmpFS={folder}/tmp/%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd-%n.log
ProctrackType=proctrack/pgid
TaskPlugin=task/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerParameters=batch_sched_delay=0,sched_min_interval=0,sched_interval=1,bf_interval=1
SlurmdParameters=config_overrides
SlurmdTimeout=0
KillWait=2
ReturnToService=2
",
        ports[0],
        ports[0] // jobs of another Slurm of the tests have other numbers
    );
    for (name, port) in nodes.iter().zip(&ports[1..]) {
        text += &format!("NodeName={name} NodeAddr=127.0.0.1 Port={port} CPUs=16\n");
    }
    text + "PartitionName=all Nodes=ALL Default=YES State=UP MaxTime=5 OverSubscribe=FORCE:8\n"
}

impl Cluster {
    /// The one that tests of this program use while they run. `None`, said loudly, where there is no Slurm.
    ///
    /// # Panics
    /// When it is there and does not start.
    pub fn shared() -> Option<Arc<Cluster>> {
        static SHARED: Mutex<Weak<Cluster>> = Mutex::new(Weak::new());
        let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(cluster) = shared.upgrade() {
            return Some(cluster);
        }
        let cluster = Arc::new(Cluster::of_my_own(&NODES)?);
        *shared = Arc::downgrade(&cluster);
        Some(cluster)
    }

    /// One that no other test uses. `None` as in [`Cluster::shared`].
    ///
    /// # Panics
    /// When it is there and does not start.
    pub fn of_my_own(nodes: &'static [&'static str]) -> Option<Cluster> {
        let missing: Vec<&str> = [
            "munged",
            "slurmctld",
            "slurmd",
            "srun",
            "salloc",
            "sbatch",
            "scancel",
            "squeue",
            "sinfo",
        ]
        .into_iter()
        .filter(|name| daemon(name).is_none())
        .collect();
        if !missing.is_empty() {
            crate::say!("SKIPPED: Slurm: no {} here", missing.join(", "));
            return None;
        }
        Some(Cluster::start(nodes))
    }

    fn start(nodes: &'static [&'static str]) -> Cluster {
        // a port may be taken between the look and the daemon
        let mut said = String::new();
        for _ in 0..3 {
            let mut cluster = Cluster::make(nodes).unwrap_or_else(|error| panic!("Slurm: {error}"));
            match cluster.until_idle() {
                Ok(()) => return cluster,
                Err(text) => said = text,
            }
        }
        panic!("Slurm does not start: {said}");
    }

    fn make(nodes: &'static [&'static str]) -> io::Result<Cluster> {
        let folder = place().keep();
        let guard = child::command("sh")
            .args(["-c", GUARD, "sh"])
            .arg(&folder)
            .stdin(Stdio::piped())
            .process_group(0)
            .spawn()?;
        let mut cluster = Cluster {
            folder,
            daemons: Vec::new(),
            guard,
            nodes,
            has_nodes: false,
            plugins: String::new(),
        };
        cluster.start_munged()?;
        cluster.start_slurm()?;
        Ok(cluster)
    }

    fn start_munged(&mut self) -> io::Result<()> {
        let munge = self.folder.join("munge");
        fs::create_dir(&munge)?;
        // munged wants to be reachable by all, and its key by nobody else
        for folder in [&self.folder, &munge] {
            set_mode(folder, 0o755)?;
        }
        let key = munge.join("key");
        let random: Vec<u8> = fs::File::open("/dev/urandom").and_then(|mut file| {
            let mut bytes = vec![0; 128];
            io::Read::read_exact(&mut file, &mut bytes).map(|()| bytes)
        })?;
        fs::write(&key, random)?;
        set_mode(&key, 0o600)?;
        let option = |name: &str, file: &str| {
            let mut option = OsString::from(format!("--{name}="));
            option.push(munge.join(file));
            option
        };
        let options = [
            option("key-file", "key"),
            option("socket", "socket"),
            option("pid-file", "pid"),
            option("log-file", "log"),
            option("seed-file", "seed"),
        ];
        self.start_daemon(Vec::new(), "munged", options.into_iter().chain(["--foreground".into()]))
    }

    fn start_slurm(&mut self) -> io::Result<()> {
        for name in ["state", "spool", "tmp"] {
            fs::create_dir(self.folder.join(name))?;
        }
        for name in self.nodes {
            fs::create_dir(self.folder.join("spool").join(name))?;
            fs::create_dir(self.folder.join("tmp").join(name))?;
        }
        let ports = free_ports(1 + self.nodes.len())?;
        fs::write(self.conf(), configuration(&self.folder, self.nodes, &ports))?;
        self.start_daemon(Vec::new(), "slurmctld", ["-D".into()])?;
        let folder = self.folder.clone();
        // daemons of MPIs on the nodes ask for the host that their launcher is on
        let host = host_name();
        let names: Vec<&str> = self.nodes.iter().copied().chain([host.as_str()]).collect();
        let nodes = Nodes::new(&folder, &names);
        self.has_nodes = nodes.is_some();
        for name in self.nodes {
            let front = nodes.as_ref().map(|nodes| nodes.with_common_processes(name));
            self.start_daemon(
                front.unwrap_or_default(),
                "slurmd",
                ["-D", "-N", name].map(OsString::from),
            )?;
        }
        Ok(())
    }

    /// Its slurm.conf.
    pub fn conf(&self) -> PathBuf {
        self.folder.join("slurm.conf")
    }

    fn start_daemon(
        &mut self,
        mut front: Vec<OsString>,
        name: &str,
        arguments: impl IntoIterator<Item = OsString>,
    ) -> io::Result<()> {
        front.push(daemon(name).unwrap_or_else(|| name.into()).into_os_string());
        let number = self.daemons.len();
        let log = fs::File::create(self.folder.join(format!("{name}-{number}.out")))?;
        let mut command = self.command(&front[0]);
        command.args(&front[1..]).args(arguments).stdin(Stdio::null());
        // not in our group: what ends a test by a signal to its group would leave the rest of the cluster to hang
        command.stdout(log.try_clone()?).stderr(log).process_group(0);
        self.daemons.push(command.spawn()?);
        Ok(())
    }

    /// One of Slurm's programs.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = child::command(program);
        command.env("SLURM_CONF", self.conf());
        command
    }

    fn until_idle(&mut self) -> Result<(), String> {
        let begin = Instant::now();
        loop {
            let states = output_of(self.command("sinfo").args(["-h", "-N", "-o", "%N %T"]));
            if states.lines().filter(|line| line.ends_with(" idle")).count() == self.nodes.len() {
                self.plugins = output_of(self.command("srun").arg("--mpi=list"));
                return Ok(());
            }
            let has_ended = |child: &mut Child| child.try_wait().ok().flatten().is_some();
            if begin.elapsed() > LONGEST_START || self.daemons.iter_mut().any(has_ended) {
                return Err(format!("{states}\n{}", self.logs()));
            }
            thread::sleep(Duration::from_millis(50));
        }
    }

    fn logs(&self) -> String {
        let entries = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        let logs = entries.map(|entry| entry.path()).filter(|path| {
            path.extension().is_some_and(|extension| extension == "log" || extension == "out")
        });
        let tail = |path: PathBuf| {
            let text = fs::read_to_string(&path).unwrap_or_default();
            let lines: Vec<&str> = text.lines().collect();
            format!("{}:\n{}\n", path.display(), lines[lines.len().saturating_sub(12)..].join("\n"))
        };
        logs.map(tail).collect()
    }

    /// Its node of this number answers no more.
    ///
    /// # Panics
    /// When there is no such node.
    pub fn freeze(&self, node: usize) {
        const BEFORE: usize = 2; // munged and slurmctld
        let pid = libc::pid_t::try_from(self.daemons[BEFORE + node].id()).expect("a process id");
        // SAFETY: a child that has not been waited for
        unsafe { libc::kill(pid, libc::SIGSTOP) };
    }

    /// Whether its nodes have names, boots and shared memory of their own; said loudly where not.
    pub fn has_nodes(&self, what: &str) -> bool {
        if !self.has_nodes {
            crate::say!("SKIPPED: Slurm: {what}: name spaces are not permitted here");
        }
        self.has_nodes
    }

    /// How srun starts programs of an MPI, `--mpi=...`. `None`, said loudly, where this Slurm cannot.
    pub fn plugin(&self, mpi: &Mpi) -> Option<&'static str> {
        self.plugin_of(mpi.abi)
    }

    /// As [`Cluster::plugin`], for MPIs of this ABI.
    pub fn plugin_of(&self, abi: &str) -> Option<&'static str> {
        let (name, option) =
            if abi == "openmpi" { ("pmix", "--mpi=pmix") } else { ("pmi2", "--mpi=pmi2") };
        let is_there =
            self.plugins.split(|c: char| !c.is_alphanumeric()).any(|plugin| plugin == name);
        if !is_there {
            crate::say!("SKIPPED: Slurm: srun {option}: this Slurm has no such plugin");
        }
        is_there.then_some(option)
    }

    /// A line to run in `place`, as `lapscope run -- LINE` where the form is the outer one. `mpi`: whose settings it gets.
    pub fn job<'a, S: AsRef<OsStr>>(
        &self,
        mpi: &'static Mpi,
        form: Form,
        place: &'a Path,
        line: impl IntoIterator<Item = S>,
    ) -> Job<'a> {
        let mut line = line.into_iter();
        let program = line.next().expect("a program").as_ref().to_owned();
        let job =
            Job::alone(program, form, place).under(mpi).args(line).env("SLURM_CONF", self.conf());
        let settings = mpi.environment.iter().chain(&[("OMPI_MCA_btl_tcp_if_include", "lo")]);
        settings.fold(job, |job, (name, value)| job.env(name, *value))
    }

    /// Ids of the jobs of this name that run, once there is one.
    ///
    /// # Panics
    /// When none has begun after half a minute.
    pub fn id_of(&self, name: &str) -> String {
        let begin = Instant::now();
        loop {
            let id =
                output_of(self.command("squeue").args(["-h", "-t", "R", "-o", "%A", "-n", name]));
            if !id.is_empty() {
                return id;
            }
            assert!(begin.elapsed() < Duration::from_secs(30), "no job {name}\n{}", self.logs());
            thread::sleep(Duration::from_millis(50));
        }
    }
}

fn set_mode(path: &Path, mode: u32) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(path, fs::Permissions::from_mode(mode))
}

impl Drop for Cluster {
    fn drop(&mut self) {
        drop(self.guard.stdin.take());
        for daemon in &mut self.daemons {
            let _ = daemon.wait();
        }
        let _ = self.guard.wait();
    }
}

/// One test's use of a cluster: an MPI that srun can start, a program of it, and where it runs.
pub struct Bed<'a> {
    pub cluster: &'a Cluster,
    pub mpi: &'static Mpi,
    /// `--mpi=...`
    pub plugin: &'static str,
    pub place: TempDir,
}

impl<'a> Bed<'a> {
    pub fn new(cluster: &'a Cluster, mpi: &'static Mpi) -> Option<Bed<'a>> {
        Some(Bed { cluster, mpi, plugin: cluster.plugin(mpi)?, place: place() })
    }

    /// `srun OPTIONS -- program arguments`.
    pub fn srun(&self, options: &[&str], program: &str, arguments: &[&str]) -> Vec<OsString> {
        let mut line: Vec<OsString> = vec!["srun".into(), "--quiet".into(), self.plugin.into()];
        line.extend(options.iter().map(OsString::from));
        line.push(build::app(self.mpi, program).into_os_string());
        line.extend(arguments.iter().map(OsString::from));
        line
    }

    pub fn job(&self, form: Form, line: &[OsString]) -> Job<'_> {
        self.cluster.job(self.mpi, form, self.place.path(), line)
    }

    pub fn run_directory(&self) -> PathBuf {
        self.place.path().join("run")
    }
}
