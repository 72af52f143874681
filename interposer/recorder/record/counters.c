#define _GNU_SOURCE
#include "counters.h"

#include "../base/arena.h"
#include "../base/log.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

/* --- PAPI, as its manual describes it (papi.h is not needed to build) --------------------------------------------- */

enum { PAPI_OK = 0, PAPI_NULL = -1, PAPI_LIB_VERSION = 21, PAPI_DATATYPE_FP64 = 2 };

/* The first part of PAPI_event_info_t in PAPI 5.4 to 7; the whole is larger. */
struct papi_event_info {
    unsigned event_code;
    char symbol[1024], short_description[64], long_description[1024];
    int component;
    char units[64];
    int location, data_type;
    char rest[32768];
};

static struct {
    int (*library_init)(int version);
    int (*get_opt)(int option, void *value);
    int (*thread_init)(unsigned long (*self)(void));
    int (*unregister_thread)(void);
    int (*event_name_to_code)(const char *name, int *code);
    int (*get_event_info)(int code, struct papi_event_info *info);
    int (*get_event_component)(int code);
    int (*create_eventset)(int *set);
    int (*add_event)(int set, int code);
    int (*start)(int set);
    int (*read)(int set, long long *values);
    int (*stop)(int set, long long *values);
    int (*cleanup_eventset)(int set);
    int (*destroy_eventset)(int *set);
    char *(*strerror)(int error);
} papi;

static const struct {
    const char *name;
    void *function;
} symbols[] = {{"PAPI_library_init", &papi.library_init},
               {"PAPI_get_opt", &papi.get_opt},
               {"PAPI_thread_init", &papi.thread_init},
               {"PAPI_unregister_thread", &papi.unregister_thread},
               {"PAPI_event_name_to_code", &papi.event_name_to_code},
               {"PAPI_get_event_info", &papi.get_event_info},
               {"PAPI_get_event_component", &papi.get_event_component},
               {"PAPI_create_eventset", &papi.create_eventset},
               {"PAPI_add_event", &papi.add_event},
               {"PAPI_start", &papi.start},
               {"PAPI_read", &papi.read},
               {"PAPI_stop", &papi.stop},
               {"PAPI_cleanup_eventset", &papi.cleanup_eventset},
               {"PAPI_destroy_eventset", &papi.destroy_eventset},
               {"PAPI_strerror", &papi.strerror}};

/* That which the application has loaded before any other: there must not be two. */
static void *open_library(void)
{
    static const char *const names[] = {"libpapi.so.7.2", "libpapi.so.7.1", "libpapi.so.7.0", "libpapi.so.7", "libpapi.so.6.0",
                                        "libpapi.so.6",   "libpapi.so.5.7", "libpapi.so"};
    static const int flags[] = {RTLD_LAZY | RTLD_LOCAL | RTLD_NOLOAD, RTLD_LAZY | RTLD_LOCAL};
    void *library = NULL;
    for (size_t i = 0; !library && i < 2 * (sizeof names / sizeof names[0]); i++)
        library = dlopen(names[i / 2], flags[i % 2]);
    return library;
}

static unsigned long this_thread(void)
{
    return (unsigned long)pthread_self();
}

/* Returns NULL, or what is wrong. */
static const char *load_papi(void)
{
    static char trouble[128];
    void *library = open_library();
    if (!library)
        return "PAPI's library libpapi.so is not found";
    for (size_t i = 0; i < sizeof symbols / sizeof symbols[0]; i++) {
        void *symbol = dlsym(library, symbols[i].name);
        if (!symbol) {
            snprintf(trouble, sizeof trouble, "PAPI's library has no %s", symbols[i].name);
            return trouble;
        }
        memcpy(symbols[i].function, &symbol, sizeof symbol);
    }
    int version = papi.get_opt(PAPI_LIB_VERSION, NULL); /* it accepts callers of its own version only */
    int error = papi.library_init(version & (int)0xffff0000);
    if (error != (version & (int)0xffff0000) || (error = papi.thread_init(this_thread)) != PAPI_OK) {
        snprintf(trouble, sizeof trouble, "PAPI does not start (%.80s)", papi.strerror(error));
        return trouble;
    }
    return NULL;
}

/* --- what was asked for ------------------------------------------------------------------------------------------- */

static struct counter asked[SPOOL_MAX_COUNTERS];
static unsigned asked_count;

/* Those that are counted. An event set is of one component of PAPI. */
static struct {
    unsigned counter;        /* which of those asked for */
    unsigned set;            /* its event set, and its place in it */
    unsigned place;
    int code;
} counted[SPOOL_MAX_COUNTERS];
static unsigned counted_count;
static int components[SPOOL_MAX_COUNTERS]; /* of the event sets */
static unsigned set_count;

static void list_events(const char *wanted)
{
    static const char blanks[] = " \t,";
    for (const char *at = wanted + strspn(wanted, blanks); *at; at += strspn(at, blanks)) {
        size_t length = strcspn(at, blanks);
        if (asked_count == SPOOL_MAX_COUNTERS) {
            log_line("LAPSCOPE_COUNTERS: only the first %d are counted", SPOOL_MAX_COUNTERS);
            return;
        }
        snprintf(asked[asked_count++].name, sizeof asked[0].name, "%.*s", (int)length, at);
        at += length;
    }
}

/* A line of text. */
static void copy_text(char *to, size_t bytes, const char *from)
{
    size_t i = 0;
    for (; i < bytes - 1 && from[i]; i++)
        to[i] = from[i] == '\t' || from[i] == '\n' ? ' ' : from[i];
    to[i] = '\0';
}

static void fail(struct counter *counter, const char *why)
{
    copy_text(counter->problem, sizeof counter->problem, why);
}

