/* Names at addresses that may be no addresses at all. */
#ifndef LAPSCOPE_NAME_H
#define LAPSCOPE_NAME_H

#include <stdint.h>

enum { NAME_BYTES = 64 /* with the zero behind it */ };

/*
 * The text of 1 to 63 bytes of printable UTF-8 that stands at `address` and ends with a zero; the rest of `name` becomes zeros.
 * Returns 0 where there is none. The address may be anything: the kernel reads there, and says so where nothing is mapped.
 * Changes errno.
 */
int name_at(uintptr_t address, char name[NAME_BYTES]);

#endif
