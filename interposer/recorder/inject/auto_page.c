#define _GNU_SOURCE
#include "auto_page.h"

#include "../base/held.h"
#include "../base/log.h"
#include "../base/rundir.h"
#include "../record/callsite.h"
#include "../record/facts.h"
#include "../record/modules.h"
#include "../record/path.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { VERSION = 1, SITES_TOLD = 8, FRAMES_TOLD = 4, COMMAND_BYTES = 2048, PERCENT = 100 };

static const char *const events[PILOT_EVENTS] = {
    [PILOT_NOTHING_BESIDE] = "nothing_beside", [PILOT_EXPLORE] = "explore", [PILOT_OFF] = "off",    [PILOT_KEEP] = "keep",
    [PILOT_CHANGED] = "changed",               [PILOT_WITHOUT] = "without", [PILOT_AGAIN] = "again", [PILOT_IDLE] = "idle"};

/* --- text --------------------------------------------------------------------------------------------------------- */

struct text {
    char *begin;
    size_t used, bytes;       /* used == bytes: it does not fit */
};

static __attribute__((format(printf, 2, 3))) void put(struct text *text, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int length = vsnprintf(text->begin + text->used, text->bytes - text->used, format, args);
    va_end(args);
    size_t room = text->bytes - text->used;
    text->used += length < 0 || (size_t)length >= room ? room : (size_t)length;
}

/* A JSON string. What is no ASCII is written as Latin-1 would have it: names of files are bytes, and a reader of JSON wants
 * UTF-8. */
static void put_string(struct text *text, const char *string)
{
    put(text, "\"");
    for (const unsigned char *c = (const unsigned char *)string; *c; c++) {
        if (*c == '"' || *c == '\\')
            put(text, "\\%c", *c);
        else if (*c < ' ' || *c >= 0x7f)
            put(text, "\\u%04x", *c);
        else
            put(text, "%c", *c);
    }
    put(text, "\"");
}

static void put_gain(struct text *text, struct trial_gain gain)
{
    if (gain.rounds < 3)
        put(text, "null");
    else
        put(text, "{\"share\":%.4f,\"low\":%.4f,\"high\":%.4f,\"rounds\":%u}", gain.share, gain.low, gain.high, gain.rounds);
}

/* --- the parts of the page ---------------------------------------------------------------------------------------- */

static uint64_t run_ns(const struct auto_page *page)
{
    return (page->ended ? page->ended : page->last_post) - page->pilot.began;
}

static void put_identity(struct text *text, const struct auto_page *page)
{
    const struct spool_file_header *header = spool_header();
    char command[COMMAND_BYTES];
    facts_command(command, sizeof command);
    put(text, "{\"version\":%d,\"rank\":%d,\"ranks\":%d,\"world\":%u,\"host\":", VERSION, header->rank, header->world_size,
        header->world);
    put_string(text, header->host);
    put(text, ",\"job\":");
    put_string(text, page->job);
    put(text, ",\"command\":");
    put_string(text, command);
    put(text, ",\"began_unix\":%.3f,\"seconds\":%.3f,\"ended\":%s", (double)page->pilot.began / 1e9, (double)run_ns(page) / 1e9,
        page->ended ? "true" : "false");
}

static void put_arms(struct text *text, const struct auto_page *page)
{
    put(text, ",\"arms\":[");
    for (unsigned i = 0; i < page->pilot.arms; i++) {
        const struct auto_arm *arm = &page->arms[i];
        const struct pilot_sum *sum = &page->pilot.sums[i];
        put(text, "%s{\"mode\":\"%s\",\"interval_us\":", i ? "," : "", inject_mode_name(arm->mode));
        put(text, arm->mode == INJECT_OFF ? "null" : "%llu", (unsigned long long)arm->interval_us);
        put(text, ",\"slots\":%llu,\"steps\":%llu,\"step_ns\":", (unsigned long long)sum->slots, (unsigned long long)sum->posts);
        put(text, sum->posts ? "%.0f" : "null", sum->ns / (double)(sum->posts ? sum->posts : 1));
        put(text, ",\"problem\":");
        if (arm->problem)
            put_string(text, arm->problem);
        else
            put(text, "null");
        put(text, "}");
    }
    put(text, "]");
}

