/*
 * From which size on does a send wait for its receiver? Rank 0 sends and waits at once, while rank 1 computes for much
 * longer than a transfer takes: a send that needs nothing of the receiver is complete before that.
 *
 *   overlap_spread [-r ROUNDS] [-k OUTSTANDING] [-w MS] [-i] [BYTES ...]
 *
 * A round is three times the same message, to a receiver who
 *   posts, computes, waits;
 *   computes, posts and waits;
 *   computes, looks into MPI (MPI_Probe), computes, posts and waits.
 * The last tells sends that wait for the receive from those that wait for the receiver to take the message out of their
 * way: of Open MPI 4.1 on shared memory the latter are all above btl_vader_max_inline_send, whatever the eager limit is.
 * With -i it looks by MPI_Iprobe for something that is not there, as programs do that wait for many things: of such a look no
 * record says when it was.
 *
 * Without BYTES a spread of sizes from 64 bytes to 1 MiB, each 1.2 times the one before. With -k also 2, 4, ... up to
 * OUTSTANDING messages of each size at once, each waited for in turn: an MPI may keep one message of a size and not so
 * many. MS is how long the receiver computes besides, so that nobody else's use of the processors looks like waiting.
 *
 * Prints a line for each size and number of messages at once:
 *   outstanding K size BYTES sends N posts P looks L: of N sends P returned from MPI_Isend, and L were complete, only after
 *   the receiver was in MPI again;
 *   looked N receives R: of N sends to a receiver who looked first, R were complete only when he had posted.
 */
#include "work.h"

#include <unistd.h>

enum { MAX_SIZES = 200, MAX_OUTSTANDING = 64, LARGEST = 1 << 20 };
enum { TOKEN = 1, DONE, MESSAGE };

enum receiver { POSTS_FIRST, COMPUTES_FIRST, LOOKS_FIRST, RECEIVERS };

struct evidence {
    int sends, posts, looks, looked, receives;
};

/* When the receiver was in MPI again, and when it posted. */
struct presence {
    int64_t back, there;
};

static char *buffer[MAX_OUTSTANDING];
static int looks_elsewhere;

/* Sends `count` messages at once and finds out how many of them had to wait for the receiver. */
static void send_messages(int bytes, int count, enum receiver receiver, struct evidence *evidence)
{
    int64_t posted[MAX_OUTSTANDING], done[MAX_OUTSTANDING];
    MPI_Request requests[MAX_OUTSTANDING];
    struct presence presence;
    MPI_Recv(NULL, 0, MPI_BYTE, 1, TOKEN, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int i = 0; i < count; i++) {
        MPI_Isend(buffer[i], bytes, MPI_BYTE, 1, MESSAGE, MPI_COMM_WORLD, &requests[i]);
        posted[i] = now_ns();
    }
    for (int i = 0; i < count; i++) {
        MPI_Wait(&requests[i], MPI_STATUS_IGNORE);
        done[i] = now_ns();
    }
    MPI_Recv(&presence, 2, MPI_INT64_T, 1, DONE, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int i = 0; i < count; i++) {
        evidence->posts += posted[i] > presence.back;
        evidence->looks += done[i] > presence.back;
        evidence->receives += receiver == LOOKS_FIRST && done[i] > presence.there;
    }
    evidence->sends += count;
    evidence->looked += receiver == LOOKS_FIRST ? count : 0;
}

static void post_receives(int bytes, int count, MPI_Request *requests)
{
    for (int i = 0; i < count; i++)
        MPI_Irecv(buffer[i], bytes, MPI_BYTE, 0, MESSAGE, MPI_COMM_WORLD, &requests[i]);
}

