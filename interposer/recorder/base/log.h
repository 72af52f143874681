/* What lapscope says on standard error; never on standard output. errno is left as it was. */
#ifndef LAPSCOPE_LOG_H
#define LAPSCOPE_LOG_H

void log_line(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Only the first of each kind of trouble is said; returns whether this was it. `said` is the caller's static flag. */
int log_once(int *said, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Whether this is the rank that speaks for its node of what is the same for all ranks there. 1 without a launcher. */
int log_first_on_node(void);

#endif
