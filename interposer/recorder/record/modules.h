/* The executables and shared objects that call paths run through, written to the spool as they are met. */
#ifndef LAPSCOPE_MODULES_H
#define LAPSCOPE_MODULES_H

#include "thread.h"

/* Writes a definition of every module that holds one of the addresses and has none yet. Callers hold a lock. */
void modules_define(struct thread *t, const uintptr_t *addresses, unsigned count);

enum { MODULE_BUILD_ID_TEXT = 2 * 64 + 1 };

/* Where in which module an address is. */
struct module_place {
    char name[256];                /* of the file, without directory */
    char build_id[MODULE_BUILD_ID_TEXT]; /* hexadecimal; empty: it has none */
    uint64_t offset;               /* in the module's own numbering */
};

/* Returns 0 when the address is in none. */
int module_of(uintptr_t address, struct module_place *place);

#endif
