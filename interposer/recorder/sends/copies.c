#include "copies.h"

#include <pthread.h>
#include <stdlib.h>

/* Classes of memory: powers of two, so that sends of changing sizes find some that is kept. */
enum { SMALLEST = 8, CLASSES = 48, ALIGNMENT = 64 };

static struct {
    pthread_mutex_t lock;
    uint64_t limit;
    uint64_t held;              /* in use and kept */
    uint64_t used, most_used;
    struct copy *kept[CLASSES];
    struct copy under_way;      /* head of a ring */
    struct copy *next;          /* where copies_reap goes on */
    unsigned count;             /* under way; atomic, for those who only look */
    int reaping;                /* some thread is at it; atomic */
} copies = {.lock = PTHREAD_MUTEX_INITIALIZER};

static uint64_t room_of(unsigned size_class)
{
    return (uint64_t)1 << size_class;
}

static unsigned class_of(uint64_t bytes)
{
    unsigned size_class = SMALLEST;
    while (size_class < CLASSES - 1 && room_of(size_class) < bytes)
        size_class++;
    return size_class;
}

static void lock(void)
{
    pthread_mutex_lock(&copies.lock);
    if (!copies.under_way.next)
        copies.under_way.next = copies.under_way.previous = copies.next = &copies.under_way;
}

static void unlock(void)
{
    pthread_mutex_unlock(&copies.lock);
}

void copies_limit(uint64_t bytes)
{
    lock();
    copies.limit = bytes;
    unlock();
}

/* --- memory ------------------------------------------------------------------------------------------------------- */

static void give_back(struct copy *copy)
{
    copies.held -= room_of(copy->size_class);
    free(copy->data);
    free(copy);
}

static struct copy *take_kept(unsigned size_class)
{
    struct copy *copy = copies.kept[size_class];
    if (copy)
        copies.kept[size_class] = copy->next;
    return copy;
}

/* What is kept of other sizes makes way, the largest first. */
static void make_room(uint64_t room)
{
    for (unsigned size_class = CLASSES; size_class-- > 0 && copies.held + room > copies.limit;)
        for (struct copy *kept; copies.held + room > copies.limit && (kept = take_kept(size_class));)
            give_back(kept);
}

static struct copy *allocate(unsigned size_class)
{
    uint64_t room = room_of(size_class);
    make_room(room);
    if (copies.held + room > copies.limit)
        return NULL;
    struct copy *copy = calloc(1, sizeof *copy);
    if (copy && posix_memalign(&copy->data, ALIGNMENT, room) != 0) {
        free(copy);
        return NULL;
    }
    if (copy) {
        copy->size_class = size_class;
        copies.held += room;
    }
    return copy;
}

struct copy *copy_take(uint64_t bytes)
{
    unsigned size_class = class_of(bytes);
    if (room_of(size_class) < bytes)
        return NULL;
    lock();
    struct copy *copy = take_kept(size_class);
    copy = copy ? copy : allocate(size_class);
    if (copy) {
        copy->bytes = bytes;
        copies.used += room_of(size_class);
        if (copies.used > copies.most_used)
            __atomic_store_n(&copies.most_used, copies.used, __ATOMIC_RELAXED);
    }
    unlock();
    return copy;
}

static void keep(struct copy *copy)
{
    copies.used -= room_of(copy->size_class);
    copy->next = copies.kept[copy->size_class];
    copies.kept[copy->size_class] = copy;
}

void copy_release(struct copy *copy)
{
    lock();
    keep(copy);
    unlock();
}

void copies_end(void)
{
    lock();
    for (unsigned size_class = 0; size_class < CLASSES; size_class++)
        for (struct copy *kept; (kept = take_kept(size_class));)
            give_back(kept);
    unlock();
}

/* --- under way ---------------------------------------------------------------------------------------------------- */

void copy_sent(struct copy *copy, uint64_t request, uint64_t comm)
{
    lock();
    copy->request = request;
    copy->comm = comm;
    copy->next = &copies.under_way;
    copy->previous = copies.under_way.previous;
    copy->previous->next = copy->next->previous = copy;
    __atomic_fetch_add(&copies.count, 1, __ATOMIC_RELAXED);
    unlock();
}

static void take_out(struct copy *copy)
{
    copy->previous->next = copy->next;
    copy->next->previous = copy->previous;
    __atomic_fetch_sub(&copies.count, 1, __ATOMIC_RELAXED);
    keep(copy);
}

/* The next one to ask for, and the one behind it; NULL at the end of the ring, from where the next round begins. */
static struct copy *step(uint64_t comm)
{
    struct copy *copy = copies.next;
    while (copy != &copies.under_way && comm && copy->comm != comm)
        copy = copy->next;
    copies.next = copy->next;
    return copy == &copies.under_way ? NULL : copy;
}

int copies_reap(unsigned most, uint64_t comm, copy_is_over_fn *is_over)
{
    unsigned rounds = 0;
    int left = 0;
    if (!copies_under_way())
        return 0;
    if (__atomic_exchange_n(&copies.reaping, 1, __ATOMIC_ACQUIRE))
        return 1;
    for (unsigned asked = 0; asked < most && rounds < 2;) {
        lock();
        struct copy *copy = step(comm);
        unlock();
        rounds += !copy;
        if (!copy)
            continue;
        asked++;
        int over = is_over(copy); /* nobody else takes it out: only who reaps does */
        lock();
        if (over)
            take_out(copy);
        unlock();
        left |= !over;
    }
    __atomic_store_n(&copies.reaping, 0, __ATOMIC_RELEASE);
    return left;
}

void copies_forget_comm(uint64_t comm)
{
    lock();
    for (struct copy *copy = copies.under_way.next; copy != &copies.under_way; copy = copy->next)
        copy->comm = copy->comm == comm ? 0 : copy->comm;
    unlock();
}

unsigned copies_under_way(void)
{
    return __atomic_load_n(&copies.count, __ATOMIC_RELAXED);
}

uint64_t copies_most_bytes(void)
{
    return __atomic_load_n(&copies.most_used, __ATOMIC_RELAXED);
}
