#define _GNU_SOURCE
#include "frame_info.h"

#include "frame_bytes.h"

#include <link.h>
#include <stddef.h>
#include <string.h>

/* --- pointers ------------------------------------------------------------------------------------------------------ */

/* A pointer as DW_EH_PE_... says (LSB 5.0, 10.5.1), but for those to a pointer. `base`: what `datarel` counts from. */
static uintptr_t take_pointer(struct bytes *bytes, unsigned encoding, uintptr_t base)
{
    enum { OMITTED = 0xff, PC_RELATIVE = 0x10, DATA_RELATIVE = 0x30 };
    uintptr_t here = (uintptr_t)bytes->at, value = 0;
    if (encoding == OMITTED)
        return 0;
    switch (encoding & 0x0f) {
    case 0x0: case 0x4: case 0xc: value = take(bytes, 8); break;
    case 0x1: value = take_unsigned_leb(bytes); break;
    case 0x2: value = take(bytes, 2); break;
    case 0x3: value = take(bytes, 4); break;
    case 0x9: value = (uintptr_t)take_signed_leb(bytes); break;
    case 0xa: value = (uintptr_t)take_signed(bytes, 2); break;
    case 0xb: value = (uintptr_t)take_signed(bytes, 4); break;
    default: bytes->bad = 1;
    }
    switch (encoding & 0xf0) {
    case 0: break;
    case PC_RELATIVE: value += here; break;
    case DATA_RELATIVE: value += base; break;
    default: bytes->bad = 1;
    }
    return value;
}

/* --- objects ------------------------------------------------------------------------------------------------------ */

struct object {
    uintptr_t code, begin, end; /* what is asked for; what is mapped of the object, from the lowest to the highest address */
    const unsigned char *table; /* .eh_frame_hdr; NULL: it has none */
};

/* Whether so many bytes lie in the object, as everything does that its description speaks of unless a tool has damaged it. */
static int lies_in(const struct object *object, const void *at, size_t bytes)
{
    return (uintptr_t)at >= object->begin && (uintptr_t)at < object->end && object->end - (uintptr_t)at >= bytes;
}

static int holds(struct dl_phdr_info *info, size_t bytes, void *data)
{
    struct object *object = data;
    const ElfW(Phdr) *table = NULL;
    int found = 0;
    (void)bytes;
    object->begin = UINTPTR_MAX;
    object->end = 0;
    for (unsigned i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        uintptr_t begin = info->dlpi_addr + part->p_vaddr, end = begin + part->p_memsz;
        if (part->p_type == PT_GNU_EH_FRAME)
            table = part;
        if (part->p_type != PT_LOAD)
            continue;
        found |= object->code - begin < part->p_memsz;
        object->begin = begin < object->begin ? begin : object->begin;
        object->end = end > object->end ? end : object->end;
    }
    if (found && table)
        object->table = (const unsigned char *)(info->dlpi_addr + table->p_vaddr);
    return found;
}

static int count_unloads(struct dl_phdr_info *info, size_t bytes, void *data)
{
    if (bytes >= offsetof(struct dl_phdr_info, dlpi_subs) + sizeof info->dlpi_subs)
        *(unsigned long long *)data = info->dlpi_subs;
    return 1;
}

unsigned long long frame_info_unloads(void)
{
    unsigned long long unloads = 0;
    dl_iterate_phdr(count_unloads, &unloads);
    return unloads;
}

/* The description of the function that begins last before the code, by the sorted table; NULL: there is none. */
static const unsigned char *search(const struct object *object)
{
    enum { SORTED = 0x3b /* datarel, sdata4 */, LONGEST_HEAD = 32 };
    const unsigned char *table = object->table;
    uintptr_t code = object->code;
    struct entry {
        int32_t begin, description; /* from the table's begin on */
    } entry;
    uintptr_t base = (uintptr_t)table;
    struct bytes head = {table + 4, table + LONGEST_HEAD, 0};
    if (!table || !lies_in(object, table, LONGEST_HEAD) || table[0] != 1 || table[3] != SORTED)
        return NULL;
    take_pointer(&head, table[1], base); /* .eh_frame */
    uint64_t low = 0, high = take_pointer(&head, table[2], base);
    if (head.bad || high > UINT32_MAX || !lies_in(object, head.at, high * sizeof entry))
        return NULL;
    while (low < high) { /* the first that begins behind the code */
        uint64_t middle = low + (high - low) / 2;
        memcpy(&entry, head.at + middle * sizeof entry, sizeof entry);
        if (base + (uintptr_t)(intptr_t)entry.begin <= code)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == 0)
        return NULL;
    memcpy(&entry, head.at + (low - 1) * sizeof entry, sizeof entry);
    return (const unsigned char *)(base + (uintptr_t)(intptr_t)entry.description);
}

/* --- what is said of a function ----------------------------------------------------------------------------------- */

/* What functions have in common: a CIE. */
struct common {
    struct bytes program;
    uint64_t code_factor;
    int64_t data_factor;
    unsigned encoding;
    int has_augmentation, is_signal;
};

