#define _GNU_SOURCE
#include "callsite.h"

#include "../base/arena.h"
#include "../base/config.h"
#include "../base/log.h"
#include "../base/uncancelled.h"
#include "path.h"
#include "request_memory.h"
#include "unwind.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <string.h>

enum { MAX_CHECKS = 2 * PATH_MOST_FRAMES + 1, OWN_FRAMES = 8, SITE_BYTES_OF_JOB = 160 << 10 };
_Static_assert(MAX_CHECKS < CALLSITE_SIZES * CALLSITE_SIZE_CHECKS, "a size for each site");

static int enabled, depth_limit;
static size_t most_site_bytes; /* of a thread */

struct python_room {
    struct python_lines lines;
    struct python_native native[PATH_MOST_FRAMES];
};

struct unwound {
    struct path_found path;
    uintptr_t stack[PATH_MOST_FRAMES]; /* of each frame, the lowest address of its part of the stack */
    struct callsite_check checks[MAX_CHECKS];
    unsigned check_count;
    int cacheable;
};

/* --- unwinding ---------------------------------------------------------------------------------------------------- */

#if defined(__x86_64__)
enum { HAS_RECORDS = 0 };
#elif defined(__aarch64__)
enum { HAS_RECORDS = 1 };
#endif

/* Where the return address into the cursor's frame stands. */
static const uintptr_t *return_address_at(const struct unwind_cursor *cursor)
{
#if defined(__x86_64__)
    return (const uintptr_t *)(cursor->value[STACK_POINTER] - sizeof(uintptr_t)); /* pushed by the call instruction */
#else
    return cursor->at[RETURN_ADDRESS];
#endif
}

/* Whether a word is that in which the wrapper saved the caller's frame pointer, which is compared anyway. */
static int is_in_wrapper(const uintptr_t *word, uintptr_t value, struct caller caller)
{
#if defined(__aarch64__)
    return (uintptr_t)word < caller.frame && value == caller.frame_pointer;
#else
    (void)word, (void)value, (void)caller;
    return 0; /* it stands below the return address, wherever the wrapper is called from */
#endif
}

static __attribute__((no_sanitize("address"))) void add_check(struct unwound *u, const uintptr_t *word, uintptr_t value,
                                                               struct caller caller, uintptr_t stack_end)
{
    uintptr_t at = (uintptr_t)word; /* the wrapper's own saved frame pointer is the lowest word of interest */
    if (at < caller.frame - 2 * sizeof(uintptr_t) || at >= stack_end || u->check_count == MAX_CHECKS ||
        (*word != value && unwind_plain_address(*word) != value))
        u->cacheable = 0;
    else
        u->checks[u->check_count++] = (struct callsite_check){word, *word};
}

/* Steps out of lapscope's own frames to that of the application; 0 when it cannot be found. */
static int reach_application(struct unwind_room *room, struct caller caller)
{
    const struct unwind_cursor *cursor = &room->cursor;
    for (int i = 0; i < OWN_FRAMES; i++) {
        if (unwind_step(room) <= 0)
            return 0;
        if (cursor->ip == caller.return_address && cursor->value[STACK_POINTER] == caller.frame)
            return 1;
    }
    return 0;
}

/* Whether the frame is to be kept; not beyond LAPSCOPE_CALLPATH_DEPTH. */
static int keep_frame(struct unwound *u, uintptr_t address, uintptr_t stack)
{
    if (u->path.frame_count == (unsigned)depth_limit) {
        u->path.truncated = 1;
        u->check_count -= u->check_count > 0; /* that frame is not kept */
        return 0;
    }
    u->stack[u->path.frame_count] = stack;
    u->path.frames[u->path.frame_count++] = address;
    return 1;
}

/* Where nothing is said of a function, as of what returns from signal handlers: every function that saves its return address has it
 * in a frame record, to which its frame pointer points, beside that of its caller (AAPCS64, 6.4.6). */
