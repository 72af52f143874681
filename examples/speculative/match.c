/* See match.h. */
#include "match.h"

#include <stdlib.h>
#include <string.h>

static uint64_t sent[TAGS], arrived[TAGS]; /* messages of this process; of the other one, with those that were written */
static uint64_t posted_of[TAGS];           /* posted receives of this tag */
static int posted_wildcards;

static struct request *first_posted;
static struct arrival *first_arrival;

void start_matching(void)
{
    if (first_posted || first_arrival)
        fail("requests are under way");
    memset(sent, 0, sizeof sent);
    memset(arrived, 0, sizeof arrived);
}

uint64_t next_send(int tag)
{
    return sent[tag]++;
}

uint64_t sends_made(int tag)
{
    return sent[tag];
}

/* --- posted receives ---------------------------------------------------------------------------------------------- */

static void count_posted(const struct request *receive, int change)
{
    if (receive->tag == ANY_TAG)
        posted_wildcards += change;
    else
        posted_of[receive->tag] += (uint64_t)change;
}

static void append_posted(struct request *receive)
{
    struct request **at = &first_posted;
    while (*at)
        at = &(*at)->next;
    receive->next = NULL;
    *at = receive;
    count_posted(receive, 1);
}

static void remove_posted(struct request **at)
{
    count_posted(*at, -1);
    *at = (*at)->next;
}

/* A receive that has announced itself gets the send of its number and no other. */
static int takes(const struct request *receive, const struct message *envelope)
{
    if (receive->tag == ANY_TAG)
        return 1;
    if (receive->tag != envelope->tag)
        return 0;
    return !receive->is_announced || receive->sequence == envelope->sequence;
}

struct request *receive_for(const struct message *envelope)
{
    int passed = 0;
    arrived[envelope->tag]++;
    for (struct request **at = &first_posted; *at; at = &(*at)->next) {
        struct request *receive = *at;
        if (takes(receive, envelope)) {
            remove_posted(at);
            races.overtaken += passed;
            return receive;
        }
        passed |= receive->tag == envelope->tag;
    }
    races.overtaken += passed;
    return NULL;
}

void match_written(struct request *receive)
{
    struct request **at = &first_posted;
    while (*at && *at != receive)
        at = &(*at)->next;
    if (!*at)
        fail("data were written for a receive that is not posted");
    arrived[receive->tag]++;
    remove_posted(at);
}

int wildcards_wait(void)
{
    return posted_wildcards > 0;
}

/*
 * Each posted receive of the tag gets one message, and the one that is asked about gets the next. Messages of this tag that
 * wildcards have taken count as arrived; wildcards behind it come later.
 */
uint64_t sequence_of(const struct request *receive)
{
    return arrived[receive->tag] + posted_of[receive->tag] - 1;
}

/* --- messages without a receive ----------------------------------------------------------------------------------- */

void keep_arrival(const struct message *envelope, const void *data)
{
    size_t bytes = envelope->kind == EAGER ? envelope->bytes : 0;
    struct arrival *kept = malloc(sizeof *kept + bytes);
    struct arrival **at = &first_arrival;
    if (!kept)
        fail("no memory for a message of %zu bytes", bytes);
    kept->next = NULL;
    kept->message = *envelope;
    if (bytes)
        memcpy(kept->data, data, bytes);
    while (*at)
        at = &(*at)->next;
    *at = kept;
}

struct arrival *arrival_for(struct request *receive)
{
    for (struct arrival **at = &first_arrival; *at; at = &(*at)->next) {
        struct arrival *found = *at;
        if (receive->tag == ANY_TAG || receive->tag == found->message.tag) {
            *at = found->next;
            return found;
        }
    }
    append_posted(receive);
    return NULL;
}