static void put_decisions(struct text *text, const struct pilot *pilot)
{
    unsigned count = pilot->decided < PILOT_DECISIONS ? pilot->decided : PILOT_DECISIONS;
    put(text, ",\"decided\":%u,\"decisions\":[", pilot->decided);
    for (unsigned i = 0; i < count; i++) {
        const struct pilot_decision *decision = &pilot->decisions[i];
        put(text, "%s{\"at\":%.3f,\"what\":\"%s\",\"arm\":%u,\"gain\":", i ? "," : "", (double)decision->at_ns / 1e9,
            events[decision->event], decision->arm);
        put_gain(text, decision->gain);
        put(text, "}");
    }
    put(text, "]");
}

/* Of all sites. */
static struct spool_injection sums_of(const struct auto_page *page)
{
    struct spool_injection sums = {0};
    for (unsigned i = 0; i < page->site_count; i++) {
        const struct spool_injection *site = page->sites[i]->sums;
        sums.tests += site->tests;
        sums.found += site->found;
        sums.interrupts += site->interrupts;
    }
    return sums;
}

static uint64_t cost_ns(const struct pilot *pilot)
{
    return pilot->spent_ns + pilot_lost_ns(pilot);
}

static unsigned arm_in_force(const struct pilot *pilot)
{
    return pilot->phase == PILOT_KEEPS || pilot->goes_on ? pilot->kept : 0;
}

static void put_sums(struct text *text, const struct auto_page *page)
{
    struct spool_injection sums = sums_of(page);
    put(text, ",\"in_force\":%u,\"gain\":", arm_in_force(&page->pilot));
    put_gain(text, pilot_gain(&page->pilot));
    put(text, ",\"spent_ns\":%llu,\"lost_ns\":%llu,\"tests\":%llu,\"found\":%llu,\"interrupts\":%llu",
        (unsigned long long)page->pilot.spent_ns, (unsigned long long)pilot_lost_ns(&page->pilot), (unsigned long long)sums.tests,
        (unsigned long long)sums.found, (unsigned long long)sums.interrupts);
}

static void put_site(struct text *text, const struct inject_site *site)
{
    uintptr_t frames[PATH_MOST_FRAMES];
    unsigned count = path_frames(site->key.path, frames);
    put(text, "{\"call\":\"%s\",\"path\":[", call_names[site->key.call]);
    for (unsigned i = 0, told = 0; i < count && told < FRAMES_TOLD; i++) {
        struct module_place place;
        char where[sizeof place.name + sizeof place.build_id + 32];
        if (!module_of(frames[i], &place))
            break;
        snprintf(where, sizeof where, "%s+0x%llx %s", place.name, (unsigned long long)place.offset,
                 *place.build_id ? place.build_id : "-");
        put(text, told++ ? "," : "");
        put_string(text, where);
    }
    put(text, "],\"bytes\":%llu,\"on\":%s,\"tests\":%llu,\"found\":%llu}", (unsigned long long)site->automatic.bytes,
        site->automatic.is_left_out ? "false" : "true", (unsigned long long)site->sums->tests,
        (unsigned long long)site->sums->found);
}

/* Those of most bytes, largest first. */
static void put_sites(struct text *text, const struct auto_page *page)
{
    unsigned char is_told[AUTO_MOST_SITES] = {0};
    put(text, ",\"sites\":[");
    for (unsigned told = 0; told < SITES_TOLD && told < page->site_count; told++) {
        unsigned most = AUTO_MOST_SITES;
        for (unsigned i = 0; i < page->site_count; i++)
            if (!is_told[i] && (most == AUTO_MOST_SITES || page->sites[i]->automatic.bytes > page->sites[most]->automatic.bytes))
                most = i;
        is_told[most] = 1;
        put(text, told ? "," : "");
        put_site(text, page->sites[most]);
    }
    put(text, "]}");
}

