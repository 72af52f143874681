/*
 * Uses MPI's tools interface (MPI_T) itself, as a tuner would: started before MPI_Init ("before") or behind it ("behind"),
 * used while messages go, ended around MPI_Finalize. Rank 0 prints what it saw. Lapscope reads control variables, too, and
 * must not take the interface from the program.
 */
#include "check.h"

#include <string.h>

enum { ROUNDS = 20, BYTES = 2000, TAG = 1 };

static unsigned long sum_of_names; /* of all control variables */
static int readable;

static void start_tools(void)
{
    int provided;
    CHECK(MPI_T_init_thread(MPI_THREAD_SINGLE, &provided) == MPI_SUCCESS);
}

/* Reads every whole number among the control variables, not all of which let themselves be read; returns how many variables
 * there are. */
static int look_at_variables(void)
{
    int count = 0;
    CHECK(MPI_T_cvar_get_num(&count) == MPI_SUCCESS && count > 0);
    sum_of_names = 0;
    readable = 0;
    for (int i = 0; i < count; i++) {
        char name[256], text[8];
        int name_length = sizeof name, text_length = sizeof text, verbosity, bind, scope, elements;
        MPI_Datatype type;
        MPI_T_enum words;
        MPI_T_cvar_handle handle;
        if (MPI_T_cvar_get_info(i, name, &name_length, &verbosity, &type, &words, text, &text_length, &bind, &scope) !=
            MPI_SUCCESS)
            continue;
        for (const char *at = name; *at; at++)
            sum_of_names = sum_of_names * 31 + (unsigned char)*at;
#ifdef OPEN_MPI /* 4.1 crashes here, also alone: variables of components that were closed again */
        continue;
#endif
        if (type != MPI_INT || bind != MPI_T_BIND_NO_OBJECT || MPI_T_cvar_handle_alloc(i, NULL, &handle, &elements))
            continue;
        int values[64];
        if (elements <= 64 && MPI_T_cvar_read(handle, values) == MPI_SUCCESS)
            readable++;
        MPI_T_cvar_handle_free(&handle);
    }
    return count;
}

static void exchange(void)
{
    static char out[BYTES], in[BYTES];
    MPI_Request requests[2];
    for (int round = 0; round < ROUNDS; round++) {
        fill(out, BYTES, round);
        MPI_Irecv(in, BYTES, MPI_BYTE, 0, TAG, MPI_COMM_SELF, &requests[0]);
        MPI_Isend(out, BYTES, MPI_BYTE, 0, TAG, MPI_COMM_SELF, &requests[1]);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        CHECK(holds(in, BYTES, round));
    }
}

int main(int argc, char **argv)
{
    int is_before = argc > 1 && !strcmp(argv[1], "before");
    MPI_T_pvar_session session;
    if (is_before)
        start_tools();
    MPI_Init(&argc, &argv);
    if (!is_before)
        start_tools();
    CHECK(MPI_T_pvar_session_create(&session) == MPI_SUCCESS);
    int count = look_at_variables();
    unsigned long sum = sum_of_names;
    int readable_then = readable;
    exchange();
    CHECK(look_at_variables() == count && sum_of_names == sum);
    CHECK(MPI_T_pvar_session_free(&session) == MPI_SUCCESS);
    int is_speaker = comm_rank(MPI_COMM_WORLD) == 0;
#ifdef OPEN_MPI /* 4.1 crashes behind MPI_Finalize */
    CHECK(MPI_T_finalize() == MPI_SUCCESS);
    MPI_Finalize();
#else
    MPI_Finalize();
    CHECK(look_at_variables() == count && sum_of_names == sum);
    CHECK(MPI_T_finalize() == MPI_SUCCESS);
#endif
    if (is_speaker)
        printf("%d variables, sum %lu, %d readable\n", count, sum, readable_then);
    return 0;
}