/* The piece that begins with its length; `id` is where the word behind the length stands. */
static struct bytes piece(const struct object *object, const unsigned char *at, const unsigned char **id)
{
    struct bytes none = {at, at, 1};
    uint32_t length;
    if (!lies_in(object, at, 2 * sizeof length))
        return none;
    memcpy(&length, at, sizeof length);
    *id = at + sizeof length;
    if (length < sizeof length || !lies_in(object, *id, length)) /* also what is longer than 32 bits say */
        return none;
    return (struct bytes){*id + sizeof length, *id + length, 0};
}

static int read_common(const struct object *object, const unsigned char *at, struct common *common)
{
    const unsigned char *id;
    struct bytes bytes = piece(object, at, &id);
    uint64_t version = take(&bytes, 1);
    const char *augmentation = (const char *)bytes.at;
    while (!bytes.bad && take(&bytes, 1))
        ;
    *common = (struct common){.code_factor = take_unsigned_leb(&bytes)};
    common->data_factor = take_signed_leb(&bytes);
    uint64_t return_register = version == 1 ? take(&bytes, 1) : take_unsigned_leb(&bytes);
    if (bytes.bad || (version != 1 && version != 3) || return_register != RETURN_ADDRESS)
        return 0;
    common->has_augmentation = *augmentation == 'z';
    if (!common->has_augmentation) {
        common->program = bytes;
        return !*augmentation;
    }
    uint64_t length = take_unsigned_leb(&bytes);
    common->program = (struct bytes){bytes.at + length, bytes.end, bytes.bad || length > (size_t)(bytes.end - bytes.at)};
    for (const char *letter = augmentation + 1; *letter; letter++)
        switch (*letter) {
        case 'R': common->encoding = (unsigned)take(&bytes, 1); break;
        case 'L': take(&bytes, 1); break;
        case 'P': {
            unsigned encoding = (unsigned)take(&bytes, 1);
            take_pointer(&bytes, encoding & 0x7f, 0);
            break;
        }
        case 'S': common->is_signal = 1; break;
        case 'B': break; /* return addresses are signed with another key */
        default: return 0;
        }
    return !bytes.bad && !common->program.bad;
}

/* --- the program that says it, place by place (DWARF 5, 6.4.2) ---------------------------------------------------- */

struct machine {
    struct frame_rules *rules;
    const struct common *common;
    struct frame_info_room *room;
    unsigned depth;  /* of remembered states */
    uintptr_t at;
};

static struct frame_rule plain(enum frame_rule_kind kind, int64_t offset)
{
    return (struct frame_rule){kind, {.offset = offset}};
}

static void set_rule(struct machine *m, uint64_t number, struct frame_rule rule)
{
    if (number < FRAME_REGISTERS) /* of vector registers nobody asks */
        m->rules->of[number] = rule;
}

static void set_cfa(struct machine *m, uint64_t number, int64_t offset)
{
    m->rules->cfa = plain(FRAME_IN_REGISTER, offset);
    m->rules->cfa_register = (unsigned)number;
}

static struct frame_rule take_expression(struct bytes *bytes, enum frame_rule_kind kind)
{
    struct frame_rule rule = {kind, {.expression = bytes->at}};
    uint64_t length = take_unsigned_leb(bytes);
    if (length > (size_t)(bytes->end - bytes->at))
        bytes->bad = 1;
    else
        bytes->at += length;
    return rule;
}

static void restore(struct machine *m, uint64_t number)
{
    if (number < FRAME_REGISTERS)
        m->rules->of[number] = m->room->initial.of[number];
}

static void take_cfa(struct machine *m, struct bytes *bytes, unsigned operation)
{
    int64_t factor = m->common->data_factor;
    uint64_t number = m->rules->cfa_register;
    switch (operation) {
    case 0x0c: /* DW_CFA_def_cfa */
        number = take_unsigned_leb(bytes);
        set_cfa(m, number, (int64_t)take_unsigned_leb(bytes));
        break;
    case 0x0d: set_cfa(m, take_unsigned_leb(bytes), m->rules->cfa.offset); break; /* ..._register */
    case 0x0e: set_cfa(m, number, (int64_t)take_unsigned_leb(bytes)); break;      /* ..._offset */
    case 0x0f: m->rules->cfa = take_expression(bytes, FRAME_IS_EXPRESSION); break;
    case 0x12: /* DW_CFA_def_cfa_sf */
        number = take_unsigned_leb(bytes);
        set_cfa(m, number, take_signed_leb(bytes) * factor);
        break;
    default: set_cfa(m, number, take_signed_leb(bytes) * factor); /* 0x13: DW_CFA_def_cfa_offset_sf */
    }
}

