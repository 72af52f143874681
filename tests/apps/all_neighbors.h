/*
 * The five neighbourhood collectives over three topologies, on three ranks: a ring (MPI_Cart_create: two neighbours each),
 * the same as MPI_Graph_create, and MPI_Dist_graph_create_adjacent in which rank 0 sends to both others and receives
 * nothing. POST(name, request, arguments...) of the program that includes this says in which form, with count_t
 * and displ_t.
 */
#include "check.h"

enum { RANKS = 3, COUNT = 4, MOST = 2 };
enum { ALLGATHER, ALLGATHERV, ALLTOALL, ALLTOALLV, ALLTOALLW, OPERATIONS };

/* A topology: the ranks that this one receives from and sends to, in the order of MPI's buffers. */
struct topology {
    MPI_Comm comm;
    int sources, destinations, source[MOST], destination[MOST];
};

static int rank;
static int out[OPERATIONS][MOST * COUNT], in[OPERATIONS][MOST * COUNT];
static const count_t counts[MOST] = {COUNT, COUNT};
static const displ_t displs[MOST] = {0, COUNT};
static const MPI_Aint byte_displs[MOST] = {0, 4 * COUNT};
static MPI_Datatype ints[MOST];

static void make_topologies(struct topology topologies[3])
{
    int size = RANKS, periodic = 1, weights[MOST] = {1, 1}, before = (rank + 2) % 3, after = (rank + 1) % 3;
    int index[] = {2, 4, 6}, edges[] = {2, 1, 0, 2, 1, 0};
    struct topology ring = {MPI_COMM_NULL, 2, 2, {before, after}, {before, after}};
    struct topology star = {MPI_COMM_NULL, rank != 0, rank == 0 ? 2 : 0, {0}, {1, 2}};
    topologies[0] = topologies[1] = ring;
    topologies[2] = star;
    MPI_Cart_create(MPI_COMM_WORLD, 1, &size, &periodic, 0, &topologies[0].comm);
    MPI_Graph_create(MPI_COMM_WORLD, RANKS, index, edges, 0, &topologies[1].comm);
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, star.sources, star.source, weights, star.destinations,
                                   star.destination, weights, MPI_INFO_NULL, 0, &topologies[2].comm);
}

/* Element `i` of the block that rank `from` has for rank `to`; for `to` -1 of what it has for all. */
static int element(int from, int to, int i)
{
    return 1000 * (to + 1) + 100 * from + i;
}

static void fill_all(const struct topology *topology)
{
    for (int k = 0; k < MOST; k++)
        ints[k] = MPI_INT;
    for (int operation = 0; operation < OPERATIONS; operation++)
        for (int i = 0; i < MOST * COUNT; i++) {
            int to = operation <= ALLGATHERV ? -1 : topology->destination[i / COUNT];
            out[operation][i] = element(rank, to, i % COUNT);
            in[operation][i] = -1;
        }
}

static void post_all(MPI_Comm comm, MPI_Request *requests)
{
    POST(allgather, &requests[ALLGATHER], out[ALLGATHER], COUNT, MPI_INT, in[ALLGATHER], COUNT, MPI_INT, comm);
    POST(allgatherv, &requests[ALLGATHERV], out[ALLGATHERV], COUNT, MPI_INT, in[ALLGATHERV], counts, displs, MPI_INT, comm);
    POST(alltoall, &requests[ALLTOALL], out[ALLTOALL], COUNT, MPI_INT, in[ALLTOALL], COUNT, MPI_INT, comm);
    POST(alltoallv, &requests[ALLTOALLV], out[ALLTOALLV], counts, displs, MPI_INT, in[ALLTOALLV], counts, displs, MPI_INT, comm);
    POST(alltoallw, &requests[ALLTOALLW], out[ALLTOALLW], counts, byte_displs, ints, in[ALLTOALLW], counts, byte_displs, ints, comm);
}

/* MPICH 4.0 delivers nothing in alltoallw over a graph in which a rank has other numbers of sources and destinations. */
static void check_all(const struct topology *topology)
{
    int operations = MPICH_OF_4_0 && topology->sources != 2 ? ALLTOALLW : OPERATIONS;
    for (int operation = 0; operation < operations; operation++)
        for (int i = 0; i < topology->sources * COUNT; i++) {
            int to = operation <= ALLGATHERV ? -1 : rank;
            CHECK(in[operation][i] == element(topology->source[i / COUNT], to, i % COUNT));
        }
}
