/*
 * The spool: what a rank writes while it runs, and what is left when it is killed.
 *
 * One file a rank, mapped shared, native byte order, never sent to another kind of machine. It is a file header and
 * then chunks, one behind the other; each chunk says its own size. A chunk belongs to one thread, so writers never meet.
 * The writer is killed at any instant: everything before spool_chunk.used is whole, everything behind it is nothing.
 *
 * Times in a spool are ticks of the clock that the header names; struct spool_clock_pair turns them into nanoseconds.
 *
 * interposer/recorder/spool/writer.c makes the file, the room record/ writes into it; spool/reader.c reads it, the room store/
 * turns it into SQLite (tables.def).
 */
#ifndef LAPSCOPE_SPOOL_H
#define LAPSCOPE_SPOOL_H

#include <stdint.h>

#define SPOOL_MAGIC "LAPSPOOL"
#define SPOOL_VERSION 11u
#define SPOOL_HEADER_BYTES 4096u
#define SPOOL_CHUNK_ALIGN 65536u   /* chunk sizes are multiples of this; the first chunk follows the header */

enum spool_end { SPOOL_OPEN = 0, SPOOL_FINALIZED = 1, SPOOL_ABORTED = 2, SPOOL_EXITED = 3 };
enum spool_full { SPOOL_FULL_MAX_MB = 1, SPOOL_FULL_DISK = 2, SPOOL_FULL_FILE_SIZE = 3, SPOOL_FULL_ASKED = 4 };
enum spool_clock { SPOOL_CLOCK_MONOTONIC = 0, SPOOL_CLOCK_TSC = 1 };

/* The same instant on both clocks. */
struct spool_clock_pair {
    uint64_t ticks;
    int64_t monotonic_ns;
};

struct spool_file_header {
    char magic[8];
    uint32_t version;
    uint32_t header_bytes;            /* SPOOL_HEADER_BYTES */
    uint32_t clock;                   /* enum spool_clock */
    uint32_t end;                     /* enum spool_end; SPOOL_OPEN means killed, or still running */
    int32_t rank, world_size;
    int32_t thread_level;             /* 0 single .. 3 multiple, as granted */
    uint32_t life;                    /* see rank.life in tables.def */
    int64_t pid;
    uint64_t pid_start;               /* field 22 of /proc/PID/stat: tells a living owner from a recycled pid */
    char host[256];
    char boot_id[40];                 /* /proc/sys/kernel/random/boot_id */
    struct spool_clock_pair first;    /* when recording began: the rank's epoch */
    int64_t epoch_unix_ns;            /* CLOCK_REALTIME at `first` */
    /* The latest pair, written alternately so that one of them is whole: valid is latest[latest_index & 1].
     * latest_index 0: none yet, use the kernel's nominal rate below. */
    struct spool_clock_pair latest[2];
    uint32_t latest_index;
    uint32_t world;                   /* see rank.world in tables.def */
    double nominal_ticks_per_ns;      /* from a short measurement at start */
    uint64_t init_end;                /* ticks */
    uint64_t finalize_begin;          /* ticks; 0: not reached */
    uint64_t lost_records;
    uint64_t unknown_requests;
    uint32_t summarized;              /* enum spool_full: why only sums are kept of a part of the run; 0: all is in detail */
    uint32_t chunks;                  /* chunks in place; only a hint, the chunks' own headers decide */
    /* Whose it is: zero in spools that were written before these were. */
    char job[256];                    /* what the run directory was claimed with: recorder/base/job.h */
    char launch[64];                  /* the `lapscope run` that it belongs to; empty: none */
    uint64_t pid_namespace;           /* in which pid is meant: inode of /proc/self/ns/pid */
    uint64_t lost_marks;              /* beyond their bounds; they are no lost_records, as no sum lacks them */
    uint64_t cut_paths;               /* calls whose path is its innermost frame alone, as there were too many */
};

enum spool_chunk_kind {
    SPOOL_CHUNK_STREAM = 1, SPOOL_CHUNK_LIVE = 2, SPOOL_CHUNK_TALLY = 3, SPOOL_CHUNK_CELLS = 4, SPOOL_CHUNK_DEVICE = 5,
    SPOOL_CHUNK_FRAMES = 6
};