static __attribute__((no_sanitize("address"))) void follow_records(struct unwound *u, uintptr_t frame_pointer,
                                                                    struct caller caller, uintptr_t stack_end)
{
    enum { RECORD = 2 * sizeof(uintptr_t) };
    while (u->cacheable && frame_pointer >= caller.frame && frame_pointer % RECORD == 0 &&
           frame_pointer + RECORD <= stack_end) {
        const uintptr_t *record = (const uintptr_t *)frame_pointer;
        uintptr_t address = unwind_plain_address(record[1]);
        if (!address || (record[0] && record[0] <= frame_pointer)) /* the outermost record has no further one */
            return;
        add_check(u, record, record[0], caller, stack_end);
        add_check(u, record + 1, address, caller, stack_end);
        if (!keep_frame(u, address, frame_pointer))
            return;
        frame_pointer = record[0];
    }
}

/* What the size of the frame that was left rests on has to be what it was, for its return address to stand where it stood. */
static void check_size(struct unwound *u, const struct unwind_cursor *cursor, struct caller caller, uintptr_t stack_end)
{
    if (cursor->depend_count > UNWIND_DEPENDS) {
        u->cacheable = 0;
        return;
    }
    for (unsigned i = 0; i < cursor->depend_count; i++)
        if (!is_in_wrapper(cursor->depends[i].word, cursor->depends[i].value, caller))
            add_check(u, cursor->depends[i].word, cursor->depends[i].value, caller, stack_end);
}

static __attribute__((noinline)) void unwind(struct unwound *u, struct caller caller, struct callsite_cache *cache)
{
    struct unwind_room *room = cache->room;
    const struct unwind_cursor *cursor = &room->cursor;
    u->path.frames[0] = caller.return_address;
    u->stack[0] = caller.frame;
    u->path.frame_count = 1;
    u->path.truncated = 0;
    u->cacheable = caller.frame >= cache->stack_begin && caller.frame < cache->stack_end;
    unwind_refresh(room);
    unwind_begin(room, cache->stack_begin, cache->stack_end);
    if (!reach_application(room, caller)) {
        u->cacheable = 0;
        return;
    }
    for (;;) {
        uintptr_t frame_pointer = cursor->value[FRAME_POINTER];
        const uintptr_t *frame_pointer_at = cursor->at[FRAME_POINTER];
        if (unwind_step(room) <= 0) {
            if (HAS_RECORDS)
                follow_records(u, frame_pointer, caller, cache->stack_end);
            return;
        }
        if (cursor->came_by_signal)
            u->cacheable = 0; /* the interrupted frame's addresses stand in the signal's context */
        check_size(u, cursor, caller, cache->stack_end);
        /* where a frame record lies in its frame is the compiler's choice there: always compare */
        if (HAS_RECORDS && !is_in_wrapper(frame_pointer_at, frame_pointer, caller))
            add_check(u, frame_pointer_at, frame_pointer, caller, cache->stack_end);
        add_check(u, return_address_at(cursor), cursor->ip, caller, cache->stack_end);
        if (!keep_frame(u, cursor->ip, cursor->value[STACK_POINTER]))
            return;
    }
}

/* Puts lines of Python in place of the interpreter's own frames. */
static void mix_with_python(struct unwound *u, struct python_room *room)
{
    struct path_found *path = &u->path;
    unsigned count = path->frame_count;
    python_read_lines(&room->lines, (unsigned)depth_limit);
    if (!room->lines.count)
        return;
    for (unsigned i = 0; i < count; i++)
        room->native[i] = (struct python_native){path->frames[i], u->stack[i]};
    path->frame_count = python_mix(&room->lines, room->native, count, path->frames, (unsigned)depth_limit);
    path->truncated = room->lines.truncated || path->frame_count == (unsigned)depth_limit;
    for (path->own = 0; path->own < path->frame_count && !python_is_line(path->frames[path->own]);)
        path->own++;
    path->own++;
}

/* The object that holds a code address. */
static const void *object_of(uintptr_t code)
{
    Dl_info info;
    return dladdr((const void *)code, &info) ? info.dli_fbase : NULL;
}

/* By frame records, from that of the function at `code` on: whose frame holds the address `frame`. */
static __attribute__((no_sanitize("address"))) int record_is_own(uintptr_t frame_pointer, uintptr_t code, uintptr_t frame)
{
    while (frame_pointer && frame_pointer <= frame && frame_pointer % sizeof(uintptr_t) == 0) {
        const uintptr_t *record = (const uintptr_t *)frame_pointer;
        if (record[0] > frame)
            return object_of(code) == object_of((uintptr_t)callsite_passes);
        if (record[0] <= frame_pointer)
            return 0;
        code = unwind_plain_address(record[1]);
        frame_pointer = record[0];
    }
    return 0;
}

