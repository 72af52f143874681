/*
 * Buffers of every kind that a program may have, sent and received again and again, and what programs do with them between two
 * exchanges: two ranks. Each kind has a tag of its own, from FIRST_TAG on in the order of `kinds`; arguments name some of them. What
 * is received is checked, and each kind says that it is through.
 */
#include "reach_buffers.h"

/* --- sizes and addresses ------------------------------------------------------------------------------------------ */

/* One to seven bytes, at every distance from a word. */
static void tiny(int tag)
{
    static char out[16], in[16];
    for (int round = 0; round < ROUNDS; round++)
        for (int bytes = 1; bytes < 8; bytes++) {
            int at = round % 8;
            exchange_bytes(&out[at], &in[at], bytes, tag, round);
        }
}

static void unaligned(int tag)
{
    static char out[BYTES + 8], in[BYTES + 8];
    for (int round = 0; round < ROUNDS; round++)
        exchange_bytes(&out[1 + round % 7], &in[7 - round % 7], BYTES - 3, tag, round);
}

static void elements_of_32_bits(int tag)
{
    enum { COUNT = 1001 };
    static int32_t words_out[COUNT + 1], words_in[COUNT + 1];
    int32_t *out = &words_out[1], *in = &words_in[1]; /* between two words of 8 bytes */
    for (int round = 0; round < ROUNDS; round++) {
        MPI_Request requests[2];
        for (int i = 0; i < COUNT; i++)
            out[i] = i * round;
        MPI_Irecv(in, COUNT, MPI_INT32_T, peer, tag, MPI_COMM_WORLD, &requests[0]);
        MPI_Isend(out, COUNT, MPI_INT32_T, peer, tag, MPI_COMM_WORLD, &requests[1]);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        for (int i = 0; i < COUNT; i++)
            CHECK(in[i] == i * round);
    }
}

static void huge(int tag)
{
    size_t bytes = 48 << 20;
    char *out = map(bytes), *in = map(bytes);
    madvise(out, bytes, MADV_HUGEPAGE);
    for (int round = 0; round < 2; round++) {
        MPI_Request requests[2];
        memset(out, round + 1, bytes);
        MPI_Irecv(in, (int)bytes, MPI_BYTE, peer, tag, MPI_COMM_WORLD, &requests[0]);
        MPI_Isend(out, (int)bytes, MPI_BYTE, peer, tag, MPI_COMM_WORLD, &requests[1]);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        for (size_t i = 0; i < bytes; i += 997)
            CHECK(in[i] == round + 1);
    }
    munmap(out, bytes);
    munmap(in, bytes);
}