#define SPOOL_MOST_ENTRIES_BYTES (1u << 20) /* a chunk that is no stream is not longer: all of it is read */

#define SPOOL_CHUNK_MAGIC 0x4b4e4843u /* "CHNK" */

struct spool_chunk {                  /* 64 bytes, at the start of each chunk */
    uint32_t magic;                   /* written last when the chunk is made */
    uint16_t kind;
    uint16_t thread;                  /* thread.number */
    uint64_t bytes;                   /* of the chunk, this header included */
    uint64_t used;                    /* STREAM: bytes of whole records behind this header */
    uint64_t base;                    /* STREAM: ticks from which the first CALL's begin is counted; CELLS: see there */
    uint64_t has_state;               /* LIVE: 1 in a thread's first, which starts with struct spool_thread_state; DEVICE: 1 in the
                                       * first, which starts with struct spool_device_state */
    uint64_t reserved[3];
};

/* --- STREAM: records one behind the other, unaligned --------------------------------------------------------------
 *
 * A record is one byte of type and then
 *   - for definitions, a packed struct and its payload;
 *   - for the records from CALL on, two bytes of lengths (3 bits a field, field 0 in the lowest bits; a field takes 0 to 7
 *     bytes, little-endian; length 0 means value 0) and the fields. Values are below 2^56.
 *
 * Definitions stand before their first use in the *writing* order of the process, but may lie in the stream of another
 * thread: a reader collects the definitions of all streams first. Ids are per process and start at 1; 0 means none.
 */
enum spool_record {
    SPOOL_END = 0,       /* padding: nothing more in this chunk */
    SPOOL_META = 1,      /* struct spool_meta, key, value */
    SPOOL_MODULE = 2,    /* struct spool_module, path, build id (raw bytes) */
    SPOOL_PATH = 3,      /* struct spool_path, then frames uint64_t run-time return addresses, innermost first */
    SPOOL_COMM = 4,      /* struct spool_comm, name, then members int32_t world ranks: local group, then remote group */
    SPOOL_OPERATION = 5, /* struct spool_operation: what is known at the post, or of a blocking call */
    SPOOL_OUTCOME = 6,   /* struct spool_outcome: what is known when a request ends */
    SPOOL_THREAD = 7,    /* struct spool_thread */
    SPOOL_WATCH = 8,     /* struct spool_watch: a row of the table watch, of the thread whose stream it is in; no definition */
    SPOOL_MARK_NAME = 9, /* struct spool_mark_name, name */
    SPOOL_CALL = 16,     /* fields: operation id, begin minus previous CALL's begin (first of a chunk: minus base), duration,
                            receive operation id (0: none) */
    SPOOL_EXTRA = 17,    /* belongs to the REQUEST behind it; absent when all zero and same thread. Fields: unsuccessful tests,
                            first unsuccessful test minus post begin, last one minus post begin, last seen incomplete minus post begin,
                            first seen complete minus post begin (times plus 1; 0: never) */
    SPOOL_REQUEST = 18,  /* ended by the CALL in front of it in this stream. Fields: outcome id, call begin minus post
                            begin, post duration, ticks inside MPI between, outstanding bytes */
    SPOOL_FOREIGN = 19,  /* belongs to the REQUEST behind it (and stands before an EXTRA). Fields: the thread that posted it
                            (of another one the ticks inside MPI are not known), injection arm plus 1, enum spool_data_memory */
    SPOOL_CPU = 20,      /* belongs to the CALL behind it. Fields: CPU time in ns, user and system */
    SPOOL_COUNTERS = 21, /* belongs to the CALL or REQUEST behind it: see call_counter and request_counter in tables.def.
                            Fields: place of the first among the counters that are counted, and the values of up to
                            SPOOL_COUNTERS_A_RECORD of them from there on, zigzag (spool/codec.h) */
    SPOOL_STARVED = 22,  /* a row of the table starvation, of the thread that called MPI_Init. Fields: its end minus the
                            header's first.ticks, its length in ticks, nanoseconds without a processor */
    SPOOL_LEFT_OUT = 23, /* a row of the table left_out. Fields: operation id, how often, the first post (or begin of a
                            blocking call) minus the header's first.ticks, the last one minus the first */
    SPOOL_TOGETHER = 24, /* belongs to the CALL in front of it. Fields: requests that it ended, with those left out */
    SPOOL_DETAIL = 25,   /* a row of the table detail. Fields: slot, stage, begin minus the header's first.ticks, end minus
                            begin, 1 when it was cut short */
    SPOOL_MARK = 26      /* a row of the table mark, of the thread whose stream it is in. Fields: its moment minus the header's
                            first.ticks, level zigzag, id of the name (0: none) */
};
#define SPOOL_LAST_HOT SPOOL_MARK
#define SPOOL_STAGES 10