/* What PAPI says of an event, where its structure is the one we know. */
static void describe(struct counter *counter, int code)
{
    static struct papi_event_info info;
    memset(&info, 0, sizeof info);
    if (papi.get_event_info(code, &info) != PAPI_OK || info.component != papi.get_event_component(code) ||
        strncmp(info.symbol, counter->name, sizeof info.symbol) != 0)
        return;
    copy_text(counter->description, sizeof counter->description, info.long_description);
    copy_text(counter->unit, sizeof counter->unit, info.units);
    if (info.data_type == PAPI_DATATYPE_FP64)
        fail(counter, "it counts in floating point, which is not supported");
}

static unsigned set_of(int component)
{
    for (unsigned i = 0; i < set_count; i++)
        if (components[i] == component)
            return i;
    components[set_count] = component;
    return set_count++;
}

/* --- event sets --------------------------------------------------------------------------------------------------- */

struct counters {
    int sets[SPOOL_MAX_COUNTERS];
    int broken;
};

static void stop_sets(struct counters *counters)
{
    long long values[SPOOL_MAX_COUNTERS];
    for (unsigned i = 0; i < set_count; i++) {
        papi.stop(counters->sets[i], values);
        papi.cleanup_eventset(counters->sets[i]);
        papi.destroy_eventset(&counters->sets[i]);
    }
    counters->broken = 1;
}

/* Returns an error of PAPI. */
static int start_sets(struct counters *counters)
{
    int error = PAPI_OK;
    for (unsigned i = 0; i < set_count && error == PAPI_OK; i++)
        error = papi.create_eventset(&counters->sets[i]);
    for (unsigned i = 0; i < counted_count && error == PAPI_OK; i++)
        error = papi.add_event(counters->sets[counted[i].set], counted[i].code);
    for (unsigned i = 0; i < set_count && error == PAPI_OK; i++)
        error = papi.start(counters->sets[i]);
    return error;
}

static void no_sets(struct counters *counters)
{
    *counters = (struct counters){.broken = 0};
    for (unsigned i = 0; i < SPOOL_MAX_COUNTERS; i++)
        counters->sets[i] = PAPI_NULL;
}

/* Whether the event can be counted, alone and beside those before it: tried out. */
static void try_event(struct counter *counter)
{
    int code = 0, error = papi.event_name_to_code(counter->name, &code);
    if (error == PAPI_OK)
        describe(counter, code);
    if (error != PAPI_OK || *counter->problem) {
        if (error != PAPI_OK)
            fail(counter, papi.strerror(error));
        return;
    }
    unsigned sets_before = set_count, set = set_of(papi.get_event_component(code)), place = 0;
    for (unsigned i = 0; i < counted_count; i++)
        place += counted[i].set == set;
    counted[counted_count].counter = (unsigned)(counter - asked);
    counted[counted_count].set = set;
    counted[counted_count].place = place;
    counted[counted_count++].code = code;
    struct counters trial;
    no_sets(&trial);
    error = start_sets(&trial);
    stop_sets(&trial);
    if (error == PAPI_OK)
        return;
    counted_count--;
    set_count = sets_before;
    fail(counter, papi.strerror(error));
    *counter->description = *counter->unit = '\0';
}

/* --- threads ------------------------------------------------------------------------------------------------------ */

void counters_open(const char *wanted, int speak)
{
    list_events(wanted);
    const char *trouble = asked_count ? load_papi() : NULL;
    if (trouble && speak)
        log_line("LAPSCOPE_COUNTERS: %s: nothing is counted (Debian: libpapi-dev; elsewhere a module, or LD_LIBRARY_PATH)",
                 trouble);
    for (unsigned i = 0; i < asked_count; i++) {
        if (trouble)
            fail(&asked[i], trouble);
        else
            try_event(&asked[i]);
        if (!trouble && *asked[i].problem && speak)
            log_line("LAPSCOPE_COUNTERS: %s is not counted (%s); papi_avail and papi_native_avail list what can be",
                     asked[i].name, asked[i].problem);
    }
}

const struct counter *counters_asked(unsigned i)
{
    return i < asked_count ? &asked[i] : NULL;
}

unsigned counters_counted(void)
{
    return counted_count;
}

void counters_start_again(struct counters *counters)
{
    static int said;
    no_sets(counters);
    int error = start_sets(counters);
    if (error != PAPI_OK) {
        log_once(&said, "LAPSCOPE_COUNTERS: not counted on some threads (%s)", papi.strerror(error));
        stop_sets(counters);
    }
}

struct counters *counters_start(void)
{
    struct counters *counters = counted_count ? arena_alloc(sizeof *counters) : NULL;
    if (counters)
        counters_start_again(counters);
    return counters;
}

void counters_stop(struct counters *counters)
{
    stop_sets(counters); /* they hold file descriptors */
    papi.unregister_thread();
}

int counters_read(struct counters *counters, int64_t values[SPOOL_MAX_COUNTERS])
{
    static int said;
    long long of_set[SPOOL_MAX_COUNTERS][SPOOL_MAX_COUNTERS];
    int error = PAPI_OK;
    if (counters->broken)
        return 0;
    for (unsigned i = 0; i < set_count && error == PAPI_OK; i++)
        error = papi.read(counters->sets[i], of_set[i]);
    if (error != PAPI_OK) {
        log_once(&said, "LAPSCOPE_COUNTERS: no longer counted on some threads (%s)", papi.strerror(error));
        counters->broken = 1;
        return 0;
    }
    for (unsigned i = 0; i < counted_count; i++)
        values[i] = of_set[counted[i].set][counted[i].place];
    return 1;
}
