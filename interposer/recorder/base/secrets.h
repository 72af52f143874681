/*
 * Keeps what may be a secret out of what is written down: the recorder and the command line share it.
 *
 * It is a list of words, and no proof. LAPSCOPE_COMMAND_LINE=off stores the program's name alone.
 */
#ifndef LAPSCOPE_SECRETS_H
#define LAPSCOPE_SECRETS_H

#include <stddef.h>

/* Stands where a secret was. */
#define SECRETS_WITHHELD "(withheld)"

/* Whether a name has KEY, TOKEN, PASS, SECRET, AUTH, JWT or CRED in it, in capitals or not. */
int secrets_in_name(const char *name, size_t bytes);

/* Whether an environment variable is one of those that lapscope writes down: those that set up MPI, its transports and
 * threads. All others are nobody's business. */
int secrets_may_record(const char *name, size_t bytes);

/*
 * A command line whose `bytes` bytes of words each end at `separator` (the last one may lack it), as text in `out` with
 * blanks between. Withheld are, of any word, what stands behind a = or : whose name is secret (--password=x,
 * {"token":"x"}), user and password of an address (scheme://user:password@host), and the whole word behind an option of
 * a secret name (--password x). The text is cut where `out` is full, never amid what is withheld. Returns its length.
 */
size_t secrets_hide(const char *words, size_t bytes, char separator, char *out, size_t out_bytes);

/* The value of an environment variable, as it may be written down. Returns its length. */
size_t secrets_hide_value(const char *name, const char *value, char *out, size_t out_bytes);

#endif
