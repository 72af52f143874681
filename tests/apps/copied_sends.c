/*
 * A receiver that comes late, and a sender that writes into its buffer again as soon as its send is complete.
 *
 *   copied_sends BYTES DELAY_MS MESSAGES FORM
 *
 * FORM: isend (MPI_Isend, MPI_Wait), send (MPI_Send), column (MPI_Isend of every second element), pair (two of MPI_Isend one after
 * the other, MPI_Waitall), early (as isend, and the receiver is there before), away (as isend, and the sender then computes for twice
 * the delay). Rank 0 prints, of the messages' medians in nanoseconds, how long the sends were waited for, with away the receives, and
 * how late the receiver came.
 */
#include "work.h"

enum { DATA, TOLD };

static double *value;
static MPI_Datatype type;
static int is_blocking, is_early, is_pair, is_away, stride = 1, elements;

static void pause_for(int64_t ns)
{
    nanosleep(&(struct timespec){.tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000}, NULL);
}

SITE void send_data(int message)
{
    for (int i = 0; i < elements; i++)
        value[(size_t)i * (size_t)stride] = message + i;
    MPI_Request request, pair[2];
    if (is_pair) {
        for (int i = 0; i < 2; i++)
            MPI_Isend(value, 1, type, 1, DATA, MPI_COMM_WORLD, &pair[i]);
        MPI_Waitall(2, pair, MPI_STATUSES_IGNORE);
    } else if (is_blocking) {
        MPI_Send(value, 1, type, 1, DATA, MPI_COMM_WORLD);
    } else {
        MPI_Isend(value, 1, type, 1, DATA, MPI_COMM_WORLD, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    for (int i = 0; i < elements * stride; i++)
        value[i] = -1;
}

SITE void receive_data(int message)
{
    MPI_Status status;
    int count;
    if (is_pair)
        MPI_Recv(value, elements, MPI_DOUBLE, 0, DATA, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Recv(value, elements, MPI_DOUBLE, 0, DATA, MPI_COMM_WORLD, &status);
    MPI_Get_count(&status, MPI_DOUBLE, &count);
    CHECK(count == elements && status.MPI_SOURCE == 0 && status.MPI_TAG == DATA);
    for (int i = 0; i < elements; i++)
        CHECK(value[i] == message + i);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    CHECK(argc == 5 && comm_size(MPI_COMM_WORLD) == 2);
    int messages = atoi(argv[3]), sends = comm_rank(MPI_COMM_WORLD) == 0;
    int64_t delay = (int64_t)(atof(argv[2]) * 1e6), waited[100], late[100];
    CHECK(messages <= 100);
    elements = atoi(argv[1]) / (int)sizeof(double);
    is_blocking = strcmp(argv[4], "send") == 0;
    is_pair = strcmp(argv[4], "pair") == 0;
    is_early = strcmp(argv[4], "early") == 0;
    is_away = strcmp(argv[4], "away") == 0;
    stride = strcmp(argv[4], "column") == 0 ? 2 : 1;
    MPI_Type_vector(elements, 1, stride, MPI_DOUBLE, &type);
    MPI_Type_commit(&type);
    value = (double *)make_buffer((size_t)(elements * stride) * sizeof(double));
    if (is_away)
        calibrate_work();
    for (int i = 0; i < messages; i++) {
        int64_t begin, told[2]; /* of the receiver: late by, waited */
        MPI_Barrier(MPI_COMM_WORLD);
        if (sends) {
            if (is_early)
                pause_for(delay);
            begin = now_ns();
            send_data(i);
            waited[i] = now_ns() - begin;
            if (is_away)
                compute(2 * delay);
            MPI_Recv(told, 2, MPI_INT64_T, 1, TOLD, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            late[i] = told[0];
            waited[i] = is_away ? told[1] : waited[i];
        } else {
            begin = now_ns();
            if (!is_early)
                pause_for(delay); /* outside of MPI, with the processor free */
            told[0] = now_ns() - begin;
            begin = now_ns();
            receive_data(i);
            told[1] = now_ns() - begin;
            MPI_Send(told, 2, MPI_INT64_T, 0, TOLD, MPI_COMM_WORLD);
        }
    }
    if (sends)
        printf("waited %lld late %lld\n", (long long)median(waited, messages), (long long)median(late, messages));
    MPI_Type_free(&type);
    MPI_Finalize();
    free(value);
    return 0;
}
