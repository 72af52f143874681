#include "node_frames.h"

#include "../base/intern.h"

#include <string.h>

uint16_t node_module_place(struct node_frames *frames, const struct node_module *module)
{
    for (unsigned i = 0; i < frames->module_count; i++) {
        const struct node_module *known = &frames->modules[i];
        if (known->path_bytes == module->path_bytes && known->build_id_bytes == module->build_id_bytes &&
            !memcmp(known->path, module->path, known->path_bytes) &&
            !memcmp(known->build_id, module->build_id, known->build_id_bytes))
            return (uint16_t)(i + 1);
    }
    if (frames->module_count == NODE_MODULES)
        return 0;
    frames->modules[frames->module_count] = *module;
    return (uint16_t)++frames->module_count;
}

static uint16_t *bucket_of(struct node_frames *frames, uint16_t caller, uint16_t module, uint64_t address)
{
    uint64_t key[] = {address, (uint64_t)caller << 16 | module};
    return &frames->buckets[intern_hash(key, sizeof key) >> 1 & (NODE_FRAME_BUCKETS - 1)];
}

uint16_t node_frame_place(struct node_frames *frames, uint16_t caller, uint16_t module, uint64_t address)
{
    uint16_t *bucket = bucket_of(frames, caller, module, address);
    for (uint16_t at = *bucket; at; at = frames->frames[at - 1].next) {
        const struct node_frame *frame = &frames->frames[at - 1];
        if (frame->address == address && frame->caller == caller && frame->module == module)
            return at;
    }
    if (frames->frame_count == NODE_FRAMES)
        return 0;
    frames->frames[frames->frame_count] = (struct node_frame){address, caller, module, *bucket, 0};
    return *bucket = (uint16_t)++frames->frame_count;
}

void node_frames_begin_numbers(struct node_frames *frames)
{
    for (unsigned i = 0; i < frames->module_count; i++)
        frames->modules[i].number = 0;
    for (unsigned i = 0; i < frames->frame_count; i++)
        frames->frames[i].number = 0;
}

void node_frame_mark(struct node_frames *frames, uint16_t frame)
{
    for (; frame && !frames->frames[frame - 1].number; frame = frames->frames[frame - 1].caller)
        frames->frames[frame - 1].number = 1;
}

/* In the order of places, so that callers stand before what they call. */
void node_frames_number(struct node_frames *frames)
{
    uint16_t number = 0;
    for (unsigned i = 0; i < frames->frame_count; i++) {
        struct node_frame *frame = &frames->frames[i];
        if (!frame->number)
            continue;
        frame->number = ++number;
        if (frame->module)
            frames->modules[frame->module - 1].number = 1;
    }
    number = 0;
    for (unsigned i = 0; i < frames->module_count; i++)
        if (frames->modules[i].number)
            frames->modules[i].number = ++number;
}

void node_frames_compact(struct node_frames *frames)
{
    unsigned count = 0;
    memset(frames->buckets, 0, sizeof frames->buckets);
    for (unsigned i = 0; i < frames->frame_count; i++) /* as long as each is at its old place */
        if (frames->frames[i].caller)
            frames->frames[i].caller = frames->frames[frames->frames[i].caller - 1].number;
    for (unsigned i = 0; i < frames->frame_count; i++) {
        struct node_frame *frame = &frames->frames[i];
        if (!frame->number)
            continue;
        uint16_t *bucket = bucket_of(frames, frame->caller, frame->module, frame->address);
        frame->next = *bucket;
        *bucket = (uint16_t)(count + 1);
        frames->frames[count++] = *frame;
    }
    frames->frame_count = count;
}
