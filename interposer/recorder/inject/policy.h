/*
 * LAPSCOPE_INJECT_POLICY: a file that says at which call sites to inject, a rule a line, of which the last that fits
 * counts:
 *
 *     default on|off
 *     on|off CALL MODULE+0xOFFSET BUILD-ID [MODULE+0xOFFSET BUILD-ID ...]     # where that is
 *
 * MODULE is an executable's or library's file name, OFFSET the return address in its own numbering, BUILD-ID
 * hexadecimal, or `-` where the file has none. The addresses after the first are those that follow in the call path:
 * they tell the callers of a function apart that only passes on to MPI. `lapscope tune` writes it.
 */
#ifndef LAPSCOPE_INJECT_POLICY_H
#define LAPSCOPE_INJECT_POLICY_H

#include <stdint.h>

/* Reads the file, if one is named; lines that are no rules are said when `speak`. Returns NULL, or what is wrong. */
const char *inject_policy_read(const char *path, int speak);

/* Whether requests that `call` posts from there are left alone: its return address, and those of its callers outwards.
 */
int inject_policy_is_off(const char *call, const uintptr_t *addresses, unsigned count);

#endif
