#include "mark.h"

#include "../base/arena.h"
#include "../base/config.h"
#include "../base/log.h"
#include "../base/name.h"
#include "../spool/codec.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>

struct mark_name {
    uint64_t hash;
    char name[NAME_BYTES]; /* zeros behind it */
    uint32_t id;
};

static struct {
    pthread_mutex_t lock;
    struct intern_table names;
    uint64_t count;        /* marks so far */
} marks = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* 0: there are too many, or there is no room. */
static uint32_t define_name(struct thread *t, struct mark_name **place, uint64_t hash, const char name[NAME_BYTES])
{
    struct mark_name *made = marks.names.count < MARK_NAMES ? arena_alloc(sizeof *made) : NULL;
    struct spool_mark_name head = {marks.names.count + 1, (uint8_t)strlen(name)};
    if (!made || !spool_define(&t->stream, SPOOL_MARK_NAME, &head, sizeof head, name, head.name_bytes, NULL, 0))
        return 0;
    made->hash = hash;
    made->id = head.id;
    memcpy(made->name, name, NAME_BYTES);
    *place = made;
    marks.names.count++;
    return made->id;
}

static uint32_t id_of(struct thread *t, const char name[NAME_BYTES])
{
    uint64_t hash = intern_hash(name, NAME_BYTES);
    pthread_mutex_lock(&marks.lock);
    struct mark_name **place = (struct mark_name **)intern_find(&marks.names, hash, name, NAME_BYTES);
    uint32_t id = !place ? 0 : *place ? (*place)->id : define_name(t, place, hash, name);
    pthread_mutex_unlock(&marks.lock);
    return id;
}

/* In a long run the rest of the spool may be full: marks are few, and go on beyond LAPSCOPE_MAX_MB. */
static int has_room(struct thread *t)
{
    uint64_t most = (uint64_t)config.max_mb * MARKS_A_MB;
    most = most < MARKS ? most : MARKS;
    return __atomic_load_n(&marks.count, __ATOMIC_RELAXED) < most &&
           spool_stream_room(&t->stream, SPOOL_RECORD_ROOM, !t->stream.full);
}

static void drop(void)
{
    static int said;
    __atomic_fetch_add(&spool_header()->lost_marks, 1, __ATOMIC_RELAXED);
    log_once(&said, "rank %d marks more by MPI_Pcontrol than is kept, %d names and %d marks for each MB of LAPSCOPE_MAX_MB, "
             "%d at most: further ones are left out", spool_header()->rank, MARK_NAMES, MARKS_A_MB, MARKS);
}

static void put(struct thread *t, int level, const char *name)
{
    uint64_t first = spool_header()->first.ticks, begin = clock_now();
    uint32_t id = name ? id_of(t, name) : 0;
    if ((name && !id) || !has_room(t)) {
        drop();
        return;
    }
    uint64_t now = level == MARK_REGION_BEGIN ? clock_now() : begin; /* what a name costs is in no region */
    uint64_t fields[] = {now > first ? now - first : 0, spool_zigzag(level), id};
    spool_stream_commit(&t->stream, spool_put(t->stream.at, SPOOL_MARK, fields, sizeof fields / sizeof fields[0]));
    __atomic_fetch_add(&marks.count, 1, __ATOMIC_RELAXED);
}

/* From then on what is recorded may not be all that was done; more need not be known. */
static int is_first_pause(void)
{
    static int paused;
    return !__atomic_exchange_n(&paused, 1, __ATOMIC_RELAXED);
}

void mark(struct thread *t, int level, uintptr_t argument)
{
    char name[NAME_BYTES];
    int saved_errno = errno, is_region = level == MARK_REGION_BEGIN || level == MARK_REGION_END;
    if (level == MARK_STEP || (level == MARK_PAUSE && is_first_pause()))
        put(t, level, NULL);
    else if (is_region && name_at(argument, name))
        put(t, level, name);
    errno = saved_errno;
}
