/* The call paths of all ranks of a node, as one tree: frames that are the same on several of them are one. */
#ifndef LAPSCOPE_NODE_FRAMES_H
#define LAPSCOPE_NODE_FRAMES_H

#include <stdint.h>

enum { NODE_MODULES = 1024, NODE_FRAMES = 8192, NODE_FRAME_BUCKETS = 4096 };

struct node_module {         /* in the memory of a rank, which stays mapped as long as these are in use */
    const unsigned char *path, *build_id;
    uint16_t path_bytes, build_id_bytes;
    uint32_t number;         /* in the record; 0: no frame that is kept lies in it */
};

struct node_frame {
    uint64_t address;
    uint16_t caller, module; /* place plus 1; 0: none. Callers stand before what they call */
    uint16_t next;           /* of its bucket, plus 1 */
    uint16_t number;         /* in the record; 0: no site that is kept has it */
};

struct node_frames {
    struct node_module modules[NODE_MODULES];
    struct node_frame frames[NODE_FRAMES];
    uint16_t buckets[NODE_FRAME_BUCKETS];
    unsigned module_count, frame_count;
};

/* The place of a module like that, plus 1; 0: there is no room. */
uint16_t node_module_place(struct node_frames *frames, const struct node_module *module);

/* The place of a frame, plus 1; 0: there is no room. */
uint16_t node_frame_place(struct node_frames *frames, uint16_t caller, uint16_t module, uint64_t address);

/* Gives numbers to a frame (place plus 1) and those around it, and to their modules, until they are begun anew. */
void node_frames_begin_numbers(struct node_frames *frames);
void node_frame_mark(struct node_frames *frames, uint16_t frame);
void node_frames_number(struct node_frames *frames);

/* Leaves the numbered frames, each at the place that its number says. */
void node_frames_compact(struct node_frames *frames);

#endif
