/*
 * How long the threads of this process had something to do and no processor: others had it. What is measured meanwhile says
 * nothing of a protocol.
 */
#ifndef PROCESSOR_H
#define PROCESSOR_H

/* Of the calling thread; a process has two at most. */
void watch_this_thread(void);

/* Of all threads that are watched, in microseconds since they began; 0 where the kernel does not say (CONFIG_SCHED_INFO). */
double waited_for_processor_us(void);

#endif