static int passes(uintptr_t frame)
{
    static struct unwind_room room; /* under passes_lock */
    const struct unwind_cursor *cursor = &room.cursor;
    unwind_refresh(&room);
    unwind_begin(&room, 0, 0); /* of the stack nothing is known: the kernel copies it */
    for (;;) {
        uintptr_t ip = cursor->ip, begin = cursor->value[STACK_POINTER], frame_pointer = cursor->value[FRAME_POINTER];
        int more = unwind_step(&room);
        if (more <= 0 && HAS_RECORDS)
            return record_is_own(frame_pointer, ip, frame);
        if (more < 0)
            return 1; /* not known: the wrapper may well be there */
        if (more == 0 || begin > frame)
            return 0;
        if (frame < cursor->value[STACK_POINTER]) /* the frame of the function at ip */
            return object_of(ip) == object_of((uintptr_t)callsite_passes);
    }
}

int callsite_passes(uintptr_t frame)
{
    static pthread_mutex_t passes_lock = PTHREAD_MUTEX_INITIALIZER;
    int cancel_state = uncancelled_begin();
    pthread_mutex_lock(&passes_lock);
    int result = passes(frame);
    pthread_mutex_unlock(&passes_lock);
    uncancelled_end(cancel_state);
    return result;
}

/* --- whose an address is ------------------------------------------------------------------------------------------ */

int callsite_is_in_libc(uintptr_t address)
{
    static const void *libc;
    const void *object = object_of(address);
    if (!libc)
        libc = object_of((uintptr_t)dlsym(RTLD_DEFAULT, "gnu_get_libc_version"));
    return object && object == libc;
}

int callsite_is_in_mpi(uintptr_t address)
{
    static const char *const names[] = {"libmpi", "libopen-pal", "libopen-rte", "libpmix", "libucp", "libuct", "libucs",
                                        "libfabric", "mca_"};
    Dl_info info;
    if (!dladdr((const void *)address, &info) || !info.dli_fname)
        return 0;
    const char *slash = strrchr(info.dli_fname, '/'), *name = slash ? slash + 1 : info.dli_fname;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strncmp(name, names[i], strlen(names[i])) == 0)
            return 1;
    return 0;
}

int callsite_is_in_loader(uintptr_t address)
{
    static const void *loader;
    const void *object = object_of(address);
    if (!loader)
        loader = object_of((uintptr_t)dlsym(RTLD_DEFAULT, "_r_debug"));
    return object && (object == loader || object == object_of((uintptr_t)callsite_is_in_loader));
}

/* --- the cache ---------------------------------------------------------------------------------------------------- */

void callsite_configure(void)
{
    enabled = config.callpath;
    depth_limit = (int)config.callpath_depth;
    most_site_bytes = config.record == CONFIG_RECORD_JOB ? SITE_BYTES_OF_JOB : SIZE_MAX;
    path_configure();
    python_configure();
}

static struct endless_place *endless_place(struct callsite_cache *cache, uint64_t at)
{
    return &cache->endless[at * 0x9e3779b97f4a7c15u >> 58];
}

/* The thread's own stack. Calls from others (coroutines) are unwound each time: a later one at the same address may be
 * smaller than what was remembered of it. */
static void find_own_stack(struct callsite_cache *cache)
{
    pthread_attr_t attributes;
    void *stack = NULL;
    size_t bytes = 0;
    if (pthread_getattr_np(pthread_self(), &attributes) != 0)
        return;
    pthread_attr_getstack(&attributes, &stack, &bytes);
    pthread_attr_destroy(&attributes);
    cache->stack_begin = (uintptr_t)stack;
    cache->stack_end = (uintptr_t)stack + bytes;
}

struct callsite_cache *callsite_cache_create(void)
{
    struct callsite_cache *cache = arena_alloc(sizeof *cache);
    if (!cache || !(cache->fixed = arena_alloc(sizeof *cache->fixed)) || !(cache->unwound = arena_alloc(sizeof *cache->unwound)) ||
        !(cache->room = arena_alloc(sizeof *cache->room)))
        return NULL;
    find_own_stack(cache);
    return cache;
}