#define SPOOL_HOT_FIELDS 5
#define SPOOL_COUNTERS_A_RECORD 4
#define SPOOL_MAX_COUNTERS 16

struct spool_meta {
    uint16_t key_bytes;
    uint32_t value_bytes;
} __attribute__((packed));

/* META keys: executable, command, mpi_abi, mpi_library, mpi_standard, lapscope_version, job; and with a prefix
 * "option.NAME" (value: "value\tsource"), "environment.NAME", "cvar.NAME", "counter.NUMBER" (value:
 * "name\tunit\tproblem\tdescription"; an empty problem says that it is counted), "injector" (value:
 * "mode\tproblem\tclock\tab_slot_ns\ttest_ns\tinterrupt_ns\tcheck_ns\tspent_ns", empty where not known; the last one
 * written counts), "auto" (value: injector.automatic, likewise; behind "injector"), "copied_sends" (likewise the columns of that table
 * but the first), "watcher" (value: "problem" and the further columns of that table but the first, likewise),
 * "sampler" (value: "problem" and the further columns of that table but the first, likewise),
 * "counted.NUMBER" (value: counter_sum.outside, written at the end), "left_out.REASON" (value: a row of watch_left_out; the last one written counts), "processor" (value: the columns of the table of that name but the first). */

struct spool_module {
    uint32_t id;
    uint64_t base, size;     /* base: load bias; addresses begin .. begin+size lie in it */
    uint64_t begin;          /* lowest mapped run-time address */
    uint16_t path_bytes;
    uint16_t build_id_bytes;
} __attribute__((packed));

struct spool_path {
    uint32_t id;
    uint16_t frames;
    uint8_t truncated;
} __attribute__((packed));

struct spool_comm {
    uint32_t id;
    uint64_t identity;
    uint32_t ordinal;
    uint8_t inter;
    int32_t size, remote_size, comm_rank;
    uint16_t name_bytes;
    uint32_t members;        /* entries behind the name: 0 (world rank = comm rank) or size + remote_size; -1 unknown */
} __attribute__((packed));

enum spool_kind {
    SPOOL_OTHER = 0, SPOOL_SEND = 1, SPOOL_RECV = 2, SPOOL_COLLECTIVE = 3, SPOOL_RMA = 4, SPOOL_IO = 5, SPOOL_GENERALIZED = 6
};
enum { SPOOL_ANY_SOURCE = -1, SPOOL_PROC_NULL = -2, SPOOL_NO_PEER = -3, SPOOL_ROOT = -4 /* this rank itself, as MPI_ROOT */,
       SPOOL_ANY_TAG = -1, SPOOL_NO_TAG = -3 };

struct spool_operation {
    uint32_t id;
    uint16_t call;           /* number in calls.def */
    uint8_t kind;            /* enum spool_kind */
    uint32_t path, comm;     /* 0: none */
    int32_t peer, tag;       /* comm rank (inter: rank in the remote group), or the constants above */
    uint64_t bytes;
    int32_t source, actual_tag; /* blocking receives and probes: from the status; else the same as peer and tag */
    uint64_t actual_bytes;
    uint32_t init_operation; /* of MPI_Start: the operation of the call that made the request; 0: none */
    uint32_t receive_operation; /* of requests that also receive: that half as posted; 0: none */
} __attribute__((packed));

enum spool_ended {
    SPOOL_WAITED = 1, SPOOL_TESTED = 2, SPOOL_FREED = 3, SPOOL_CANCELLED = 4, SPOOL_FAILED = 5
};

