#define _GNU_SOURCE
#include "perf_ring.h"

#include "descriptor.h"

#include <errno.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>

_Static_assert(offsetof(struct perf_event_mmap_page, data_head) == 1024, "perf_ring_has_more reads it");

int perf_ring_open(struct perf_ring *ring, struct perf_event_attr *attributes, pid_t tid, size_t bytes)
{
    *ring = (struct perf_ring){.fd = -1};
    int fd = (int)syscall(SYS_perf_event_open, attributes, tid, -1, -1, PERF_FLAG_FD_CLOEXEC);
    if (fd < 0)
        return errno;
    fd = descriptor_move(fd);
    size_t page = (size_t)sysconf(_SC_PAGESIZE), data = page;
    while (data < bytes)
        data *= 2;
    void *pages = mmap(NULL, page + data, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (pages == MAP_FAILED || ioctl(fd, PERF_EVENT_IOC_ID, &ring->id) != 0) {
        int error = errno;
        if (pages != MAP_FAILED)
            munmap(pages, page + data);
        close(fd);
        return error;
    }
    ring->fd = fd;
    ring->pages = pages;
    return 0;
}

int perf_ring_is_own(const struct perf_ring *ring)
{
    uint64_t id = 0;
    return ioctl(ring->fd, PERF_EVENT_IOC_ID, &id) == 0 && id == ring->id;
}

void perf_ring_forget(struct perf_ring *ring)
{
    if (ring->fd >= 0 && perf_ring_is_own(ring))
        close(ring->fd);
    ring->fd = -1;
}

void perf_ring_close(struct perf_ring *ring)
{
    if (ring->fd < 0)
        return;
    const struct perf_event_mmap_page *page = ring->pages;
    munmap(ring->pages, (size_t)(page->data_offset + page->data_size)); /* it holds the event as the descriptor does */
    perf_ring_forget(ring);
}

/* Around the ring's end. */
void perf_ring_copy(const struct perf_ring *ring, uint64_t at, void *to, size_t bytes)
{
    const struct perf_event_mmap_page *page = ring->pages;
    const char *data = (const char *)ring->pages + page->data_offset;
    size_t from = (size_t)(at & (page->data_size - 1)), first = (size_t)page->data_size - from;
    first = bytes < first ? bytes : first;
    memcpy(to, data + from, first);
    memcpy((char *)to + first, data, bytes - first);
}

int perf_ring_next(struct perf_ring *ring, struct perf_event_header *header, uint64_t *at)
{
    const struct perf_event_mmap_page *page = ring->pages;
    uint64_t head = __atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE);
    if (ring->read >= head)
        return 0;
    *at = ring->read;
    perf_ring_copy(ring, *at, header, sizeof *header);
    ring->read = header->size < sizeof *header ? head : ring->read + header->size; /* no record is that short */
    return 1;
}

void perf_ring_done(struct perf_ring *ring)
{
    struct perf_event_mmap_page *page = ring->pages;
    __atomic_store_n(&page->data_tail, ring->read, __ATOMIC_RELEASE);
}
