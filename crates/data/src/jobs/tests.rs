use lapscope_fixture::records::{self, Injector, NodeRecord};
use tempfile::TempDir;

use super::*;

fn database(place: &TempDir) -> JobsDatabase {
    JobsDatabase::create(&place.path().join("jobs.db")).expect("a database")
}

fn put(place: &TempDir, name: &str, record: &NodeRecord<'_>) {
    let file = place.path().join(name).with_extension("lapscope-job");
    std::fs::write(file, record.text()).expect("a record");
}

fn import(database: &mut JobsDatabase, place: &TempDir) -> (u64, u64, Vec<String>) {
    let done = database.import(&[place.path().to_owned()], None, &|_, _| ()).expect("imported");
    (done.records, done.unchanged, done.problems)
}

fn jobs(database: &JobsDatabase) -> Vec<ListedJob> {
    database.jobs(&JobFilter::default(), JobOrder::Began, 0).expect("jobs")
}

/// The halo exchange on a node.
fn halo(job: &'static str, host: &'static str, began_s: i64) -> NodeRecord<'static> {
    let mut made = records::halo();
    let began_unix_ns = 1_700_000_000_000_000_000 + began_s * 1_000_000_000;
    let written_unix_ns = began_unix_ns + 10_000_000_000;
    made.record = records::Record { job, host, began_unix_ns, written_unix_ns, ..made.record };
    made
}

#[test]
fn a_job_is_the_sum_of_its_nodes() {
    let place = tempfile::tempdir().expect("a place");
    let mut database = database(&place);
    put(&place, "a", &halo("one", "node1", 0));
    let mut second = halo("one", "node2", 1);
    second.ranks[0].ended = "killed";
    second.injectors.push(Injector { processes: 2, ..Injector::default() });
    put(&place, "b", &second);
    assert_eq!(import(&mut database, &place), (2, 0, vec![]));
    let [job] = &jobs(&database)[..] else { panic!("one job") };
    assert_eq!((job.nodes, job.ranks, job.unfinished_ranks, job.injected_ranks), (2, 4, 1, 2));
    assert_eq!((job.run_seconds, job.longest_seconds, job.completing_seconds), (40.0, 10.0, 10.0));
    assert_eq!((job.overlappable_seconds, job.mpi.as_str()), (5.0, "Open MPI v4.1.4"));
    assert!((job.most_computed_seconds.unwrap_or_default() - 7.99).abs() < 1e-9);
    assert_eq!(job.written_unix_ns - job.began_unix_ns, 11_000_000_000);
    let filter = JobFilter::default();
    let found = database.place(&filter, &job.executable, PlaceKind::Overlappable).expect("a place");
    let found = found.expect("a place");
    assert_eq!((found.call.as_str(), found.address, found.seconds), ("MPI_Irecv", 0x1200, 2.5));
    let [all] = &database.groups(&filter, GroupBy::All).expect("sums")[..] else { panic!("all") };
    assert_eq!((all.jobs, all.run, all.overlappable, all.injected_jobs), (1, 40.0, 0.0, 1));
    assert_eq!(all.waiting, 0.4);
}

/// The heaviest site may have lost its path: then nobody knows where ranks were most.
#[test]
fn no_place_has_most_where_more_may_be_elsewhere() {
    let place = tempfile::tempdir().expect("a place");
    let mut database = database(&place);
    let mut made = halo("one", "node1", 0);
    put(&place, "a", &made);
    import(&mut database, &place);
    let most = |database: &JobsDatabase| {
        let [job] = &jobs(database)[..] else { panic!("one job") };
        database.place(&JobFilter::default(), &job.executable, PlaceKind::Exposed).expect("asked")
    };
    assert_eq!(most(&database).expect("a place").call, "MPI_Waitall");
    made.sites[2].frame = None;
    made.record.written_unix_ns += 1;
    put(&place, "a", &made);
    import(&mut database, &place);
    assert_eq!(most(&database), None);
}

/// An identity that comes again later is another job, in whatever order records are found.
#[test]
fn nodes_that_did_not_run_at_once_are_of_different_jobs() {
    let place = tempfile::tempdir().expect("a place");
    let mut database = database(&place);
    for (name, host, began) in [("c", "node1", 100), ("d", "node2", 105), ("a", "node1", 0)] {
        put(&place, name, &halo("one", host, began));
        import(&mut database, &place);
    }
    let nodes: Vec<i64> = jobs(&database).iter().map(|job| job.nodes).collect();
    assert_eq!(nodes, [2, 1]);
    put(&place, "b", &halo("one", "node3", 9));
    import(&mut database, &place);
    let nodes: Vec<i64> = jobs(&database).iter().map(|job| job.nodes).collect();
    assert_eq!(nodes, [2, 2]);
    let since = 1_700_000_000_000_000_000 + 50_000_000_000;
    assert_eq!(database.forget(since).expect("forgotten"), 1);
    assert_eq!(jobs(&database).len(), 1);
    let left = |table: &str| -> i64 {
        let sql = format!("SELECT count(*) FROM {table}");
        database.connection.query_row(&sql, [], |row| row.get(0)).expect("a number")
    };
    assert_eq!((left("node"), left("site")), (2, 6));
}

/// A record that was replaced is read anew; an older copy of it changes nothing; one that has gone stays.
#[test]
fn records_are_read_again_when_they_were_replaced() {
    let place = tempfile::tempdir().expect("a place");
    let mut database = database(&place);
    let mut made = halo("one", "node1", 0);
    made.record.is_last = 0;
    put(&place, "a", &made);
    assert_eq!(import(&mut database, &place), (1, 0, vec![]));
    assert_eq!(import(&mut database, &place), (0, 1, vec![]));
    put(&place, "older", &made);
    made.record.is_last = 1;
    made.record.written_unix_ns += 60_000_000_000;
    made.sites.truncate(1);
    put(&place, "a", &made);
    assert_eq!(import(&mut database, &place), (2, 0, vec![]));
    let [job] = &jobs(&database)[..] else { panic!("one job") };
    assert_eq!((job.nodes, job.ranks, job.is_over), (1, 2, 1));
    std::fs::remove_file(place.path().join("a.lapscope-job")).expect("removed");
    import(&mut database, &place);
    assert_eq!(jobs(&database)[0].is_over, 1);
}

#[test]
fn sums_of_what_nobody_can_have_measured_do_not_end_in_an_error() {
    let place = tempfile::tempdir().expect("a place");
    let mut database = database(&place);
    let mut made = halo("one", "node1", 0);
    for rank in &mut made.ranks {
        (rank.sent_bytes, rank.completing_ns, rank.processes) =
            (i64::MAX >> 1, 1 << 60, i32::MAX.into());
    }
    let hosts = ["a", "b", "c", "d"];
    for host in hosts {
        made.record.host = host;
        put(&place, host, &made);
    }
    assert_eq!(import(&mut database, &place), (4, 0, vec![]));
    let [job] = &jobs(&database)[..] else { panic!("one job") };
    assert!(job.completing_seconds > 9e9 && job.most_computed_seconds.is_none());
    database.groups(&JobFilter::default(), GroupBy::User).expect("sums");
    made.record.job = "two";
    made.ranks[0].end_ns = 1 << 55;
    put(&place, "e", &made);
    let (_, _, problems) = import(&mut database, &place);
    assert!(problems[0].ends_with("ranks ran longer than the record was written"), "{problems:?}");
}