static void take_rule(struct machine *m, struct bytes *bytes, unsigned operation)
{
    int64_t factor = m->common->data_factor;
    uint64_t number = take_unsigned_leb(bytes);
    switch (operation) {
    case 0x05: set_rule(m, number, plain(FRAME_SAVED, (int64_t)take_unsigned_leb(bytes) * factor)); break;
    case 0x06: restore(m, number); break;
    case 0x07: set_rule(m, number, plain(FRAME_UNDEFINED, 0)); break;
    case 0x08: set_rule(m, number, plain(FRAME_SAME, 0)); break;
    case 0x09: set_rule(m, number, plain(FRAME_IN_REGISTER, (int64_t)take_unsigned_leb(bytes))); break;
    case 0x10: set_rule(m, number, take_expression(bytes, FRAME_SAVED_EXPRESSION)); break;
    case 0x11: set_rule(m, number, plain(FRAME_SAVED, take_signed_leb(bytes) * factor)); break;
    case 0x14: set_rule(m, number, plain(FRAME_IS_OFFSET, (int64_t)take_unsigned_leb(bytes) * factor)); break;
    case 0x15: set_rule(m, number, plain(FRAME_IS_OFFSET, take_signed_leb(bytes) * factor)); break;
    case 0x16: set_rule(m, number, take_expression(bytes, FRAME_IS_EXPRESSION)); break;
    default: /* 0x2f: DW_CFA_GNU_negative_offset_extended */
        set_rule(m, number, plain(FRAME_SAVED, -(int64_t)take_unsigned_leb(bytes) * factor));
    }
}

static void take_state(struct machine *m, struct bytes *bytes, unsigned operation)
{
    enum { MOST_REMEMBERED = sizeof m->room->remembered / sizeof m->room->remembered[0] };
    int is_saving = operation == 0x0a; /* DW_CFA_remember_state */
    if (is_saving ? m->depth == MOST_REMEMBERED : m->depth == 0)
        bytes->bad = 1;
    else if (is_saving)
        m->room->remembered[m->depth++] = *m->rules;
    else
        *m->rules = m->room->remembered[--m->depth];
}

/* One operation; what it does not know makes the program bad. */
static void take_operation(struct machine *m, struct bytes *bytes)
{
    unsigned byte = (unsigned)take(bytes, 1), low = byte & 0x3f;
    uint64_t factor = m->common->code_factor;
    switch (byte & 0xc0) {
    case 0x40: m->at += low * factor; return; /* DW_CFA_advance_loc */
    case 0x80: set_rule(m, low, plain(FRAME_SAVED, (int64_t)take_unsigned_leb(bytes) * m->common->data_factor)); return;
    case 0xc0: restore(m, low); return;
    }
    switch (low) {
    case 0x00: break;
    case 0x01: m->at = take_pointer(bytes, m->common->encoding, 0); break;
    case 0x02: m->at += take(bytes, 1) * factor; break;
    case 0x03: m->at += take(bytes, 2) * factor; break;
    case 0x04: m->at += take(bytes, 4) * factor; break;
    case 0x0a: case 0x0b: take_state(m, bytes, low); break;
    case 0x0c: case 0x0d: case 0x0e: case 0x0f: case 0x12: case 0x13: take_cfa(m, bytes, low); break;
    case 0x05: case 0x06: case 0x07: case 0x08: case 0x09: case 0x10: case 0x11: case 0x14: case 0x15: case 0x16: case 0x2f:
        take_rule(m, bytes, low);
        break;
    case 0x2d: break;                           /* DW_CFA_AARCH64_negate_ra_state: addresses are stripped anyway */
    case 0x2e: take_unsigned_leb(bytes); break; /* DW_CFA_GNU_args_size */
    default: bytes->bad = 1;
    }
}

/* Runs a program as far as it speaks of the code; 0: it is not understood. */
static int run(struct machine *m, struct bytes program, uintptr_t code)
{
    while (program.at < program.end && !program.bad && m->at <= code)
        take_operation(m, &program);
    return !program.bad;
}

int frame_info_find(uintptr_t code, struct frame_rules *rules, struct frame_info_room *room)
{
    struct object object = {.code = code};
    struct common common;
    const unsigned char *id, *description;
    dl_iterate_phdr(holds, &object);
    if (!object.table || !(description = search(&object)))
        return 0;
    struct bytes bytes = piece(&object, description, &id);
    uint32_t back;
    if (bytes.bad)
        return 0;
    memcpy(&back, id, sizeof back);
    if (!back || !read_common(&object, id - back, &common))
        return 0;
    uintptr_t begin = take_pointer(&bytes, common.encoding, 0), length = take_pointer(&bytes, common.encoding & 0x0f, 0);
    if (bytes.bad || code - begin >= length)
        return 0;
    if (common.has_augmentation) {
        uint64_t augmentation = take_unsigned_leb(&bytes);
        if (augmentation > (size_t)(bytes.end - bytes.at))
            return 0;
        bytes.at += augmentation;
    }
    memset(rules, 0, sizeof *rules);
    rules->is_signal = common.is_signal;
    struct machine m = {.rules = rules, .common = &common, .room = room};
    if (!run(&m, common.program, UINTPTR_MAX))
        return 0;
    room->initial = *rules;
    m.at = begin;
    return run(&m, bytes, code) && rules->cfa.kind != FRAME_SAME;
}