/* It rests for a while before it becomes another: calls from inside whose call one is may still be under way. */
static void retire(struct callsite_cache *cache, struct callsite *site)
{
    struct retired_callsites *retired = &cache->retired[site->size];
    site->next_retired = NULL;
    if (retired->last)
        retired->last->next_retired = site;
    else
        retired->first = site;
    retired->last = site;
    retired->count++;
}

enum { RESTING = 64 };

/* One that has rested, with room for at least so many checks; NULL: there is none. */
static struct callsite *rested_site(struct callsite_cache *cache, unsigned size)
{
    while (size < CALLSITE_SIZES && cache->retired[size].count <= RESTING)
        size++;
    if (size == CALLSITE_SIZES)
        return NULL;
    struct retired_callsites *retired = &cache->retired[size];
    struct callsite *site = retired->first;
    retired->first = site->next_retired;
    retired->count--;
    memset(site, 0, sizeof *site);
    site->size = size;
    return site;
}

/* What was used longest ago of some buckets. */
static void retire_some(struct callsite_cache *cache)
{
    enum { SOME = 32 };
    for (unsigned retired = 0, looked = 0; retired < SOME && looked < CALLSITE_BUCKETS; looked++) {
        struct callsite **ways = cache->bucket[cache->hand++ % CALLSITE_BUCKETS];
        int way = CALLSITE_WAYS - 1;
        while (way >= 0 && !ways[way])
            way--;
        if (way < 0)
            continue;
        retire(cache, ways[way]);
        ways[way] = NULL;
        retired++;
    }
}

/* Room for so many checks; NULL: there is no memory. */
static struct callsite *make_site(struct callsite_cache *cache, unsigned checks)
{
    unsigned size = checks / CALLSITE_SIZE_CHECKS;
    struct callsite *site = rested_site(cache, size);
    size_t bytes = sizeof *site + (size + 1) * CALLSITE_SIZE_CHECKS * sizeof site->check[0];
    if (!site && cache->site_bytes + bytes > most_site_bytes) {
        retire_some(cache);
        return rested_site(cache, size);
    }
    if (site || !(site = arena_alloc(bytes)))
        return site;
    cache->site_bytes += bytes;
    site->size = size;
    return site;
}

/* Sites whose paths have gone match no call any more: who calls from there again gets path and site anew. They go to the end of their
 * buckets and are retired later, one by one: of all at once some would soon be others, while their calls are still under way. */
static void forget_gone_paths(struct callsite_cache *cache)
{
    cache->paths_gone = paths_gone();
    for (int bucket = 0; bucket < CALLSITE_BUCKETS; bucket++) {
        struct callsite **ways = cache->bucket[bucket], *gone[CALLSITE_WAYS];
        int kept = 0, gone_count = 0;
        for (int way = 0; way < CALLSITE_WAYS && ways[way]; way++) {
            if (!ways[way]->path || path_is_there(ways[way]->path))
                ways[kept++] = ways[way];
            else
                gone[gone_count++] = ways[way];
        }
        for (int i = 0; i < gone_count; i++) {
            gone[i]->caller = (struct caller){0};
            ways[kept + i] = gone[i];
        }
    }
}

void callsite_heed_gone_paths(struct callsite_cache *cache)
{
    if (UNLIKELY(cache->paths_gone != paths_gone()))
        forget_gone_paths(cache);
}

void callsite_cache_take_over(struct callsite_cache *cache)
{
    uintptr_t begin = cache->stack_begin, end = cache->stack_end;
    find_own_stack(cache);
    if (cache->stack_begin == begin && cache->stack_end == end)
        return;
    for (int bucket = 0; bucket < CALLSITE_BUCKETS; bucket++) /* sites are known by words of the stack, which may be gone */
        for (int way = 0; way < CALLSITE_WAYS && cache->bucket[bucket][way]; way++) {
            retire(cache, cache->bucket[bucket][way]);
            cache->bucket[bucket][way] = NULL;
        }
}

/* Puts `site` in front of its bucket; returns what falls out behind. */
static struct callsite *move_to_front(struct callsite **ways, struct callsite *site)
{
    struct callsite *displaced = site;
    for (int way = 0; way < CALLSITE_WAYS; way++) {
        struct callsite *here = ways[way];
        ways[way] = displaced;
        if (here == site || !here)
            return NULL;
        displaced = here;
    }
    return displaced;
}