int auto_page_text(const struct auto_page *page, char *out, size_t bytes)
{
    struct text text = {out, 0, bytes};
    put_identity(&text, page);
    put_arms(&text, page);
    put_decisions(&text, &page->pilot);
    put_sums(&text, page);
    put_sites(&text, page);
    return text.used < text.bytes;
}

/* --- where it goes ------------------------------------------------------------------------------------------------ */

/* One write for a line: ranks of a node append to one file. */
static int append(const char *path, const char *line, size_t bytes)
{
    struct held held;
    held_begin(&held);
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, 0600);
    int error = fd < 0 ? errno : write(fd, line, bytes) == (ssize_t)bytes ? 0 : errno ? errno : ENOSPC;
    if (fd >= 0)
        close(fd);
    held_end(&held);
    return error;
}

void auto_page_write(const struct auto_page *page)
{
    static char line[AUTO_PAGE_BYTES];
    char path[RUNDIR_PATH_BYTES + 300], host[256];
    int saved_errno = errno;
    const char *run = page->run(page->pilot.decided != 0);
    if (!run || !auto_page_text(page, line, sizeof line - 1))
        return;
    size_t bytes = strlen(line);
    line[bytes++] = '\n';
    snprintf(host, sizeof host, "%s", spool_header()->host);
    for (char *c = host; *c; c++)
        *c = *c == '/' ? '-' : *c;
    snprintf(path, sizeof path, "%s/auto-%s.jsonl", run, host);
    int error = append(path, line, bytes);
    if (error && log_first_on_node())
        log_line("%s cannot be written: %s", path, strerror(error));
    errno = saved_errno;
}

/* --- on standard error -------------------------------------------------------------------------------------------- */

static void put_arm(struct text *text, const struct auto_arm *arm)
{
    put(text, "%s", inject_mode_name(arm->mode));
    if (arm->mode != INJECT_OFF)
        put(text, " every %g ms", (double)arm->interval_us / 1e3);
}

static void put_tried(struct text *text, const struct auto_page *page)
{
    unsigned tried = 0;
    for (unsigned i = 1; i < page->pilot.arms; i++)
        if (page->pilot.sums[i].slots) {
            put(text, tried++ ? ", " : "tried ");
            put_arm(text, &page->arms[i]);
        }
    put(text, tried ? "; " : "");
}

static const char *why_nothing(const struct pilot *pilot)
{
    if (!pilot->decided)
        return pilot->steps_in_phase ? "nothing was injected, the run was too short" : "nothing was injected, as there were no large "
                                                                                     "requests";
    if (pilot->phase == PILOT_EXPLORES)
        return "nothing is decided yet";
    if (pilot->trial.rounds)
        return "nothing is injected, as nothing gains";
    return pilot->decisions[0].event == PILOT_NOTHING_BESIDE ? "nothing was injected, as there is no computation beside large requests"
                                                             : "nothing is in force yet";
}

void auto_page_say(const struct auto_page *page)
{
    char line[1024];
    struct text text = {line, 0, sizeof line};
    unsigned arm = arm_in_force(&page->pilot);
    uint64_t run = run_ns(page);
    put_tried(&text, page);
    if (!arm) {
        put(&text, "%s", why_nothing(&page->pilot));
    } else {
        struct trial_gain gain = pilot_gain(&page->pilot);
        put(&text, "in force is ");
        put_arm(&text, &page->arms[arm]);
        put(&text, ": steps take %.1f %% less (%.1f to %.1f, against %u rounds without)", PERCENT * gain.share, PERCENT * gain.low,
            PERCENT * gain.high, gain.rounds);
    }
    put(&text, "; cost %.2f %% of the run", run ? PERCENT * (double)cost_ns(&page->pilot) / (double)run : 0);
    if (text.used < text.bytes)
        log_line("LAPSCOPE_INJECT=auto: %s", line);
}