struct spool_outcome {
    uint32_t id, operation;
    int32_t source, tag;     /* receives: from the status; else the operation's */
    uint64_t bytes;          /* receives: bytes that came */
    uint8_t ended;           /* enum spool_ended */
    uint32_t receive_operation; /* of requests that also receive: that half as it came; 0: none */
} __attribute__((packed));

struct spool_thread {
    uint16_t number;
    int64_t tid;
} __attribute__((packed));

struct spool_mark_name {
    uint32_t id;
    uint8_t name_bytes;      /* 1 to SPOOL_MARK_NAME_BYTES */
} __attribute__((packed));

#define SPOOL_MARK_NAME_BYTES 63

enum spool_watch_side { SPOOL_WATCH_SEND = 0, SPOOL_WATCH_RECEIVE = 1 };
enum spool_watch_result { SPOOL_WATCH_TOUCHED = 0, SPOOL_WATCH_UNTOUCHED = 1, SPOOL_WATCH_OFTEN = 2 };
enum spool_toucher { SPOOL_TOUCHED_BY_NONE = 0, SPOOL_TOUCHED_BY_PROGRAM = 1, SPOOL_TOUCHED_BY_MPI = 2 };
enum spool_let_go { SPOOL_LET_GO_NOT = 0, SPOOL_LET_GO_REUSED = 1, SPOOL_LET_GO_ENDED = 2, SPOOL_LET_GO_LATE = 3, SPOOL_LET_GO_STACK = 4 };
enum spool_watch_flags { SPOOL_WATCH_ON_STACK = 1, SPOOL_WATCH_SPARSE = 2 };

struct spool_watch {
    uint32_t operation;      /* as posted */
    uint8_t side, result, toucher, let_go; /* the enumerations above */
    uint8_t flags;           /* enum spool_watch_flags */
    uint64_t begin, edge_begin; /* ticks */
    uint64_t bytes, offset;
    uint64_t away_ticks, away_mpi_ticks;
    uint32_t hits;
    uint32_t path, copy_path; /* 0: none */
} __attribute__((packed));

/* --- LIVE: requests that have not ended -----------------------------------------------------------------------------
 * A thread's first LIVE chunk: chunk header, struct spool_thread_state, entries to the end of the chunk.
 * Later ones: chunk header, entries. An entry is in use when operation is not 0 (written last, cleared first). */
struct spool_live {                    /* 128 bytes; the second half is written only where flags or tests say so */
    uint32_t operation;
    uint16_t thread;                   /* that posted it */
    uint8_t flags;                     /* enum spool_live_flags */
    uint8_t injection_arm;             /* plus 1; 0: none. And further bits of enum spool_live_arm */
    uint64_t post_begin;
    uint64_t post_ticks;
    uint64_t mpi_ticks_at_post;        /* the thread's spool_thread_state.mpi_ticks when the post ended */
    uint64_t outstanding_bytes;
    uint32_t unsuccessful_tests;       /* when 0, the times of tests and last_incomplete are not valid */
    uint32_t peer_slot;                /* for the recorder */
    uint64_t owner;                    /* for the recorder */
    uint64_t variable;                 /* where the application keeps the handle; of persistent ones, kept it when it was made */
    uint64_t seen_complete;            /* absolute ticks; valid with SPOOL_LIVE_SEEN_COMPLETE */
    uint64_t first_unsuccessful_test, last_unsuccessful_test; /* absolute ticks */
    uint64_t last_incomplete;          /* likewise; 0: never */
    uint64_t next_same;                /* for the recorder */
    uint32_t path;                     /* for the recorder */
    uint32_t memory;                   /* likewise: enum spool_data_memory, of a persistent one as it was made */
    uint64_t definition;               /* for the recorder */
    uint32_t partitions;               /* of partitioned ones; else 1 or not set */
    uint16_t home;                     /* for the recorder */
    uint16_t ready;                    /* partitions of a send made ready since it was started, at most 65535 */
};

enum spool_live_arm {
    SPOOL_LIVE_ARM = 3,
    SPOOL_LIVE_MEMORY_SHIFT = 2, SPOOL_LIVE_MEMORY = 3 << SPOOL_LIVE_MEMORY_SHIFT, /* enum spool_data_memory */
    SPOOL_LIVE_LEFT_OUT = 128          /* it will only be summed up */
};