/* Into MPI, without a receive for the message. */
static void look(void)
{
    enum { LOOKS = 100, NOTHING = 99 };
    int is_there;
    if (!looks_elsewhere) {
        MPI_Probe(0, MESSAGE, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        return;
    }
    for (int i = 0; i < LOOKS; i++) {
        MPI_Iprobe(0, NOTHING, MPI_COMM_WORLD, &is_there, MPI_STATUS_IGNORE);
        CHECK(!is_there);
    }
}

static void receive_messages(int bytes, int count, enum receiver receiver, int64_t window_ns)
{
    MPI_Request requests[MAX_OUTSTANDING];
    struct presence presence;
    if (receiver == POSTS_FIRST)
        post_receives(bytes, count, requests);
    MPI_Send(NULL, 0, MPI_BYTE, 0, TOKEN, MPI_COMM_WORLD);
    compute(window_ns);
    presence.back = now_ns();
    if (receiver == LOOKS_FIRST) {
        look();
        compute(window_ns);
    }
    presence.there = now_ns();
    if (receiver != POSTS_FIRST)
        post_receives(bytes, count, requests);
    for (int i = 0; i < count; i++) {
        MPI_Wait(&requests[i], MPI_STATUS_IGNORE);
        CHECK(is_message(buffer[i], (size_t)bytes, i));
    }
    MPI_Send(&presence, 2, MPI_INT64_T, 0, DONE, MPI_COMM_WORLD);
}

/* Both ranks are there before, and nothing is under way. */
static void pass_messages(int bytes, int count, enum receiver receiver, int64_t window_ns, struct evidence *evidence)
{
    int sends = comm_rank(MPI_COMM_WORLD) == 0;
    for (int i = 0; i < count; i++)
        memset(buffer[i], sends ? value_of(i) : 0, (size_t)bytes);
    MPI_Barrier(MPI_COMM_WORLD);
    if (sends)
        send_messages(bytes, count, receiver, evidence);
    else
        receive_messages(bytes, count, receiver, window_ns);
}

/* What so many messages of this size take when the receiver is there: the median of some. */
static int64_t time_messages(int bytes, int count)
{
    enum { TIMES = 5 };
    struct evidence unused = {0, 0, 0, 0, 0};
    int64_t took[TIMES];
    for (int i = 0; i < TIMES; i++) {
        int64_t begin = now_ns();
        pass_messages(bytes, count, POSTS_FIRST, 0, &unused);
        took[i] = now_ns() - begin;
    }
    int64_t typical = median(took, TIMES);
    MPI_Bcast(&typical, 1, MPI_INT64_T, 1, MPI_COMM_WORLD);
    return typical;
}

static void try_size(int bytes, int count, int rounds, int64_t window_ns)
{
    struct evidence e = {0, 0, 0, 0, 0};
    window_ns += 3 * time_messages(bytes, count);
    for (int i = 0; i < rounds * RECEIVERS; i++)
        pass_messages(bytes, count, (enum receiver)(i % RECEIVERS), window_ns, &e);
    if (comm_rank(MPI_COMM_WORLD) == 0)
        printf("outstanding %d size %d sends %d posts %d looks %d looked %d receives %d\n", count, bytes, e.sends, e.posts,
               e.looks, e.looked, e.receives);
}

static int make_spread(int sizes[MAX_SIZES])
{
    int count = 0;
    for (double bytes = 64; bytes <= LARGEST; bytes *= 1.2)
        sizes[count++] = (int)bytes;
    return count;
}

int main(int argc, char **argv)
{
    int sizes[MAX_SIZES], count = 0, rounds = 3, outstanding = 1, option, largest = 0;
    double window_ms = 4;
    start(&argc, &argv, 2);
    while ((option = getopt(argc, argv, "r:k:w:i")) != -1)
        switch (option) {
        case 'r': rounds = atoi(optarg); break;
        case 'k': outstanding = atoi(optarg); break;
        case 'w': window_ms = atof(optarg); break;
        case 'i': looks_elsewhere = 1; break;
        default: MPI_Abort(MPI_COMM_WORLD, 2);
        }
    for (; optind < argc && count < MAX_SIZES; optind++)
        sizes[count++] = atoi(argv[optind]);
    if (count == 0)
        count = make_spread(sizes);
    CHECK(outstanding <= MAX_OUTSTANDING);
    for (int i = 0; i < count; i++)
        largest = sizes[i] > largest ? sizes[i] : largest;
    for (int i = 0; i < outstanding; i++)
        buffer[i] = make_buffer((size_t)largest);
    calibrate_work();
    for (int at_once = 1; at_once <= outstanding; at_once *= 2)
        for (int i = 0; i < count; i++)
            try_size(sizes[i], at_once, rounds, (int64_t)(window_ms * 1e6));
    for (int i = 0; i < outstanding; i++)
        free(buffer[i]);
    MPI_Finalize();
    return 0;
}
