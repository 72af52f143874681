/*
 * How a function's caller is found: call frame information (DWARF 5, 6.4; LSB 5.0, "Exception Frames"), which compilers write for
 * every function and the dynamic linker maps with each object. It is read where it lies: nothing is allocated, opened, or asked of
 * the system but which objects there are.
 */
#ifndef LAPSCOPE_FRAME_INFO_H
#define LAPSCOPE_FRAME_INFO_H

#include <stdint.h>

/* Numbers of registers as DWARF has them on this machine (x86-64 psABI 3.6.2, AADWARF64 4.1). */
#if defined(__x86_64__)
enum { FRAME_REGISTERS = 17, FRAME_POINTER = 6, STACK_POINTER = 7, RETURN_ADDRESS = 16 };
#define PRESERVED_REGISTERS {3, 6, 12, 13, 14, 15, RETURN_ADDRESS}
enum { PRESERVED_COUNT = 7 };
#elif defined(__aarch64__)
enum { FRAME_REGISTERS = 32, FRAME_POINTER = 29, STACK_POINTER = 31, RETURN_ADDRESS = 30 };
#define PRESERVED_REGISTERS {19, 20, 21, 22, 23, 24, 25, 26, 27, 28, FRAME_POINTER, RETURN_ADDRESS}
enum { PRESERVED_COUNT = 12 };
#endif

/* What the caller had in a register. */
enum frame_rule_kind {
    FRAME_SAME,               /* the same, as nothing is said of it */
    FRAME_UNDEFINED,          /* it is lost; of the return address: there is no caller */
    FRAME_SAVED,              /* stands in memory, `offset` from the canonical frame address (CFA) */
    FRAME_IS_OFFSET,          /* is that address itself */
    FRAME_IN_REGISTER,        /* is in the register `offset` */
    FRAME_SAVED_EXPRESSION,   /* stands in memory, where the expression says */
    FRAME_IS_EXPRESSION       /* is what the expression says */
};

struct frame_rule {
    enum frame_rule_kind kind;
    union {
        int64_t offset;
        const unsigned char *expression; /* its length, unsigned LEB128, and operations (DWARF 5, 2.5) */
    };
};

struct frame_rules {
    struct frame_rule cfa;           /* FRAME_IN_REGISTER: `offset` is added to cfa_register; or FRAME_IS_EXPRESSION */
    unsigned cfa_register;
    struct frame_rule of[FRAME_REGISTERS];
    int is_signal;                   /* the frame of a signal handler's return: its caller was interrupted and called nothing */
};

/* What finding rules needs: not on the program's stack, which may be small. */
struct frame_info_room {
    struct frame_rules initial, remembered[4];
};

/* The rules at an instruction; 0: nothing is known of it. */
int frame_info_find(uintptr_t code, struct frame_rules *rules, struct frame_info_room *room);

/* How often an object was unloaded: where that has changed, code addresses may mean other functions. */
unsigned long long frame_info_unloads(void);

#endif
