/* A library that the recorder takes for PAPI. */
#ifndef LAPSCOPE_TEST_PAPI_OF_TEST_H
#define LAPSCOPE_TEST_PAPI_OF_TEST_H

/* Its events, by place. */
enum { PAPI_OF_TEST_FIRST = 0, PAPI_OF_TEST_OTHER = 2, PAPI_OF_TEST_LAST = 4 };

extern struct papi_of_test {
    long long values[5];             /* counted so far, on all threads */
    int open_sets, threads_ended;
    int refuse_start, refuse_read;   /* set by the test */
} papi_of_test;

#endif
