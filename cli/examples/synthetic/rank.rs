//! The rows of one rank.

use lapscope_fixture::tables::{
    Call, CallPath, Communicator, Frame, Mark, Module, Operation, Rank, Request, Thread,
};
use lapscope_fixture::Fixture;

use super::shape::{Marks, Shape, Step};

const MODULE: &str = "/nowhere/synthetic";
/// Call paths of a rank.
const PATHS: i64 = 10;
/// Operations of requests are of the first call paths.
const PATHS_OF_REQUESTS: i64 = 8;
const PATH_OF_WAITS: i64 = 9;
const PATH_OF_COLLECTIVES: i64 = 10;
/// Of a node's clock, from one node to the next.
const EPOCHS_APART_NS: i64 = 1_000_000_000_000;
const EPOCH_UNIX_NS: i64 = 1_700_000_000_000_000_000;

/// A rank, and the file that it is put into.
struct Writer<'a> {
    file: &'a Fixture,
    shape: &'a Shape,
    rank: i64,
    /// Ranks that are in the file already; each has the same number of definitions.
    place: i64,
    calls: i64,
    mpi_ns: i64,
}

/// Puts a rank into a file that holds `place` others already.
pub fn write(file: &Fixture, rank: i64, place: i64, shape: &Shape) {
    let mut writer = Writer { file, shape, rank, place, calls: 0, mpi_ns: 0 };
    writer.define();
    let operations = writer.operations();
    writer.rows(&operations);
    writer.plain_messages();
    let Writer { calls, mpi_ns, .. } = writer;
    file.insert(Thread { id: Some(writer.thread()), calls, mpi_ns, ..Thread::default() });
}

