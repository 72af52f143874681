/* Descriptors that are kept open: the application's own numbers stay what they are without us, and programs close all low ones. */
#ifndef LAPSCOPE_DESCRIPTOR_H
#define LAPSCOPE_DESCRIPTOR_H

#include <fcntl.h>
#include <unistd.h>

enum { FIRST_OWN_DESCRIPTOR = 500 };

/* Moves what was just opened to a number of ours; returns that, or `fd` where there is none. */
static inline int descriptor_move(int fd)
{
    int own = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, FIRST_OWN_DESCRIPTOR);
    if (own < 0)
        return fd;
    close(fd);
    return own;
}

#endif
