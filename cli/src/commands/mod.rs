//! One file a subcommand. Each has `pub fn run(args: &…Args) -> anyhow::Result<std::process::ExitCode>`.
