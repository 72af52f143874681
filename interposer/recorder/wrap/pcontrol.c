/* MPI_Pcontrol: pauses and resumes recording, and marks where the program is. */
#include "wrap_fortran.h"

#include "../base/own_memory.h"
#include "../record/mark.h"

#include <stdarg.h>
#include <string.h>

enum { STACK_PAGE = 4096 /* the smallest */ };

/* 0 stops recording, anything else resumes it (the levels of MPI-4.1 15.2.4, as other profilers take them). `argument` is what
 * came second, or what was left there of before where nothing came: nobody but the kernel looks behind it. */
static inline ALWAYS_INLINE struct thread *begin_control(int level, uintptr_t argument)
{
    if (recorder_state == RECORDER_OFF)
        return NULL;
    int was_paused = recorder_state == RECORDER_PAUSED;
    recorder_state = level == 0 ? RECORDER_PAUSED : RECORDER_ON;
    struct thread *t = enter(); /* to the end of the real call: Fortran's calls C's in MPICH, which is not to mark it again */
    if (t && t->profile) /* samples of a pause count as those within a call */
        (was_paused ? profile_hooks.leave : profile_hooks.enter)(t->profile);
    if (t)
        mark(t, level, argument);
    return t;
}

static inline void end_control(struct thread *t)
{
    if (t)
        leave(t);
}

/* Registers that further arguments come in: of integers and addresses beside `level`, and of floating point, which both ABIs have
 * eight of. Whatever is behind them comes on the stack in words. */
#if defined(__x86_64__)
#define EACH_INTEGER(v) v[0], v[1], v[2], v[3], v[4]
enum { INTEGERS = 5 };
#elif defined(__aarch64__)
#define EACH_INTEGER(v) v[0], v[1], v[2], v[3], v[4], v[5], v[6]
enum { INTEGERS = 7 };
#endif
#define EIGHT(v) v[0], v[1], v[2], v[3], v[4], v[5], v[6], v[7]

/* Words of the caller's stack that may be arguments. It may end before them, as stacks of coroutines do; what surely is there is the
 * rest of the page before the first of them. */
static void read_stack(const uintptr_t *from, uintptr_t *words, size_t count)
{
    size_t near = -(uintptr_t)from % STACK_PAGE / sizeof *words;
    near = near < count ? near : count;
    memcpy(words, from, near * sizeof *words);
    if (near < count) {
        size_t bytes = (count - near) * sizeof *words;
        if (own_memory_read(words + near, (uintptr_t)(from + near), bytes) != bytes)
            memset(words + near, 0, bytes);
    }
}

/* What the further arguments are only another tool behind us knows: all that may be some are handed on, from every register and
 * eight words of the stack to the same places. */
int wrap_C_MPI_Pcontrol(int level, ...)
{
    enum { DOUBLES = 8, WORDS = 8 };
    uintptr_t integers[INTEGERS], words[WORDS];
    double doubles[DOUBLES];
    va_list further;
    va_start(further, level);
    for (int i = 0; i < INTEGERS; i++)
        integers[i] = va_arg(further, uintptr_t);
    for (int i = 0; i < DOUBLES; i++)
        doubles[i] = va_arg(further, double);
    va_end(further);
    read_stack((const uintptr_t *)CANONICAL_FRAME(), words, WORDS);
    struct thread *t = begin_control(level, integers[0]);
    int result = REAL(C_MPI_Pcontrol)(level, EACH_INTEGER(integers), EIGHT(doubles), EIGHT(words));
    end_control(t);
    return result;
}

/* Of Fortran a text comes by its address, as ierror does. */
void wrap_F_MPI_Pcontrol(const MPI_Fint *level, MPI_Fint *ierror)
{
    struct thread *t = begin_control(*level, (uintptr_t)ierror);
    REAL(F_MPI_Pcontrol)(level, ierror);
    end_control(t);
}

void wrap_F08_MPI_Pcontrol(const MPI_Fint *level, MPI_Fint *ierror)
{
    struct thread *t = begin_control(*level, (uintptr_t)ierror);
    REAL(F08_MPI_Pcontrol)(level, ierror);
    end_control(t);
}
