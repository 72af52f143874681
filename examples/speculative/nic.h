/*
 * What stands for an RDMA engine: a thread of each process that copies between the memories of both (process_vm_readv for an
 * RDMA read, process_vm_writev for an RDMA write) while its process does something else. It makes no decision: it is told what
 * to move, at what pace the link carries it, and what to say when it is through. It sleeps between pieces, so that it hardly
 * takes a processor's time from those who compute.
 */
#ifndef NIC_H
#define NIC_H

#include "transport.h"

#include <stdatomic.h>

enum direction { RDMA_READ, RDMA_WRITE };

struct transfer {
    enum direction direction;
    char *here;
    uint64_t there; /* address in the other process */
    size_t bytes;
    int tells;             /* whether `tell` is sent behind the data */
    struct message tell;   /* as RDMA writes can be followed by a send in the same queue */
    double posted_us;      /* set by post_transfer */
    _Atomic int is_done;   /* set by the engine, last */
    struct transfer *next; /* the engine's */
};

void start_nic(void);

/* Transfers of a process follow each other. What `transfer` names stays in place until it is done. */
void post_transfer(struct transfer *transfer);

#endif
