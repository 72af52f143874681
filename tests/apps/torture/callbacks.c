/*
 * Functions of the program that the C library calls while messages are pending: the program computes, and frames of the
 * library are below it on the stack.
 */
#include "draw.h"
#include "traffic.h"

#include <search.h>

enum { NUMBERS = 3000, NODES = 500, ROUNDS = 150 };

static int walked;

static int compare(const void *a, const void *b)
{
    int x = *(const int *)a, y = *(const int *)b;
    return (x > y) - (x < y) + (arithmetic(30) > 2.0);
}

static void sort_and_search(void)
{
    static int numbers[NUMBERS];
    for (int i = 0; i < NUMBERS; i++)
        numbers[i] = (int)draw(100000);
    int sought = numbers[NUMBERS / 2];
    qsort(numbers, NUMBERS, sizeof *numbers, compare);
    for (int i = 1; i < NUMBERS; i++)
        CHECK(numbers[i - 1] <= numbers[i]);
    for (int i = 0; i < NUMBERS; i += 10) {
        int *found = bsearch(&numbers[i], numbers, NUMBERS, sizeof *numbers, compare);
        CHECK(found && *found == numbers[i]);
    }
    CHECK(bsearch(&sought, numbers, NUMBERS, sizeof *numbers, compare));
}

static void visit(const void *node, VISIT order, int depth)
{
    (void)node;
    (void)depth;
    if (order == postorder || order == leaf)
        walked += 1 + (arithmetic(100) > 2.0);
}

static void grow_a_tree(void)
{
    static int keys[NODES];
    void *root = NULL;
    for (int i = 0; i < NODES; i++) {
        keys[i] = i * 7919 % NODES;
        CHECK(tsearch(&keys[i], &root, compare));
    }
    walked = 0;
    twalk(root, visit);
    CHECK(walked == NODES);
    for (int i = 0; i < NODES; i++)
        CHECK(tdelete(&keys[i], &root, compare));
    CHECK(root == NULL);
}

static void work(int round)
{
    (void)round;
    sort_and_search();
    grow_a_tree();
}

int main(int argc, char **argv)
{
    int rank = start(&argc, &argv, 2);
    under_traffic(argc, argv, ROUNDS, work);
    if (rank == 0)
        puts("sorted, found, walked");
    MPI_Finalize();
    return 0;
}