/* What the data of a request lie in, the farther one where it sends and receives; unknown where nobody was asked. */
enum spool_data_memory { SPOOL_MEMORY_UNKNOWN = 0, SPOOL_MEMORY_HOST = 1, SPOOL_MEMORY_MANAGED = 2, SPOOL_MEMORY_DEVICE = 3 };

enum spool_live_flags {
    SPOOL_LIVE_CANCELLED = 1,          /* MPI_Cancel was called on it */
    SPOOL_LIVE_SEEN_COMPLETE = 2,
    /* for the recorder: */
    SPOOL_LIVE_CHAINED = 4,
    SPOOL_LIVE_PERSISTENT = 8,         /* outlives its activations; in between, operation is 0 */
    SPOOL_LIVE_MAKES_COMM = 16,        /* MPI_Comm_idup */
    SPOOL_LIVE_FORTRAN = 32,           /* the new communicator's handle is Fortran's */
    SPOOL_LIVE_INJECTED = 64,          /* tests are injected for it */
    SPOOL_LIVE_REDUCES = 128           /* with an operation of the application's */
};

/*
 * What a thread is inside of may be read while it runs. It stores `current_operation` 0 and then `calls` one higher at the end of
 * a call; at the begin of the next current_begin, what that waits for, and current_operation, in this order. So a reader reads, one
 * behind the other: calls and current_begin; current_operation; what is waited for, and entries; and calls, current_begin and
 * current_operation once more. When the last three are what they were, and there is an operation, then all of it is of one call.
 */
struct spool_thread_state {            /* 128 bytes, behind the header of a thread's first LIVE chunk */
    uint16_t thread;
    uint16_t current_call;             /* its number in calls.def; valid with current_operation */
    uint32_t current_operation;        /* the blocking or completing call that the thread is inside of; 0: none */
    uint64_t current_begin;            /* ticks */
    uint64_t mpi_ticks;                /* inside recorded calls, so far */
    uint64_t calls;                    /* intercepted so far: those that have ended */
    /* The handles that the current call was given to wait for, test, free or cancel: live entries whose `variable` is the
     * address of one of them are meant. Valid with current_operation. */
    uint64_t waits_variables;          /* address of the first handle in the application */
    uint32_t waits_count;              /* 0: the call ends no requests */
    uint8_t waits_stride;              /* bytes from one handle to the next: 4 of Fortran's, else as the ABI has them */
    uint8_t reserved8[3];
    uint64_t unsuccessful_tests;       /* of `calls`: tests and probes that found nothing, MPI_Request_get_status: no progress */
    uint32_t unsuccessful_operation;   /* of the last of these, as announced; 0: none */
    uint32_t reserved4;
    uint64_t reserved[8];
};

/* --- TALLY: chunk header, then entries, updated in place; in use when call_plus_1 is not 0 ------------------------- */
struct spool_tally {                   /* 64 bytes */
    uint16_t call_plus_1;
    uint8_t size_class;                /* k: bytes in [2^(k-1), 2^k); 0: no bytes */
    uint8_t reason;                    /* enum spool_tally_reason */
    uint32_t path;
    uint64_t count, bytes, inside_ticks, completion_ticks, mpi_ticks, window_ticks;
    uint64_t reserved;
};

enum spool_tally_reason { SPOOL_TALLY_UNSUCCESSFUL_TEST = 0, SPOOL_TALLY_SUMMARY = 1, SPOOL_TALLY_INJECTION = 2, SPOOL_TALLY_SAMPLE = 3 };

struct spool_injection {               /* the same entry with SPOOL_TALLY_INJECTION: see injection in tables.def */
    uint16_t call_plus_1;
    uint8_t is_off;                    /* by LAPSCOPE_INJECT_POLICY */
    uint8_t reason;
    uint32_t path;
    uint64_t requests, tests, found, test_ticks, idle_ticks;
    uint32_t interrupts, deferred;
    uint64_t interrupt_ticks;
};

/* --- CELLS: chunk header, then entries, of which those without call_plus_1 are not in use --------------------------
 * The sums of LAPSCOPE_RECORD=job, in a table of fixed size, of spools that are memory alone. Where it is full the lightest
 * entries are folded into one of their function, with SPOOL_CELL_REST for a size class and no path; the time of the heaviest that ever
 * was stands in the chunk's base. */
