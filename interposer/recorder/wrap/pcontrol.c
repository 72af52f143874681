/* MPI_Pcontrol: pauses and resumes recording, and marks where the program is. */
#include "wrap_fortran.h"

#include "../record/mark.h"

#include <stdarg.h>

/* 0 stops recording, anything else resumes it (the levels of MPI-4.1 15.2.4, as other profilers take them). `argument` is what
 * came second, or what was left there of before where nothing came: nobody but the kernel looks behind it. */
static inline ALWAYS_INLINE struct thread *begin_control(int level, uintptr_t argument)
{
    if (recorder_state == RECORDER_OFF)
        return NULL;
    recorder_state = level == 0 ? RECORDER_PAUSED : RECORDER_ON;
    struct thread *t = enter(); /* to the end of the real call: Fortran's calls C's in MPICH, which is not to mark it again */
    if (t)
        mark(t, level, argument);
    return t;
}

static inline void end_control(struct thread *t)
{
    if (t)
        leave(t);
}

/* What the further arguments are only another tool behind us knows: all that may be some are handed on. */
int wrap_C_MPI_Pcontrol(int level, ...)
{
    enum { ARGUMENT_BYTES_ON_STACK = 64 };
    void *arguments = __builtin_apply_args();
    va_list further;
    va_start(further, level);
    struct thread *t = begin_control(level, (uintptr_t)va_arg(further, void *));
    va_end(further);
    void *result = __builtin_apply((void (*)())(void *)REAL(C_MPI_Pcontrol), arguments, ARGUMENT_BYTES_ON_STACK);
    end_control(t);
    __builtin_return(result);
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
