/*
 * Sends of derived datatypes chosen at random, with gaps, in any order, also of negative extents; the sender writes into its buffer
 * again as soon as a send is complete. Every second one is received as plain integers, the others as they were sent.
 *
 *   copied_types SEED MESSAGES
 *
 * The first three are arrays of structures as C has them. Errors are returned, as programs ask for that want to end in order.
 * Rank 1 prints a sum of each message, and of what lies in its gaps.
 */
#include "work.h"

#include <stddef.h>

enum { HALF = 1 << 21, MOST_ELEMENTS = 60000 };

static uint64_t state;

static int random_below(int limit)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (int)((state >> 33) % (uint64_t)limit);
}

static MPI_Datatype resized(MPI_Datatype of, int lower, int extent)
{
    MPI_Datatype type;
    MPI_Type_create_resized(of, lower * (MPI_Aint)sizeof(int), extent * (MPI_Aint)sizeof(int), &type);
    MPI_Type_free(&of);
    return type;
}

static MPI_Datatype indexed(int blocks, int descends)
{
    int lengths[8], places[8], place = 0;
    for (int i = 0; i < blocks; i++) {
        int at = descends ? blocks - 1 - i : i;
        lengths[at] = 1 + random_below(3);
        places[at] = place;
        place += lengths[at] + random_below(4);
    }
    MPI_Datatype type;
    MPI_Type_indexed(blocks, lengths, places, MPI_INT, &type);
    return type;
}

static MPI_Datatype structure(void)
{
    int lengths[2] = {1 + random_below(3), 1};
    MPI_Aint places[2] = {0, (lengths[0] + random_below(3)) * (MPI_Aint)sizeof(int)};
    MPI_Datatype types[2] = {MPI_INT, MPI_INT}, type;
    MPI_Type_create_struct(2, lengths, places, types, &type);
    return type;
}

static MPI_Datatype subarray(void)
{
    int sizes[3], parts[3], starts[3];
    for (int i = 0; i < 3; i++) {
        sizes[i] = 2 + random_below(4);
        parts[i] = 1 + random_below(sizes[i]);
        starts[i] = random_below(sizes[i] - parts[i] + 1);
    }
    MPI_Datatype type;
    MPI_Type_create_subarray(3, sizes, parts, starts, MPI_ORDER_C, MPI_INT, &type);
    return type;
}

static MPI_Datatype vector(int stride)
{
    MPI_Datatype type;
    MPI_Type_vector(1 + random_below(5), 1 + random_below(2), stride, MPI_INT, &type);
    return type;
}

/* What a C compiler makes of {double x, y, z; int id;}, and of {char a; double b; short c;}; pairs with gaps of their own, which not
 * every MPI packs rightly, so that they are not copied. */
static MPI_Datatype of_c(int which)
{
    struct particle { double x, y, z; int id; };
    struct mixed { char a; double b; short c; };
    int lengths[3] = {1, 1, 1};
    MPI_Datatype type, whole;
    if (which == 2) {
        MPI_Type_vector(20, 1, 2, MPI_DOUBLE_INT, &type);
        return resized(type, 0, 256);
    }
    if (which == 0) {
        MPI_Type_create_struct(2, (int[]){3, 1}, (MPI_Aint[]){0, offsetof(struct particle, id)},
            (MPI_Datatype[]){MPI_DOUBLE, MPI_INT}, &type);
    } else {
        MPI_Aint places[3] = {offsetof(struct mixed, a), offsetof(struct mixed, b), offsetof(struct mixed, c)};
        MPI_Type_create_struct(3, lengths, places, (MPI_Datatype[]){MPI_CHAR, MPI_DOUBLE, MPI_SHORT}, &type);
    }
    MPI_Aint size = which == 0 ? sizeof(struct particle) : sizeof(struct mixed);
    MPI_Type_create_resized(type, 0, size, &whole);
    MPI_Type_free(&type);
    return whole;
}

static MPI_Datatype random_type(void)
{
    switch (random_below(8)) {
    case 0: return vector(2 + random_below(3));
    case 1: return vector(-2 - random_below(3));
    case 2: return indexed(1 + random_below(8), 0);
    case 3: return indexed(1 + random_below(8), 1);
    case 4: return structure();
    case 5: return subarray();
    case 6: return resized(structure(), -1, 9);
    default: return resized(vector(3), 0, -17);
    }
}

/* As many elements as take a part of the buffer at most. */
static int random_count(MPI_Datatype type)
{
    MPI_Aint lower, extent;
    int bytes;
    MPI_Type_get_extent(type, &lower, &extent);
    MPI_Type_size(type, &bytes);
    long most = HALF / 2 * (long)sizeof(int) / ((extent < 0 ? -extent : extent) + 256), elements = MOST_ELEMENTS * 4 / bytes;
    most = most < elements ? most : elements;
    return 1 + random_below(random_below(3) ? (int)most : 20);
}

static uint64_t sum_of(const int *buffer, int count)
{
    uint64_t sum = 14695981039346656037u;
    for (int i = 0; i < count; i++)
        sum = (sum ^ (uint32_t)buffer[i]) * 1099511628211u;
    return sum;
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    CHECK(argc == 3 && comm_size(MPI_COMM_WORLD) == 2);
    state = (uint64_t)atoll(argv[1]);
    int *buffer = malloc(2 * HALF * sizeof(int));
    CHECK(buffer != NULL);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    for (int message = 0; message < atoi(argv[2]); message++) {
        int is_of_c = message < 3;
        MPI_Datatype type = is_of_c ? of_c(message) : random_type();
        MPI_Type_commit(&type);
        int count = is_of_c ? message == 2 ? 1000 : 20000 : random_count(type), bytes, is_blocking = random_below(2), got, error;
        MPI_Type_size(type, &bytes);
        int integers = count * (bytes / (int)sizeof(int)), is_plain = message % 2 && !is_of_c;
        if (comm_rank(MPI_COMM_WORLD) == 0) {
            for (int i = 0; i < 2 * HALF; i++)
                buffer[i] = i * 7 + message;
            MPI_Request request = MPI_REQUEST_NULL;
            if (is_blocking)
                MPI_Send(buffer + HALF, count, type, 1, message, MPI_COMM_WORLD);
            else
                MPI_Isend(buffer + HALF, count, type, 1, message, MPI_COMM_WORLD, &request);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
            memset(buffer, 255, 2 * HALF * sizeof(int));
        } else {
            MPI_Status status;
            memset(buffer, 0, 2 * HALF * sizeof(int));
            nanosleep(&(struct timespec){.tv_nsec = message % 3 * 1000000}, NULL);
            if (is_plain)
                error = MPI_Recv(buffer + HALF, integers, MPI_INT, 0, message, MPI_COMM_WORLD, &status);
            else
                error = MPI_Recv(buffer + HALF, count, type, 0, message, MPI_COMM_WORLD, &status);
            MPI_Get_count(&status, is_of_c ? type : MPI_INT, &got);
            printf("%d: error %d, %d of %d, %016llx\n", message, error, got, is_of_c ? count : integers,
                (unsigned long long)sum_of(buffer, 2 * HALF));
        }
        MPI_Type_free(&type);
    }
    free(buffer);
    MPI_Finalize();
    return 0;
}
