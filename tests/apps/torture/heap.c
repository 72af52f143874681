/*
 * malloc, calloc, realloc, aligned_alloc and free without a pause while messages are pending: blocks of a few bytes to some
 * that the allocator maps, each with a pattern that must still be there when it goes.
 */
#include "draw.h"
#include "traffic.h"

enum { SLOTS = 500, OPERATIONS = 6000, ROUNDS = 250 };

static struct {
    unsigned char *data;
    size_t bytes;
} slots[SLOTS];

static size_t draw_size(void)
{
    return draw(300) == 0 ? 100000 + draw(200000) : 1 + draw(8u << draw(9));
}

static size_t marked(size_t bytes)
{
    return bytes < 512 ? bytes : 512;
}

static void check(int slot, size_t bytes)
{
    for (size_t i = 0; i < marked(bytes); i++)
        CHECK(slots[slot].data[i] == (unsigned char)(slot + bytes));
}

static void keep(int slot, void *data, size_t bytes)
{
    CHECK(data);
    slots[slot].data = data;
    slots[slot].bytes = bytes;
    memset(data, (unsigned char)(slot + bytes), marked(bytes));
}

static void drop(int slot)
{
    check(slot, slots[slot].bytes);
    free(slots[slot].data);
    slots[slot].data = NULL;
}

static void resize(int slot, size_t bytes)
{
    size_t before = slots[slot].bytes;
    unsigned char *data = realloc(slots[slot].data, bytes);
    CHECK(data);
    for (size_t i = 0; i < marked(before < bytes ? before : bytes); i++)
        CHECK(data[i] == (unsigned char)(slot + before));
    keep(slot, data, bytes);
}

static void work(int round)
{
    (void)round;
    for (int i = 0; i < OPERATIONS; i++) {
        int slot = (int)draw(SLOTS);
        size_t bytes = draw_size();
        if (slots[slot].data && draw(3) == 0)
            resize(slot, bytes);
        else if (slots[slot].data)
            drop(slot);
        else if (draw(8) == 0)
            keep(slot, aligned_alloc(256, (bytes + 255) / 256 * 256), bytes);
        else
            keep(slot, draw(2) == 0 ? malloc(bytes) : calloc(bytes, 1), bytes);
    }
}

int main(int argc, char **argv)
{
    int rank = start(&argc, &argv, 2);
    under_traffic(argc, argv, ROUNDS, work);
    for (int slot = 0; slot < SLOTS; slot++)
        if (slots[slot].data)
            drop(slot);
    if (rank == 0)
        puts("every block kept what was in it");
    MPI_Finalize();
    return 0;
}
