#define _GNU_SOURCE
#include "watchpoint.h"

#include <errno.h>
#include <linux/hw_breakpoint.h>
#include <linux/perf_event.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>

enum { STACK_BYTES = HIT_STACK_WORDS * 8 };

#if defined(__x86_64__)
#include <asm/perf_regs.h>
/* In the order of the kernel's numbers: ax bx cx dx si di bp sp, ip, r8 to r15. */
#define REGISTERS                                                                                                           \
    (1u << PERF_REG_X86_AX | 1u << PERF_REG_X86_BX | 1u << PERF_REG_X86_CX | 1u << PERF_REG_X86_DX | 1u << PERF_REG_X86_SI |  \
     1u << PERF_REG_X86_DI | 1u << PERF_REG_X86_BP | 1u << PERF_REG_X86_SP | 1u << PERF_REG_X86_IP | 1u << PERF_REG_X86_R8 |  \
     1u << PERF_REG_X86_R9 | 1u << PERF_REG_X86_R10 | 1u << PERF_REG_X86_R11 | 1u << PERF_REG_X86_R12 |                      \
     1u << PERF_REG_X86_R13 | 1u << PERF_REG_X86_R14 | 1u << PERF_REG_X86_R15)
enum { STACK_POINTER_AT = 7, STEP = 0 }; /* the trap comes behind the access: ip is the next instruction's */
#else
#define REGISTERS 0
enum { STACK_POINTER_AT = 0, STEP = 4 }; /* reported before the access is made */
#endif

/* A sample as it is laid out for the flags below (perf_event_open(2)), up to the registers. */
struct sample {
    struct perf_event_header header;
    uint64_t ip, ns;
};

static uint64_t sample_bytes(void)
{
    uint64_t bytes = sizeof(struct sample);
    if (REGISTERS)
        bytes += 8 + 8 * HIT_REGISTERS + 8 + STACK_BYTES + 8;
    return bytes;
}

static struct perf_event_attr attributes_of(enum watchpoint_kind kind, const void *word, unsigned bytes)
{
    struct perf_event_attr attributes = {.type = PERF_TYPE_BREAKPOINT,
                                         .size = sizeof attributes,
                                         .bp_type = kind == WATCH_WRITES ? HW_BREAKPOINT_W : HW_BREAKPOINT_RW,
                                         .bp_addr = (uintptr_t)word,
                                         .bp_len = bytes,
                                         .sample_period = 1,
                                         .sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TIME,
                                         .use_clockid = 1,
                                         .clockid = CLOCK_MONOTONIC,
                                         .disabled = 1,
                                         .exclude_kernel = 1,
                                         .exclude_hv = 1};
    if (REGISTERS) {
        attributes.sample_type |= PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER;
        attributes.sample_regs_user = REGISTERS;
        attributes.sample_stack_user = STACK_BYTES;
    }
    return attributes;
}

int watchpoint_open(struct watchpoint *point, unsigned hits)
{
    static const uint64_t anywhere __attribute__((aligned(8)));
    struct perf_event_attr attributes = attributes_of(WATCH_WRITES, &anywhere, 8);
    *point = (struct watchpoint){.is_set = 0};
    return perf_ring_open(&point->ring, &attributes, 0, sample_bytes() * (hits + 1));
}

void watchpoint_forget(struct watchpoint *point)
{
    perf_ring_forget(&point->ring);
    point->is_set = 0;
}

void watchpoint_close(struct watchpoint *point)
{
    watchpoint_clear(point);
    perf_ring_close(&point->ring);
}

/* What is in the ring is of the word watched before. */
static void drop_hits(struct watchpoint *point)
{
    struct watchpoint_hit hit;
    while (watchpoint_next(point, &hit))
        ;
}

/* PERF_EVENT_IOC_REFRESH adds to the hits that are left of the last time. From Linux 6.16 on an event that has used them up
 * is also stopped, and a breakpoint is started again only where its period is set while it is enabled. */