impl Writer<'_> {
    fn thread(&self) -> i64 {
        self.place + 1
    }

    fn path(&self, number: i64) -> i64 {
        self.place * PATHS + number
    }

    fn define(&self) {
        let (rank, shape) = (self.rank, self.shape);
        let host = shape.host(rank);
        self.file.insert(Rank {
            world_size: shape.ranks,
            host: &host,
            pid: 1_000 + rank,
            command: "synthetic",
            executable: MODULE,
            mpi_library: "Synthetic MPI",
            clock: "monotonic",
            epoch_ns: rank / shape.ranks_per_node * EPOCHS_APART_NS,
            epoch_unix_ns: EPOCH_UNIX_NS,
            end_ns: shape.begin_ns(shape.steps()) + 100_000_000,
            ..Rank::plain(rank)
        });
        let (size, comm_rank, id) = (shape.ranks, rank, Some(self.place + 1));
        self.file.insert(Communicator { id, size, comm_rank, ..Communicator::default() });
        self.file.insert(Module { id, path: MODULE, ..Module::default() });
        for number in 1..=PATHS {
            let (call_path_id, address) = (self.path(number), number * 64);
            self.file.insert(CallPath { id: Some(call_path_id), ..CallPath::default() });
            self.file.insert(Frame { call_path_id, module_id: id, address, ..Frame::default() });
        }
    }

    /// Of this rank's MPI_COMM_WORLD.
    fn add(&self, operation: Operation<'_>) -> i64 {
        let communicator_id = operation.communicator_id.map(|_| self.place + 1);
        self.file.insert(Operation { communicator_id, ..operation })
    }

    /// Of requests. Returns their ids.
    fn operations(&self) -> Vec<i64> {
        let add = |number: i64| {
            // the two ends of a message have the same number, and so the same tag, size and direction
            let (tag, path) = (number / 2, self.path(1 + number % PATHS_OF_REQUESTS));
            let bytes = 1i64 << (tag % 20);
            let direction = self.shape.directions[tag as usize % self.shape.directions.len()];
            let operation = match number % 2 {
                0 => Operation::send("MPI_Isend", path, (bytes, direction.to(self.rank), tag)),
                _ => Operation::receive("MPI_Irecv", path, (bytes, direction.from(self.rank), tag)),
            };
            self.add(operation.waited())
        };
        (0..self.shape.operations).map(add).collect()
    }

    fn call(&mut self, operation_id: i64, (begin_ns, end_ns): (i64, i64), completed: i64) -> i64 {
        let duration_ns = end_ns - begin_ns;
        self.calls += 1;
        self.mpi_ns += duration_ns;
        self.file.insert(Call {
            operation_id,
            thread_id: self.thread(),
            begin_ns,
            duration_ns: Some(duration_ns),
            completed,
            ..Call::default()
        })
    }

    fn rows(&mut self, operations: &[i64]) {
        let shape = self.shape;
        let waitall = self.add(Operation::other_call("MPI_Waitall", self.path(PATH_OF_WAITS)));
        let path = self.path(PATH_OF_COLLECTIVES);
        let collective = shape.steps_a_collective.map(|_| {
            let whole = Operation::collective("MPI_Allreduce", path);
            self.add(Operation { bytes: 8, posted_bytes: 8, ..whole })
        });
        for number in 0..shape.steps() {
            let step = shape.step(self.rank, number);
            self.mark(&step);
            let first = number * shape.together;
            let together = shape.together.min(shape.requests - first);
            let wait = (step.wait_begin_ns, step.wait_end_ns);
            let call = self.call(waitall, wait, together);
            self.requests(first..first + together, call, step.begin_ns, operations);
            if let (Some(operation), Some(end_ns)) = (collective, step.collective_end_ns) {
                self.call(operation, (step.wait_end_ns + 100, end_ns), 0);
            }
        }
    }

    fn mark(&self, step: &Step) {
        let end_ns = step.collective_end_ns.unwrap_or(step.wait_end_ns);
        let of_step: &[(i64, i64, Option<&str>)] = match self.shape.marks {
            None => &[],
            Some(Marks::Steps) => &[(step.begin_ns, 2, None)],
            Some(Marks::Regions) => &[
                (step.begin_ns, 1, Some("step")),
                (step.wait_begin_ns, 1, Some("wait")),
                (step.wait_end_ns, -1, Some("wait")),
                (end_ns, -1, Some("step")),
            ],
        };
        for &(begin_ns, level, name) in of_step {
            self.file.insert(Mark { thread_id: self.thread(), begin_ns, level, name });
        }
    }

    /// Those that a call completes.
    fn requests(
        &mut self,
        numbers: std::ops::Range<i64>,
        call: i64,
        begin_ns: i64,
        operations: &[i64],
    ) {
        let post_ns = |number: i64| 100 + number % 50;
        let mut later_ns: i64 = numbers.clone().map(post_ns).sum();
        self.calls += numbers.end - numbers.start;
        self.mpi_ns += later_ns;
        for number in numbers.clone() {
            later_ns -= post_ns(number);
            self.file.insert(Request {
                operation_id: operations[(number % self.shape.operations) as usize],
                completion_id: Some(call),
                thread_id: self.thread(),
                post_begin_ns: begin_ns + (number - numbers.start) * 200,
                post_ns: post_ns(number),
                mpi_ns: Some(later_ns),
                ..Request::default()
            });
        }
    }

    /// Messages with nothing in between, from every other rank to the next, behind the others: for reference times.
    fn plain_messages(&mut self) {
        const MESSAGES: i64 = 400;
        const SIZES: i64 = 20;
        let is_sender = self.rank % 2 == 0;
        let (tag, ranks, path) =
            (self.shape.operations, self.shape.ranks, self.path(PATH_OF_WAITS));
        let add = |size: i64| {
            let bytes = 1i64 << size;
            self.add(match is_sender {
                true => Operation::send("MPI_Send", path, (bytes, (self.rank + 1) % ranks, tag)),
                false => Operation::receive("MPI_Recv", path, (bytes, self.rank - 1, tag)),
            })
        };
        let operations: Vec<i64> = (0..SIZES).map(add).collect();
        let behind_ns = self.shape.begin_ns(self.shape.steps());
        for number in 0..MESSAGES {
            let (size, begin_ns) = (number % SIZES, behind_ns + 10_000 + 200_000 * number);
            let early_ns = if is_sender { 0 } else { 2_000 };
            let end_ns = begin_ns + 1_000 + (1i64 << size) / 10;
            self.call(operations[size as usize], (begin_ns - early_ns, end_ns), 0);
        }
    }
}
