/* Processes that spawn others: two ranks spawn a world of two, which spawns a world of one; then a world of three from
 * two command lines; then each rank for itself a world of two, at once. Argument: what this process was spawned as. */
#include "check.h"

enum { TAG = 5 };

/* Spawns `ranks` copies of this program; returns NULL's communicator when this MPI cannot. */
static MPI_Comm spawn(char *program, char *name, int ranks, MPI_Comm over)
{
    char *arguments[] = {name, NULL};
    int codes[8];
    MPI_Comm children = MPI_COMM_NULL;
    if (MPI_Comm_spawn(program, arguments, ranks, MPI_INFO_NULL, 0, over, &children, codes) != MPI_SUCCESS)
        return MPI_COMM_NULL;
    return children;
}

static MPI_Comm spawn_two_commands(char *program)
{
    char *first[] = {"multiple-a", NULL}, *second[] = {"multiple-b", NULL};
    char **arguments[] = {first, second}, *commands[] = {program, program};
    int ranks[] = {1, 2}, codes[3];
    MPI_Info infos[] = {MPI_INFO_NULL, MPI_INFO_NULL};
    MPI_Comm children;
    CHECK(MPI_Comm_spawn_multiple(2, commands, arguments, ranks, infos, 0, MPI_COMM_WORLD, &children, codes) ==
          MPI_SUCCESS);
    return children;
}

/* Rank 0 of the parents hears from each child, in the order of their ranks. Returns the sum of what they say. */
static int listen(MPI_Comm children)
{
    int sum = 0, ranks;
    MPI_Comm_remote_size(children, &ranks);
    for (int from = 0; from < ranks && comm_rank(children) == 0; from++) {
        int said;
        MPI_Recv(&said, 1, MPI_INT, from, TAG, children, MPI_STATUS_IGNORE);
        CHECK(said % 100 == from);
        sum += said;
    }
    MPI_Barrier(children);
    MPI_Comm_disconnect(&children);
    return sum;
}

static void be_child(char *program, const char *name, MPI_Comm parents)
{
    int say = comm_rank(MPI_COMM_WORLD);
    if (!strcmp(name, "branch"))
        say += 100 * listen(spawn(program, "leaf", 1, MPI_COMM_WORLD)) + 100;
    MPI_Send(&say, 1, MPI_INT, 0, TAG, parents);
    MPI_Barrier(parents);
    MPI_Comm_disconnect(&parents);
}

static void be_first(char *program, int rank)
{
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm branch = spawn(program, "branch", 2, MPI_COMM_WORLD);
    if (branch == MPI_COMM_NULL) {
        if (rank == 0)
            puts("this MPI cannot spawn");
        return;
    }
    int sums[3] = {listen(branch)};
    sums[1] = listen(spawn_two_commands(program));
    sums[2] = listen(spawn(program, rank == 0 ? "of-0" : "of-1", 2, MPI_COMM_SELF));
    CHECK(sums[2] == 1);
    if (rank == 0)
        printf("branch %d, two commands %d, of rank 0 %d\n", sums[0], sums[1], sums[2]);
}

int main(int argc, char **argv)
{
    MPI_Comm parents;
    MPI_Init(&argc, &argv);
    MPI_Comm_get_parent(&parents);
    if (parents == MPI_COMM_NULL)
        be_first(argv[0], comm_rank(MPI_COMM_WORLD));
    else
        be_child(argv[0], argc > 1 ? argv[1] : "", parents);
    MPI_Finalize();
    return 0;
}
