/* A stand-in for CUPTI, which does as it is told: cupti_of_test.h. */
#include "cupti_of_test.h"

#include "../gpu/cupti.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void hold(size_t record_count);

struct cupti_of_test cupti_of_test = {.hold = hold};
static cupti_requested *requested;
static cupti_completed *completed;
static struct {
    uint8_t *buffer;
    size_t size, bytes;
    int is_there, is_slow;
} held;

static void hold(size_t record_count)
{
    size_t most = 0;
    requested(&held.buffer, &held.size, &most);
    held.bytes = record_count * sizeof(struct cupti_record);
    memcpy(held.buffer, cupti_of_test.records, held.bytes);
    held.is_slow = 1;
    __atomic_store_n(&held.is_there, 1, __ATOMIC_SEQ_CST);
}

static void *give_held_back(void *none)
{
    completed(NULL, 0, held.buffer, held.size, held.bytes);
    return none;
}

static void let_go(void)
{
    pthread_t thread;
    if (__atomic_exchange_n(&held.is_there, 0, __ATOMIC_SEQ_CST) && pthread_create(&thread, NULL, give_held_back, NULL) == 0)
        pthread_detach(thread);
}

static int error_of(const char *variable)
{
    const char *error = getenv(variable);
    return error ? atoi(error) : 0;
}

int cuptiActivityRegisterCallbacks(cupti_requested *give, cupti_completed *take)
{
    requested = give;
    completed = take;
    return error_of("CUPTI_OF_TEST_IS_TAKEN");
}

int cuptiActivityRegisterTimestampCallback(cupti_timestamp *timestamp)
{
    return timestamp() == 0;
}

int cuptiActivityEnable(int kind)
{
    cupti_of_test.enabled |= 1u << kind;
    return error_of("CUPTI_OF_TEST_REFUSES");
}

int cuptiActivityFlushAll(uint32_t flag)
{
    __atomic_fetch_or(&cupti_of_test.was_forced, flag == CUPTI_FLUSH_FORCED, __ATOMIC_SEQ_CST);
    while (__atomic_load_n(&cupti_of_test.hangs, __ATOMIC_SEQ_CST)) {
        __atomic_store_n(&cupti_of_test.is_in_flush, 1, __ATOMIC_SEQ_CST);
        usleep(1000);
    }
    if (flag == CUPTI_FLUSH_FORCED)
        let_go();
    size_t count = __atomic_exchange_n(&cupti_of_test.record_count, 0, __ATOMIC_SEQ_CST);
    uint8_t *buffer = NULL;
    size_t size = 0, most = 0, bytes = count * sizeof(struct cupti_record);
    if (count) {
        requested(&buffer, &size, &most);
        memcpy(buffer, cupti_of_test.records, bytes);
        if (!cupti_of_test.keeps_buffer)
            completed(NULL, 0, buffer, size, bytes);
    }
    return cupti_of_test.flush_error;
}

int cuptiActivityGetNextRecord(uint8_t *buffer, size_t valid, struct cupti_record **record)
{
    struct cupti_record *first = (struct cupti_record *)(void *)buffer, *next = *record ? *record + 1 : first;
    *record = next;
    if (held.is_slow)
        usleep(3000);
    return next >= first + valid / sizeof *first;
}

int cuptiActivityGetNumDroppedRecords(void *context, uint32_t stream, size_t *dropped)
{
    (void)context, (void)stream;
    *dropped = __atomic_exchange_n(&cupti_of_test.dropped, 0, __ATOMIC_SEQ_CST);
    return 0;
}
