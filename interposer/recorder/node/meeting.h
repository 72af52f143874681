/*
 * Where the ranks of a job on one node meet (LAPSCOPE_RECORD=job): memory without a name, which goes with the last of them, however
 * they end. The record of the job names a process that has it, and so is where it is found; each rank has a seat in it, with room for
 * its spool. What a rank has left there is still seen by the others when it is dead.
 */
#ifndef LAPSCOPE_MEETING_H
#define LAPSCOPE_MEETING_H

#include "../spool/writer.h"

#include <stdint.h>
#include <sys/types.h>

enum { MEETING_SEATS = 512, MEETING_SEAT_BYTES = 4 << 20, MEETING_HEAD_BYTES = 1 << 16 };

enum meeting_state { SEAT_FREE = 0, SEAT_TAKEN = 1, SEAT_LEFT = 2 };

struct meeting_seat {
    uint32_t state;          /* enum meeting_state; written last */
    int32_t pid;
    uint64_t pid_start;      /* tells a living owner from another process of that pid */
    uint32_t world;
    int32_t rank;
};

struct meeting {             /* at the begin of the memory */
    char magic[8];
    char job[256], launch[64];
    uint32_t seats_taken;    /* at least so many have been asked for */
    uint32_t keeper;         /* number of the seat, plus 1, whose process writes the record; 0: nobody does */
    uint32_t lock;           /* likewise, who is between meeting_lock and meeting_unlock */
    struct meeting_seat seats[MEETING_SEATS];
};

_Static_assert(sizeof(struct meeting) <= MEETING_HEAD_BYTES, "seats begin behind it");

/* A process at it. Programs close descriptors that are not theirs: whoever has come needs none any more. */
struct attendance {
    struct meeting *meeting;
    int fd;
    dev_t device;
    ino_t inode;
    unsigned seat;
    unsigned char *room;     /* the own seat's */
};

/* What a record says of the process that writes it. */
struct meeting_keeper {
    long pid;
    int fd;
    uint64_t pid_start, pid_namespace;
    char boot_id[40];
};

/* Says whose the own seat is. Returns its life: 1, or more where the same rank has called exec. */
unsigned meeting_name_seat(const struct attendance *own, unsigned world, int rank);

/* Makes memory for the ranks of that job, and takes the first seat. Returns 0, or an errno value. */
int meeting_make(struct attendance *own, const char *job, const char *launch);

/* Takes a seat at that of a living process. ESRCH: there is none to be found, EEXIST: it is another job's. */
int meeting_join(struct attendance *own, const struct meeting_keeper *keeper, const char *job, const char *launch);

/* Gives all up that was got. */
void meeting_forget(struct attendance *own);

/* The room for the own spool. */
struct spool_memory meeting_own_room(const struct attendance *own);

/* The rooms for the spools of all seats that are taken, one behind the other, as they are now; NULL: there is no memory. */
const unsigned char *meeting_map_rooms(const struct attendance *own, unsigned *seats);
void meeting_unmap_rooms(const unsigned char *rooms, unsigned seats);

/* Whether the process of a seat may still add to its spool. */
int meeting_is_alive(const struct attendance *own, unsigned seat);

/* Whether anybody but this process may. */
int meeting_has_others(const struct attendance *own);

/* This process as its records name it. */
void meeting_describe(const struct attendance *own, struct meeting_keeper *keeper);

/* In a child of fork: the descriptor goes, if it is still ours. */
void meeting_leave_to_parent(struct attendance *own);

/* Only one process at a time is between these; 0 when it is not to be had within a second. */
int meeting_lock(const struct attendance *own);
void meeting_unlock(const struct attendance *own);

#endif