static int enable(struct watchpoint *point, unsigned hits)
{
    unsigned more = hits > point->left ? hits - point->left : 0;
    uint64_t each = 1;
    int was_used_up = point->left == 0;
    point->left += more;
    if (ioctl(point->ring.fd, more ? PERF_EVENT_IOC_REFRESH : PERF_EVENT_IOC_ENABLE, more) != 0)
        return 0;
    return !was_used_up || ioctl(point->ring.fd, PERF_EVENT_IOC_PERIOD, &each) == 0;
}

int watchpoint_set(struct watchpoint *point, enum watchpoint_kind kind, const void *word, unsigned bytes, unsigned hits)
{
    struct perf_event_attr attributes = attributes_of(kind, word, bytes);
    if (point->ring.fd < 0)
        return 0;
    watchpoint_clear(point);
    point->seen = 0;
    point->is_set = ioctl(point->ring.fd, PERF_EVENT_IOC_MODIFY_ATTRIBUTES, &attributes) == 0 && enable(point, hits);
    return point->is_set;
}

void watchpoint_clear(struct watchpoint *point)
{
    if (!point->is_set)
        return;
    ioctl(point->ring.fd, PERF_EVENT_IOC_DISABLE, 0);
    drop_hits(point);
    point->is_set = 0;
}

/* The registers that the sample holds, the stack pointer in front, and what that points to. */
static void read_state(const struct perf_ring *ring, uint64_t at, struct watchpoint_hit *hit)
{
    uint64_t abi, stack_bytes, there, values[HIT_REGISTERS];
    hit->registers = hit->stack_words = 0;
    perf_ring_copy(ring, at, &abi, sizeof abi);
    at += sizeof abi;
    if (abi == PERF_SAMPLE_REGS_ABI_NONE)
        return;
    perf_ring_copy(ring, at, values, sizeof values);
    at += sizeof values;
    hit->value[hit->registers++] = values[STACK_POINTER_AT];
    for (unsigned i = 0; i < HIT_REGISTERS; i++)
        if (i != STACK_POINTER_AT)
            hit->value[hit->registers++] = values[i];
    perf_ring_copy(ring, at, &stack_bytes, sizeof stack_bytes);
    at += sizeof stack_bytes;
    if (stack_bytes != STACK_BYTES)
        return;
    perf_ring_copy(ring, at, hit->stack, STACK_BYTES);
    perf_ring_copy(ring, at + STACK_BYTES, &there, sizeof there);
    hit->stack_words = (unsigned)(there / 8);
}

int watchpoint_next(struct watchpoint *point, struct watchpoint_hit *hit)
{
    struct perf_event_header header;
    uint64_t at;
    while (perf_ring_next(&point->ring, &header, &at)) {
        if (header.type == PERF_RECORD_SAMPLE) {
            struct sample sample;
            perf_ring_copy(&point->ring, at, &sample, sizeof sample);
            *hit = (struct watchpoint_hit){.ns = sample.ns, .address = (uintptr_t)sample.ip + STEP};
            if (REGISTERS)
                read_state(&point->ring, at + sizeof sample, hit);
            point->seen++;
            point->left -= point->left > 0;
        }
        perf_ring_done(&point->ring);
        if (header.type == PERF_RECORD_SAMPLE)
            return 1;
    }
    return 0;
}

const char *watchpoint_problem(int error)
{
    switch (error) {
    case EACCES:
    case EPERM:
        return "perf_event_open is not allowed here (kernel.perf_event_paranoid above 2, or a container's seccomp filter): "
               "have it allowed, or run where it is";
    case ENOSPC:
    case EBUSY:
        return "no watchpoint is free: a debugger or another tool holds them";
    case EMFILE:
    case ENFILE:
        return "no file descriptor is free for a watchpoint (ulimit -n)";
    case ENOMEM:
        return "no locked memory is left for a watchpoint's buffer (ulimit -l, kernel.perf_event_mlock_kb)";
    case ENOSYS:
    case ENODEV:
    case EOPNOTSUPP:
    case EINVAL:
    case ENOENT:
        return "this kernel or processor has no watchpoints for programs (perf_event_open)";
    default:
        return "no watchpoint can be had here";
    }
}
