#include "thread.h"

#include "../base/arena.h"

#define HIDDEN __attribute__((visibility("hidden")))

enum { SMALLEST_SCRATCH = 4096 };

enum recorder_state recorder_state HIDDEN = RECORDER_OFF;
int stamps_are_plain HIDDEN;
uint64_t large_posts HIDDEN = UINT64_MAX;
int recorder_multiple HIDDEN;
struct thread *threads[MAX_THREADS] HIDDEN;
unsigned thread_count HIDDEN;
struct thread_hooks thread_hooks HIDDEN;
struct reach_hooks reach_hooks HIDDEN;
struct profile_hooks profile_hooks HIDDEN;
__thread struct thread *current_thread HIDDEN;

void *thread_scratch(struct thread *t, uint64_t bytes)
{
    if (UNLIKELY(bytes > t->scratch_bytes)) {
        uint64_t wanted = t->scratch_bytes ? t->scratch_bytes : SMALLEST_SCRATCH;
        while (wanted < bytes)
            wanted *= 2;
        void *fresh = arena_alloc(wanted); /* doubling: what is left behind is never more than what is in use */
        if (!fresh)
            return NULL;
        t->scratch = fresh;
        t->scratch_bytes = wanted;
    }
    return t->scratch;
}
