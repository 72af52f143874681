/* The assembler finds the files through -Wa,-I: see CMakeLists.txt and the command line's build script. */
#include "embedded.h"

#define EMBED(symbol, file)                                                                       \
    __asm__(".section .rodata, \"a\"\n.globl " #symbol "\n.hidden " #symbol "\n" #symbol ":\n"     \
            ".incbin \"" file "\"\n.byte 0\n.previous\n");

EMBED(embedded_schema, "schema.sql")
EMBED(embedded_views, "views.sql")
