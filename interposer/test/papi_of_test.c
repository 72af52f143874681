/* A PAPI with three events that can be counted, two that cannot, and values that a test sets. */
#include "papi_of_test.h"

#include <string.h>

struct papi_of_test papi_of_test;

/* The beginning of PAPI_event_info_t in PAPI 7.0. */
struct event_info {
    unsigned event_code;
    char symbol[1024], short_descr[64], long_descr[1024];
    int component_index;
    char units[64];
    int location, data_type;
};

static const struct {
    const char *name, *description, *units;
    int component, data_type;
} events[] = {{"FIRST", "the first\tevent", "", 0, 0},
              {"FLOATING", "a float", "J", 0, 2},
              {"OTHER", "of another component", "bytes", 1, 1},
              {"GREEDY", "leaves no room for others", "", 0, 0},
              {"LAST", "the last event", "", 0, 0}};

enum { EVENTS = sizeof events / sizeof events[0], MAX_SETS = 64, GREEDY = 3 };

static struct {
    int used, running, count, codes[8];
    long long begin[8];
} sets[MAX_SETS];

int PAPI_get_opt(int option, void *value);
int PAPI_library_init(int version);
int PAPI_thread_init(unsigned long (*self)(void));
int PAPI_unregister_thread(void);
int PAPI_event_name_to_code(const char *name, int *code);
int PAPI_get_event_info(int code, struct event_info *info);
int PAPI_get_event_component(int code);
int PAPI_create_eventset(int *set);
int PAPI_add_event(int set, int code);
int PAPI_start(int set);
int PAPI_read(int set, long long *values);
int PAPI_stop(int set, long long *values);
int PAPI_cleanup_eventset(int set);
int PAPI_destroy_eventset(int *set);
char *PAPI_strerror(int error);

int PAPI_get_opt(int option, void *value)
{
    return option == 21 && !value ? 0x07000300 : -1;
}

int PAPI_library_init(int version)
{
    return version == 0x07000000 ? version : -1;
}

int PAPI_thread_init(unsigned long (*self)(void))
{
    return self() ? 0 : -1;
}

int PAPI_unregister_thread(void)
{
    papi_of_test.threads_ended++;
    return 0;
}

int PAPI_event_name_to_code(const char *name, int *code)
{
    for (int i = 0; i < EVENTS; i++)
        if (!strcmp(events[i].name, name)) {
            *code = i;
            return 0;
        }
    return -7;
}

int PAPI_get_event_info(int code, struct event_info *info)
{
    info->event_code = (unsigned)code;
    strcpy(info->symbol, events[code].name);
    strcpy(info->long_descr, events[code].description);
    strcpy(info->units, events[code].units);
    info->component_index = events[code].component;
    info->data_type = events[code].data_type;
    return 0;
}

int PAPI_get_event_component(int code)
{
    return events[code].component;
}

int PAPI_create_eventset(int *set)
{
    int i = 0;
    while (i < MAX_SETS - 1 && sets[i].used)
        i++;
    memset(&sets[i], 0, sizeof sets[i]);
    sets[i].used = 1;
    *set = i;
    papi_of_test.open_sets++;
    return 0;
}

int PAPI_add_event(int set, int code)
{
    if (sets[set].count && events[code].component != events[sets[set].codes[0]].component)
        return -1;
    if (sets[set].count && code == GREEDY)
        return -8;
    sets[set].codes[sets[set].count++] = code;
    return 0;
}

int PAPI_start(int set)
{
    if (papi_of_test.refuse_start)
        return -10;
    for (int i = 0; i < sets[set].count; i++)
        sets[set].begin[i] = papi_of_test.values[sets[set].codes[i]];
    sets[set].running = 1;
    return 0;
}

int PAPI_read(int set, long long *values)
{
    if (papi_of_test.refuse_read || set < 0 || !sets[set].running)
        return -9;
    for (int i = 0; i < sets[set].count; i++)
        values[i] = papi_of_test.values[sets[set].codes[i]] - sets[set].begin[i];
    return 0;
}

int PAPI_stop(int set, long long *values)
{
    (void)values;
    if (set < 0 || !sets[set].running)
        return -9;
    sets[set].running = 0;
    return 0;
}

int PAPI_cleanup_eventset(int set)
{
    if (set < 0 || sets[set].running)
        return -1;
    sets[set].count = 0;
    return 0;
}

int PAPI_destroy_eventset(int *set)
{
    if (*set < 0 || sets[*set].count)
        return -1;
    sets[*set].used = 0;
    *set = -1;
    papi_of_test.open_sets--;
    return 0;
}

char *PAPI_strerror(int error)
{
    static char no_event[] = "Event does not exist", conflict[] = "Event cannot be counted with the others", other[] = "No";
    return error == -7 ? no_event : error == -8 ? conflict : other;
}
