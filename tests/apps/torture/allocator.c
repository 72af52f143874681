/* A program with an allocator in its own executable, which nobody who interrupts it can tell from the rest of it. */
#include "draw.h"
#include "traffic.h"
#include "tripwire.h"

enum { SLOTS = 100, OPERATIONS = 3000, ROUNDS = 80 };

static void work(int round)
{
    static char *slots[SLOTS];
    for (int i = 0; i < OPERATIONS; i++) {
        uint32_t slot = draw(SLOTS);
        free(slots[slot]);
        slots[slot] = malloc(1 + draw(2000));
        CHECK(slots[slot]);
        *slots[slot] = (char)round;
    }
}

int main(int argc, char **argv)
{
    int rank = start(&argc, &argv, 2);
    under_traffic(argc, argv, ROUNDS, work);
    if (rank == 0)
        puts("allocated");
    MPI_Finalize();
    return 0;
}