static struct callsite *remember(struct callsite_cache *cache, const struct unwound *u, struct caller caller, uint64_t python,
                                 uint32_t path, unsigned bucket)
{
    unsigned checks = (u->check_count + CHECKS_AT_ONCE - 1) / CHECKS_AT_ONCE * CHECKS_AT_ONCE;
    struct callsite *site = make_site(cache, checks);
    if (!site)
        return NULL;
    site->caller = caller;
    site->python = python;
    site->path = path;
    site->checks = checks;
    for (unsigned i = 0; i < checks; i++)
        site->check[i] = u->checks[i < u->check_count ? i : u->check_count - 1];
    struct callsite *displaced = move_to_front(cache->bucket[bucket], site);
    if (displaced)
        retire(cache, displaced);
    return site;
}

static struct callsite *fixed_site(struct callsite_cache *cache, uint32_t path)
{
    struct callsite *site = cache->fixed;
    memset(site, 0, sizeof *site);
    site->path = path;
    return site;
}

/* A place whose paths were cut so often in a row that it is looked at now and then alone; NULL: it is not one. */
static struct callsite *endless_site(struct callsite_cache *cache, uint64_t at)
{
    enum { OFTEN = 64, AGAIN = 64 };
    struct endless_place *place = endless_place(cache, at);
    if (LIKELY(place->cut < OFTEN) || place->at != at || ++place->cut % AGAIN == 0)
        return NULL;
    __atomic_fetch_add(&spool_header()->cut_paths, 1, __ATOMIC_RELAXED);
    return fixed_site(cache, place->path);
}

static void note_cut(struct callsite_cache *cache, uint64_t at, uint32_t path, int is_cut)
{
    static int said;
    struct endless_place *place = endless_place(cache, at);
    if (LIKELY(!is_cut)) {
        if (place->at == at)
            place->cut = 0;
        return;
    }
    if (config.record != CONFIG_RECORD_JOB) /* whose user has asked for nothing */
        log_once(&said, "call paths vary without end: from %llu MB of them on (LAPSCOPE_CALLPATH_MB) new ones are their innermost frame alone",
             (unsigned long long)config.callpath_mb);
    __atomic_fetch_add(&spool_header()->cut_paths, 1, __ATOMIC_RELAXED);
    if (place->at != at)
        *place = (struct endless_place){.at = at, .path = path};
    place->cut++;
}

struct callsite *callsite_miss(struct thread *t, struct caller caller, struct python_identity python, unsigned bucket)
{
    struct callsite_cache *cache = t->callsites;
    struct callsite **ways = cache->bucket[bucket];
    for (int way = 1; way < CALLSITE_WAYS && ways[way]; way++)
        if (callsite_matches(ways[way], caller, python.all)) {
            struct callsite *site = ways[way];
            move_to_front(ways, site);
            return site;
        }
    uint64_t at = caller.return_address ^ python.innermost;
    struct callsite *endless = endless_site(cache, at);
    if (UNLIKELY(endless != NULL))
        return endless;
    int saved_errno = errno, cancel_state = uncancelled_begin();
    struct unwound *u = cache->unwound;
    u->cacheable = 1;
    u->check_count = 0;
    uint32_t path = 0;
    cache->misses++;
    request_memory_look(t); /* where nothing was posted from before, it may be of a GPU whose driver has just come */
    python_look();
    if (!python.all && python_is_on) /* since now */
        python = python_identity();
    if (enabled) {
        unwind(u, caller, cache);
        u->path.own = 1;
        if (python.all && (cache->python_room || (cache->python_room = arena_alloc(sizeof *cache->python_room))))
            mix_with_python(u, cache->python_room);
        path = path_intern(t, &u->path);
        u->cacheable &= !u->path.is_cut; /* each such call is counted */
        note_cut(cache, at, path, u->path.is_cut);
    }
    spool_refresh_clock();
    struct callsite *site = u->cacheable ? remember(cache, u, caller, python.all, path, bucket) : NULL;
    callsite_heed_gone_paths(cache); /* this one's, too, may have gone since it was found */
    site = site ? site : fixed_site(cache, path);
    uncancelled_end(cancel_state);
    errno = saved_errno;
    return site;
}
