//! The `lapscope` command: arguments in, exit code out.

use std::process::ExitCode;

use lapscope::args;
use lapscope::args::Command;
use lapscope::commands;
use lapscope_data::files::{keep_freed_memory, outlive_file_limit};
use lapscope_data::say;

fn main() -> ExitCode {
    outlive_file_limit();
    keep_freed_memory();
    let cli = args::parse();
    let result = match &cli.command {
        Command::Run(args) => commands::run::run(args),
        Command::Report(args) => commands::report::run(args),
        Command::Html(args) => commands::html::run(args),
        Command::Jobs(args) => commands::jobs::run(args),
        Command::Sites(args) => commands::sites::run(args),
        Command::Requests(args) => commands::requests::run(args),
        Command::Pending(args) => {
            renamed("pending", "hang --pending");
            commands::pending::run(&args.into())
        }
        #[cfg(feature = "live")]
        Command::Live(args) => commands::live::run(args),
        #[cfg(not(feature = "live"))]
        Command::Live(_) => Err(commands::left_out("live")),
        Command::Hang(args) => commands::hang::run(args),
        Command::Check(args) => commands::check::run(args),
        Command::Diff(args) => commands::diff::run(args),
        Command::Thresholds(args) => commands::thresholds::run(args),
        Command::Overlap(args) => commands::overlap::run(args),
        Command::Reach(args) => commands::reach::run(args),
        Command::Whatif(args) => commands::whatif::run(args),
        Command::Sql(args) => commands::sql::run(args),
        Command::Merge(args) => {
            renamed("merge", "export sqlite");
            commands::merge::run(args)
        }
        Command::Recover(args) => commands::recover::run(args),
        Command::Export(args) => commands::export::run(args),
        Command::Calibrate(args) => commands::calibrate::run(args),
        Command::Tune(args) => commands::tune::run(args),
        Command::Bench(args) => commands::bench::run(args),
        Command::Options(args) => commands::options::run(args),
        Command::Doctor(args) => commands::doctor::run(args),
        Command::AskMpi(args) => commands::doctor::ask_mpi(args),
        Command::Part(args) => commands::part::run(args),
        Command::Help(args) => commands::help::run(args),
        Command::Manual(args) => commands::manual::run(args),
    };
    match result {
        Ok(code) => code,
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            say!("{error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Says what a command is called now that works under its old name, too.
fn renamed(old: &str, new: &str) {
    say!("lapscope {old} is now: lapscope {new}");
}

/// Whether the reader of standard output went away (`lapscope report | head`): it has what it wanted.
fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let broken = Some(std::io::ErrorKind::BrokenPipe);
    error.chain().any(|cause| {
        cause.downcast_ref::<std::io::Error>().map(std::io::Error::kind) == broken
            || cause.downcast_ref::<serde_json::Error>().and_then(serde_json::Error::io_error_kind)
                == broken
    })
}
