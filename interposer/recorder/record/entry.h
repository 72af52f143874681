/* The two lines that every wrapper starts and ends with: whose call it is, and when. */
#ifndef LAPSCOPE_ENTRY_H
#define LAPSCOPE_ENTRY_H

#include "nap.h"
#include "thread.h"

/* First call of a thread; NULL when nothing can be recorded for it. */
struct thread *thread_first_call(void);

/* Whether the wrapper that the thread is inside of is still on the stack: it is not when longjmp or a C++ exception
 * (out of an error handler) has left it. Remembers who was found to call from inside whom. */
int thread_is_nested(struct thread *t, uintptr_t return_address);

static inline ALWAYS_INLINE int is_nested(struct thread *t, uintptr_t return_address)
{
    unsigned at = (unsigned)((return_address ^ t->inside_return) * 0x9e3779b97f4a7c15u >> 60);
    const struct nesting *known = &t->nestings[at % NESTINGS];
    return LIKELY(known->caller == return_address && known->inside == t->inside_return) ||
           thread_is_nested(t, return_address);
}

/* Where the frame record of the wrapper is on x86-64. What counts is that it depends on the caller's stack pointer alone: on aarch64
 * the record is wherever the wrapper's own frame is large enough to have it, so that another wrapper, called from where one was
 * left by a jump, would seem to be called from inside of that one. */
static inline ALWAYS_INLINE uintptr_t wrapper_frame(void)
{
#if defined(__x86_64__)
    return (uintptr_t)__builtin_frame_address(0);
#else
    return CANONICAL_FRAME() - 2 * sizeof(uintptr_t);
#endif
}

/* The thread's record when this call is the application's own, else NULL: then the wrapper only makes the real call. Calls that MPI
 * makes of itself come from further down the stack than the wrapper that is under way. */
static inline ALWAYS_INLINE struct thread *enter_own(void)
{
    struct thread *t = current_thread;
    if (UNLIKELY(!t) && !(t = thread_first_call()))
        return NULL;
    uintptr_t frame = wrapper_frame();
    uintptr_t return_address = (uintptr_t)__builtin_return_address(0);
    if (UNLIKELY(t->inside > frame) && is_nested(t, return_address))
        return NULL;
    t->inside = frame;
    t->inside_return = return_address;
    return t;
}

/* The same when it is to be recorded: of calls that have to be known whatever happens. */
static inline ALWAYS_INLINE struct thread *enter(void)
{
    return UNLIKELY(recorder_state == RECORDER_OFF) ? NULL : enter_own();
}

/* The call is the one that ends a nap. */
static inline ALWAYS_INLINE int wakes(void)
{
    unsigned left = __atomic_load_n(&nap_calls, __ATOMIC_RELAXED);
    if (LIKELY(left != 0)) {
        __atomic_store_n(&nap_calls, left - 1, __ATOMIC_RELAXED);
        return 0;
    }
    return nap_is_over();
}

/* Of calls that end what may be known. */
static inline ALWAYS_INLINE struct thread *enter_unless_asleep(void)
{
    if (UNLIKELY(recorder_state <= RECORDER_ASLEEP) && (recorder_state == RECORDER_OFF || !wakes()))
        return NULL;
    return enter_own();
}

/* Of calls that make something new, which MPI_Pcontrol(0) leaves out. */
static inline ALWAYS_INLINE struct thread *enter_unless_paused(void)
{
    if (UNLIKELY(recorder_state != RECORDER_ON) && (recorder_state != RECORDER_ASLEEP || !wakes()))
        return NULL;
    return enter_own();
}

/* Whoever finds the thread outside of MPI, and enters MPI because of that, sees all that MPI has done in it. */
static inline void leave(struct thread *t)
{
    __atomic_store_n(&t->inside, 0, __ATOMIC_RELEASE);
}

/* What this thread does from here on is not the application's, and not recorded; returns what current_thread was. */
struct thread *thread_step_aside(void);

/* With meters, injection, or another clock. */
uint64_t thread_stamp_begin(struct thread *t);
uint64_t thread_stamp_end(struct thread *t);

/* The times directly before and behind a real call, in ticks. */
static inline uint64_t stamp_begin(struct thread *t)
{
    return LIKELY(stamps_are_plain) ? clock_tsc() : thread_stamp_begin(t);
}

static inline uint64_t stamp_end(struct thread *t)
{
    return LIKELY(stamps_are_plain) ? clock_tsc() : thread_stamp_end(t);
}

#endif