struct spool_cell {                    /* 128 bytes */
    struct spool_tally sums;
    uint64_t overlappable_ticks;       /* requests: of each at most its share of the call that ended it, and at most what was computed in its window */
    uint64_t error_ticks;              /* so much of inside_ticks and completion_ticks may have been folded away before */
    uint64_t at_once, most_bytes_at_once; /* sends that ended alone: within 10 us of time inside MPI, and the largest of them */
    uint64_t waiting, least_bytes_waiting; /* the others, and the smallest */
    uint64_t reserved[2];
};

#define SPOOL_CELL_REST 255

/* --- FRAMES: chunk header, then entries, of which those without an identity are not in use -------------------------
 * The call paths of CELLS: a tree in a table of fixed size, whose entries are used again when no cell has their path any more. A
 * path is named by its innermost frame's identity, which follows from the addresses: a path that comes back has its name again, and
 * who reads while the rank writes knows by it what is whole. */
struct spool_frame {                   /* 16 bytes */
    uint64_t address;
    uint32_t identity;                 /* written last; 0: not in use */
    uint16_t caller;                   /* place of the caller's entry, plus 1; 0: the outermost that is kept */
    uint16_t next;                     /* for the recorder */
};

#define SPOOL_FRAMES_DEPTH 32          /* of a path's frames the innermost are kept */

static inline uint32_t spool_frame_identity(uint32_t caller, uint64_t address)
{
    uint64_t mixed = (address ^ (caller + UINT64_C(0x9e3779b97f4a7c15))) * UINT64_C(0xff51afd7ed558ccd);
    mixed = (mixed ^ mixed >> 32 ^ caller) * UINT64_C(0xc4ceb9fe1a85ec53);
    return (uint32_t)(mixed >> 32) | (mixed >> 32 == 0);
}

#define SPOOL_SAMPLE_POSTS 8

enum spool_sampled { SPOOL_SAMPLED_CALLER = 0, SPOOL_SAMPLED_OTHER = 1 };

struct spool_sample {                  /* the same entry with SPOOL_TALLY_SAMPLE: see sample and sample_post in tables.def */
    uint16_t is_used;
    uint8_t thread;                    /* enum spool_sampled */
    uint8_t reason;
    uint32_t path;                     /* of the address behind the first byte of the instruction, alone */
    uint64_t count;
    uint32_t post_paths[SPOOL_SAMPLE_POSTS];
    uint16_t post_calls_plus_1[SPOOL_SAMPLE_POSTS]; /* 0: no more */
};

/* --- DEVICE: chunk header, in the first struct spool_device_state, then entries; in use when work_plus_1 is not 0 ---
 * Of the process, not of a thread. Rows of device_busy; the last of a device and work may still grow. */
struct spool_device_state {            /* 128 bytes: the row of device_recorder; texts may be unterminated */
    char source[32], problem[64];
    uint64_t resolution_ns, lost;
    uint64_t reserved[2];
};

struct spool_device_busy {             /* 32 bytes */
    uint64_t begin, ticks, busy_ticks;
    uint32_t device;
    uint32_t work_plus_1;              /* enum lapscope_device_work */
};

#ifdef __cplusplus
static_assert(sizeof(struct spool_chunk) == 64, "chunk header");
#else
_Static_assert(sizeof(struct spool_file_header) <= SPOOL_HEADER_BYTES, "file header");
_Static_assert(sizeof(struct spool_chunk) == 64, "chunk header");
_Static_assert(sizeof(struct spool_live) == 128, "live entry");
_Static_assert(sizeof(struct spool_thread_state) == 128, "thread state");
_Static_assert(sizeof(struct spool_tally) == 64, "tally entry");
_Static_assert(sizeof(struct spool_cell) == 128, "cell");
_Static_assert(sizeof(struct spool_device_state) == 128 && sizeof(struct spool_device_busy) == 32, "device entries");
_Static_assert(sizeof(struct spool_frame) == 16, "frame");
_Static_assert(sizeof(struct spool_injection) == sizeof(struct spool_tally), "injection entry");
_Static_assert(sizeof(struct spool_sample) == sizeof(struct spool_tally), "sample entry");
#endif

#endif
