/* What lapscope says on standard error; never on standard output. errno is left as it was. */
#ifndef LAPSCOPE_LOG_H
#define LAPSCOPE_LOG_H

void log_line(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Only the first of each kind of trouble is said; returns whether this was it. `said` is the caller's static flag. */
int log_once(int *said, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
