/* What LAPSCOPE_INJECT=auto leaves: a line of JSON for each rank (schema/README.md), and one on standard error. */
#ifndef LAPSCOPE_AUTO_PAGE_H
#define LAPSCOPE_AUTO_PAGE_H

#include "injector.h"
#include "pilot.h"

enum { AUTO_MOST_SITES = 256, AUTO_PAGE_BYTES = 24576 };

struct auto_arm {
    enum inject_mode mode;
    uint64_t interval_us;
    const char *problem;       /* why it cannot be had; NULL: it can */
};

struct auto_page {
    struct pilot pilot;
    struct auto_arm arms[TRIAL_ARMS];
    struct inject_site *sites[AUTO_MOST_SITES];
    unsigned site_count;
    const char *job;
    inject_run_directory *run;
    uint64_t last_post, ended; /* wall clock; 0: not yet */
};

/* Returns 0 when it does not fit. */
int auto_page_text(const struct auto_page *page, char *text, size_t bytes);

/* Appends it to auto-HOST.jsonl in the run directory, where there is one. */
void auto_page_write(const struct auto_page *page);

/* For whoever started the job. */
void auto_page_say(const struct auto_page *page);

#endif