static void nothing(int tag)
{
    char none = 7;
    for (int round = 0; round < ROUNDS; round++) {
        exchange_bytes(NULL, NULL, 0, tag, round);
        MPI_Sendrecv(&none, 1, MPI_BYTE, MPI_PROC_NULL, tag, &none, 1, MPI_BYTE, MPI_PROC_NULL, tag, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
    }
    CHECK(none == 7);
}

/* --- where they lie ----------------------------------------------------------------------------------------------- */

/* Freed before anybody has looked, and given out again. */
static void freed(int tag)
{
    for (int round = 0; round < ROUNDS; round++) {
        char *out = malloc(BYTES), *in = malloc(BYTES);
        CHECK(out && in);
        fill(out, BYTES, round);
        exchange(out, in, tag, round);
        free(in);
        free(out);
        in = malloc(BYTES);
        CHECK(in);
        memset(in, 1, BYTES);
        free(in);
    }
}

static void unmapped(int tag)
{
    for (int round = 0; round < ROUNDS; round++) {
        char *out = map(BYTES), *in = map(BYTES);
        fill(out, BYTES, round);
        exchange(out, in, tag, round);
        munmap(in, BYTES);
        munmap(out, BYTES);
        char *other = map(BYTES);
        fill(other, BYTES, round);
        CHECK(holds(other, BYTES, round));
        munmap(other, BYTES);
    }
}

static __attribute__((noinline)) int deep(int levels)
{
    volatile char some[512];
    for (size_t i = 0; i < sizeof some; i++)
        some[i] = (char)levels;
    return levels ? deep(levels - 1) + some[3] : 0;
}

static __attribute__((noinline)) void on_own_frame(int tag, int round)
{
    char out[BYTES], in[BYTES];
    fill(out, BYTES, round);
    exchange(out, in, tag, round);
    if (round % 2)
        CHECK(holds(in, BYTES, round));
}

static void on_stack(int tag)
{
    for (int round = 0; round < ROUNDS; round++) {
        on_own_frame(tag, round);
        CHECK(deep(40) > 0);
    }
}

static const char constant[BYTES] = "sent from memory that nobody can write";

static void read_only(int tag)
{
    static char in[BYTES];
    for (int round = 0; round < ROUNDS; round++) {
        exchange((char *)(uintptr_t)constant, in, tag, round);
        CHECK(memcmp(in, constant, BYTES) == 0);
    }
}

/* Memory that the other rank writes, too. */
static void shared(int tag)
{
    MPI_Win window;
    char *base;
    MPI_Win_allocate_shared(3 * BYTES, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &window);
    MPI_Win_lock_all(MPI_MODE_NOCHECK, window);
    for (int round = 0; round < ROUNDS; round++) {
        MPI_Aint bytes;
        int unit;
        char *others;
        exchange_bytes(base, base + BYTES, BYTES, tag, round);
        MPI_Win_shared_query(window, peer, &bytes, &unit, &others);
        MPI_Barrier(MPI_COMM_WORLD);
        fill(others + 2 * BYTES, BYTES, round);
        MPI_Win_sync(window);
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Win_sync(window);
        CHECK(holds(base + 2 * BYTES, BYTES, round));
    }
    MPI_Win_unlock_all(window);
    MPI_Win_free(&window);
}

/* --- what describes them ------------------------------------------------------------------------------------------ */

/* MPI_BOTTOM, and absolute addresses in the datatype. */
static void absolute(int tag)
{
    static char out[BYTES], in[BYTES];
    for (int round = 0; round < ROUNDS; round++) {
        MPI_Request requests[2];
        MPI_Datatype of_out = type_at(out), of_in = type_at(in);
        fill(out, BYTES, round);
        MPI_Irecv(MPI_BOTTOM, 1, of_in, peer, tag, MPI_COMM_WORLD, &requests[0]);
        MPI_Isend(MPI_BOTTOM, 1, of_out, peer, tag, MPI_COMM_WORLD, &requests[1]);
        MPI_Type_free(&of_out);
        MPI_Type_free(&of_in);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        CHECK(holds(in, BYTES, round));
    }
}

/* A column of a matrix: words of it lie far from each other, and what is between is not sent. */
static void columns(int tag)
{
    static double out[COLUMN][WIDTH], in[COLUMN][WIDTH];
    MPI_Datatype column;
    MPI_Type_vector(COLUMN, 1, WIDTH, MPI_DOUBLE, &column);
    MPI_Type_commit(&column);
    for (int round = 0; round < ROUNDS; round++) {
        MPI_Request requests[2];
        for (int i = 0; i < COLUMN; i++)
            out[i][3] = i + round;
        MPI_Irecv(&in[0][2], 1, column, peer, tag, MPI_COMM_WORLD, &requests[0]);
        MPI_Isend(&out[0][3], 1, column, peer, tag, MPI_COMM_WORLD, &requests[1]);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        for (int i = 0; i < COLUMN; i++)
            CHECK(in[i][2] == i + round && in[i][1] == 0);
    }
    MPI_Type_free(&column);
}

static void in_place(int tag)
{
    static double values[COLUMN];
    (void)tag;
    for (int round = 0; round < ROUNDS; round++) {
        MPI_Request request;
        for (int i = 0; i < COLUMN; i++)
            values[i] = i + round;
        MPI_Allreduce(MPI_IN_PLACE, values, COLUMN, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        MPI_Iallreduce(MPI_IN_PLACE, values, COLUMN, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        for (int i = 0; i < COLUMN; i++)
            CHECK(values[i] == 4.0 * (i + round));
    }
}

/* Two sends of one buffer at once, and a receive that completes before them. */
static void twice(int tag)
{
    static char out[BYTES], in[2][BYTES];
    for (int round = 0; round < ROUNDS; round++) {
        MPI_Request requests[4];
        fill(out, BYTES, round);
        for (int i = 0; i < 2; i++) {
            MPI_Irecv(in[i], BYTES, MPI_BYTE, peer, tag, MPI_COMM_WORLD, &requests[i]);
            MPI_Isend(out, BYTES - i * 8, MPI_BYTE, peer, tag, MPI_COMM_WORLD, &requests[2 + i]);
        }
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        CHECK(holds(in[0], BYTES, round) && holds(in[1], BYTES - 8, round));
        MPI_Waitall(2, &requests[2], MPI_STATUSES_IGNORE);
    }
}

static void persistent(int tag)
{
    static char out[BYTES], in[BYTES];
    MPI_Request requests[2];
    MPI_Recv_init(in, BYTES, MPI_BYTE, peer, tag, MPI_COMM_WORLD, &requests[0]);
    MPI_Send_init(out, BYTES, MPI_BYTE, peer, tag, MPI_COMM_WORLD, &requests[1]);
    for (int round = 0; round < ROUNDS; round++) {
        fill(out, BYTES, round);
        MPI_Startall(2, requests);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        CHECK(holds(in, BYTES, round));
    }
    MPI_Request_free(&requests[0]);
    MPI_Request_free(&requests[1]);
}

/* --- who touches them --------------------------------------------------------------------------------------------- */

/* A child writes to its own copy; another becomes a program that has no MPI. */
static void children(int tag)
{
    static char out[BYTES], in[BYTES];
    for (int round = 0; round < 6; round++) {
        exchange_bytes(out, in, BYTES, tag, round);
        pid_t child = fork();
        if (child == 0) {
            memset(in, 0, BYTES);
            memset(out, 0, BYTES);
            if (round % 2)
                execl("/bin/true", "true", (char *)NULL);
            _exit(0);
        }
        CHECK(exit_code_of(child) == 0);
        CHECK(holds(in, BYTES, round) && holds(out, BYTES, round));
    }
}

/* A system call reads and writes them. */
static void by_the_kernel(int tag)
{
    static char out[BYTES], in[BYTES];
    int ends[2];
    CHECK(pipe(ends) == 0);
    for (int round = 0; round < ROUNDS; round++) {
        char from[BYTES];
        fill(from, BYTES, round);
        CHECK(write(ends[1], from, BYTES) == BYTES && read(ends[0], out, BYTES) == BYTES);
        exchange(out, in, tag, round);
        CHECK(write(ends[1], in, BYTES) == BYTES && read(ends[0], from, BYTES) == BYTES);
        CHECK(holds(from, BYTES, round));
    }
    close(ends[0]);
    close(ends[1]);
}

struct touch {
    char *out, *in;
    int round;
};

static void *write_out(void *context)
{
    struct touch *touch = context;
    fill(touch->out, BYTES, touch->round);
    return NULL;
}

static void *read_in(void *context)
{
    struct touch *touch = context;
    CHECK(holds(touch->in, BYTES, touch->round));
    return NULL;
}

static void by_thread(void *(*run)(void *), struct touch *touch)
{
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, run, touch) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
}

/* A thread that makes no MPI call writes what is sent and reads what came. */
static void threads(int tag)
{
    static char out[BYTES], in[BYTES];
    for (int round = 0; round < ROUNDS; round++) {
        struct touch touch = {out, in, round};
        by_thread(write_out, &touch);
        exchange(out, in, tag, round);
        by_thread(read_in, &touch);
    }
}

static const struct {
    const char *name;
    void (*run)(int tag);
} kinds[] = {
    {"tiny", tiny},           {"unaligned", unaligned},   {"32 bits", elements_of_32_bits},
    {"huge", huge},           {"nothing", nothing},       {"freed", freed},
    {"unmapped", unmapped},   {"stack", on_stack},        {"read-only", read_only},
    {"shared", shared},       {"absolute", absolute},     {"columns", columns},
    {"in place", in_place},   {"twice", twice},           {"persistent", persistent},
    {"children", children},   {"kernel", by_the_kernel},  {"threads", threads},
};

static int is_wanted(const char *name, int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        if (!strcmp(argv[i], name))
            return 1;
    return argc == 1;
}

int main(int argc, char **argv)
{
    int rank = start(&argc, &argv, 2);
    peer = 1 - rank;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (!is_wanted(kinds[i].name, argc, argv))
            continue;
        kinds[i].run(FIRST_TAG + (int)i);
        if (rank == 0)
            printf("%s\n", kinds[i].name);
    }
    fflush(stdout);
    MPI_Finalize();
    return 0;
}
