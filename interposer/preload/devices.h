/*
 * Where the recorder and a plugin of a vendor's library meet, whichever of them comes first: the plugin hands over when
 * its devices worked, and the recorder asks for what it still has. The preload library owns the place, as it is in the
 * process before both.
 *
 * A plugin is any shared object that finds LAPSCOPE_DEVICES_SYMBOL by dlsym(RTLD_DEFAULT); without it nothing is recorded,
 * and it does nothing. Nothing here is of one vendor.
 */
#ifndef LAPSCOPE_DEVICES_H
#define LAPSCOPE_DEVICES_H

#include <stddef.h>
#include <stdint.h>

#define LAPSCOPE_DEVICES_VERSION 3u
#define LAPSCOPE_DEVICES_SYMBOL "lapscope_devices"

enum lapscope_device_work { DEVICE_KERNEL = 0, DEVICE_TO_DEVICE = 1, DEVICE_TO_HOST = 2, DEVICE_OTHER = 3, DEVICE_WORKS = 4 };

/* A device worked at one kind of work from one moment to another, nanoseconds of CLOCK_MONOTONIC. */
struct lapscope_device_busy {
    int64_t begin_ns, end_ns;
    uint32_t device;            /* as the process numbers them */
    uint32_t work;              /* enum lapscope_device_work */
};

struct lapscope_devices {
    unsigned version;           /* LAPSCOPE_DEVICES_VERSION */
    /* The plugin's. Called once, when something is recorded; NULL: there is no plugin. Until then it opens nothing. */
    void (*begin)(void);
    /* What it asks, as "libcupti.so.12", and why it records nothing, empty where it does: written by `begin`; by both flushes why not all. */
    char source[32], problem[64];
    /* Hands over what is complete by now; not before `begin`. */
    void (*flush)(void);
    /* The same from wherever the process ends otherwise, as in a handler of an error: on a thread of the plugin's, and who calls waits a
     * second at the most. */
    void (*flush_at_end)(void);
    /* NULL, or is told each name that somebody asks dlsym() for. From any thread. */
    void (*asked)(const char *name);
    /* The recorder's: takes intervals over, those of a device and work in the order of their begin; `lost` more could not be had. From
     * any thread. None at all: the plugin has begun. NULL: nothing is recorded. */
    void (*take)(const struct lapscope_device_busy *busy, size_t count, uint64_t lost);
    /* The recorder's, from before `take` on: whether the plugin begins although the program has loaded what it asks. */
    int shares;
};

extern struct lapscope_devices lapscope_devices;

#endif
