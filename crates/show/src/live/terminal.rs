//! The terminal, taken and given back as it was: when its owner goes out of scope, on a panic, and before a signal ends the
//! process. Only SIGKILL leaves it as it is; `reset` helps then.

use std::io::{self, BufWriter, IsTerminal, Stdout};
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::Once;
use std::thread;
use std::time::Duration;

use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::cursor::Show;
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{
    disable_raw_mode, enable_raw_mode, EnterAlternateScreen, LeaveAlternateScreen,
};
use ratatui::Terminal;

/// By which somebody wants us to end.
const ENDING: [libc::c_int; 4] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT];

static IS_TAKEN: AtomicBool = AtomicBool::new(false);
static SIGNAL: AtomicI32 = AtomicI32::new(0);

/// A terminal that is ours while this lives.
pub struct Taken {
    pub screen: Terminal<CrosstermBackend<BufWriter<Stdout>>>,
}

impl Taken {
    /// # Errors
    /// It cannot be drawn on.
    #[allow(clippy::disallowed_methods)] // what commands the terminal cannot go through output::print
    pub fn take() -> io::Result<Taken> {
        restore_on_panic();
        catch_signals();
        thread::spawn(end_in_any_case);
        let screen = Terminal::new(CrosstermBackend::new(BufWriter::new(io::stdout())))?;
        let mut taken = Taken { screen };
        taken.enter()?;
        Ok(taken)
    }

    fn enter(&mut self) -> io::Result<()> {
        IS_TAKEN.store(true, Ordering::SeqCst);
        enable_raw_mode()?;
        execute!(self.screen.backend_mut(), EnterAlternateScreen)?;
        self.screen.hide_cursor()?;
        self.screen.clear()
    }

    /// Stops the process as Ctrl-Z does elsewhere; returns when it goes on.
    ///
    /// # Errors
    /// The terminal cannot be drawn on any more.
    pub fn stop(&mut self) -> io::Result<()> {
        restore();
        // SAFETY: stops the processes of the foreground job, as the terminal itself would.
        unsafe { libc::kill(0, libc::SIGTSTP) };
        self.enter()
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        restore();
    }
}

/// Once, whoever comes first. Nobody is told when it fails: there is nothing more to be done.
#[allow(clippy::disallowed_methods)] // as above
fn restore() {
    if IS_TAKEN.swap(false, Ordering::SeqCst) {
        let _ = execute!(io::stdout(), LeaveAlternateScreen, Show);
        let _ = disable_raw_mode();
    }
}

fn restore_on_panic() {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            restore();
            before(info);
        }));
    });
}

extern "C" fn note(signal: libc::c_int) {
    SIGNAL.store(signal, Ordering::SeqCst);
}

fn catch_signals() {
    for signal in ENDING {
        // SAFETY: the handler only stores a number. Ignored signals (nohup) stay ignored.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            let is_ignored = libc::sigaction(signal, std::ptr::null(), &mut action) == 0
                && action.sa_sigaction == libc::SIG_IGN;
            if !is_ignored {
                action = std::mem::zeroed();
                action.sa_sigaction = note as *const () as libc::sighandler_t;
                libc::sigaction(signal, &action, std::ptr::null_mut());
            }
        }
    }
}

/// Ends this process where nothing else can: crossterm reads for ever from a terminal that is gone, and nobody writes to one that is
/// stopped. Whoever waits for either sees no signal.
fn end_in_any_case() {
    const PATIENCE: Duration = Duration::from_millis(500);
    loop {
        thread::sleep(PATIENCE / 2);
        let signal = signal().or_else(|| is_hung_up().then_some(libc::SIGHUP));
        if let Some(signal) = signal {
            thread::sleep(PATIENCE);
            thread::spawn(restore); // which may wait for the terminal, too
            thread::sleep(PATIENCE);
            die_of(signal);
        }
    }
}

/// Whether nobody is at the other end of the terminal any more.
fn is_hung_up() -> bool {
    let mut poll = libc::pollfd { fd: libc::STDOUT_FILENO, events: 0, revents: 0 };
    // SAFETY: one pollfd.
    unsafe {
        libc::poll(&mut poll, 1, 0) == 1 && poll.revents & (libc::POLLHUP | libc::POLLERR) != 0
    }
}

/// That somebody has sent, if any.
pub fn signal() -> Option<libc::c_int> {
    Some(SIGNAL.load(Ordering::SeqCst)).filter(|&signal| signal != 0)
}

/// Dies of a signal as if it had not been caught; the terminal has been given back.
pub fn die_of(signal: libc::c_int) {
    // SAFETY: the default action of this signal ends the process.
    unsafe {
        libc::signal(signal, libc::SIG_DFL);
        libc::raise(signal);
    }
}

/// Lines of the terminal that standard output is.
#[allow(clippy::disallowed_methods)] // only asked what it is
pub fn lines_of_stdout() -> Option<u16> {
    let size = || ratatui::crossterm::terminal::size().ok();
    let (_, lines) = io::stdout().is_terminal().then(size).flatten()?;
    Some(lines).filter(|&lines| lines > 0)
}
