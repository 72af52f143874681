/*
 * One exported entry for each symbol of functions.inc: a jump through its slot, and nothing else.
 *
 * A slot is empty at first, so that no process that inherits LD_PRELOAD has to relocate it. Then the entry names its symbol by number
 * and goes to first_call. That saves every register that may carry an argument, lets lapscope_resolve() (resolve.c) fill the slot,
 * restores the registers and jumps where that leads. The stack pointer is what it was at entry, so arguments on the stack are where
 * the callee expects them, and the return address is the application's.
 */
#if defined(__x86_64__)

        .macro SYMBOL_ENTRY name
        .section .text.entries, "ax", %progbits
        .p2align 5                      /* LAPSCOPE_ENTRY_BYTES */
        .globl  \name
        .type   \name, @function
\name:
        endbr64
        movq    lapscope_slots + 8 * slot_index(%rip), %r11
        testq   %r11, %r11
        jz      1f
        jmp     *%r11
1:      pushq   $slot_index
        jmp     first_call
        .size   \name, . - \name
        .section .text.probes, "ax", %progbits
        .p2align 4
        endbr64
        movl    $slot_index, %edi
        jmp     lapscope_probe
        .set    slot_index, slot_index + 1
        .endm

#elif defined(__aarch64__)

        .macro SYMBOL_ENTRY name
        .section .text.entries, "ax", %progbits
        .p2align 5                      /* LAPSCOPE_ENTRY_BYTES */
        .globl  \name
        .type   \name, %function
\name:
        hint    #34                     /* bti c */
        adrp    x16, lapscope_slots + 8 * slot_index
        ldr     x16, [x16, #:lo12:lapscope_slots + 8 * slot_index]
        cbz     x16, 1f
        br      x16
1:      movz    w17, #slot_index
        b       first_call
        .size   \name, . - \name
        .section .text.probes, "ax", %progbits
        .p2align 4
        hint    #34                     /* bti c */
        movz    w0, #slot_index
        b       lapscope_probe
        .set    slot_index, slot_index + 1
        .endm

#else
#error "lapscope has trampolines for x86-64 and aarch64"
#endif

        .set    slot_index, 0

        .section .text.entries, "ax", %progbits
        .p2align 5
        .hidden lapscope_entries
        .globl  lapscope_entries
lapscope_entries:

/* What the loader calls when it binds a symbol, 16 bytes each (probe.c). */
        .section .text.probes, "ax", %progbits
        .p2align 4
        .hidden lapscope_next_dlsym
        .hidden lapscope_by_handle
        .hidden lapscope_before_dlopen
        .hidden lapscope_before_dlmopen
        .hidden lapscope_probes
        .globl  lapscope_probes
        .hidden lapscope_probe
lapscope_probes:

        .hidden lapscope_slots          /* resolve.c */

#define FUNCTION(function)
#define SYMBOL(name, function) SYMBOL_ENTRY name
#include "functions.inc"
#undef FUNCTION
#undef SYMBOL

        .text
#if defined(__x86_64__)

/* On entry: the symbol's number on the stack, above it the application's return address. */
        .type   first_call, @function
first_call:
        .cfi_startproc
        .cfi_def_cfa_offset 16
        pushq   %rbp
        .cfi_def_cfa_offset 24
        .cfi_offset %rbp, -24
        movq    %rsp, %rbp
        .cfi_def_cfa_register %rbp
        pushq   %rax
        pushq   %rdi
        pushq   %rsi
        pushq   %rdx
        pushq   %rcx
        pushq   %r8
        pushq   %r9
        pushq   %r10
        subq    $128, %rsp
        andq    $-16, %rsp
        movaps  %xmm0, (%rsp)
        movaps  %xmm1, 16(%rsp)
        movaps  %xmm2, 32(%rsp)
        movaps  %xmm3, 48(%rsp)
        movaps  %xmm4, 64(%rsp)
        movaps  %xmm5, 80(%rsp)
        movaps  %xmm6, 96(%rsp)
        movaps  %xmm7, 112(%rsp)
        movl    8(%rbp), %edi
        call    lapscope_resolve
        movq    %rax, %r11              /* where to go */
        movaps  (%rsp), %xmm0
        movaps  16(%rsp), %xmm1
        movaps  32(%rsp), %xmm2
        movaps  48(%rsp), %xmm3
        movaps  64(%rsp), %xmm4
        movaps  80(%rsp), %xmm5
        movaps  96(%rsp), %xmm6
        movaps  112(%rsp), %xmm7
        leaq    -64(%rbp), %rsp
        popq    %r10
        popq    %r9
        popq    %r8
        popq    %rcx
        popq    %rdx
        popq    %rsi
        popq    %rdi
        popq    %rax
        popq    %rbp
        .cfi_def_cfa %rsp, 16
        addq    $8, %rsp                /* the symbol's number */
        .cfi_def_cfa_offset 8
        jmp     *%r11
        .cfi_endproc
        .size   first_call, . - first_call

/* dlsym(handle, name): by_handle.c answers, or the next dlsym, as if it had been called in our stead. */
        .globl  dlsym
        .type   dlsym, @function
dlsym:
        .cfi_startproc
        endbr64
        pushq   %rdi
        .cfi_def_cfa_offset 16
        pushq   %rsi
        .cfi_def_cfa_offset 24
        subq    $8, %rsp
        .cfi_def_cfa_offset 32
        movq    24(%rsp), %rdx          /* the caller */
        call    lapscope_by_handle
        addq    $8, %rsp
        .cfi_def_cfa_offset 24
        popq    %rsi
        .cfi_def_cfa_offset 16
        popq    %rdi
        .cfi_def_cfa_offset 8
        testq   %rax, %rax
        jz      1f
        xorl    %ecx, %ecx
        cmpq    $-1, %rax               /* LAPSCOPE_NOWHERE */
        cmoveq  %rcx, %rax
        ret
1:      jmp     *lapscope_next_dlsym(%rip)
        .cfi_endproc
        .size   dlsym, . - dlsym

/* dlopen(file, flags) and dlmopen(space, file, flags): the next one, as if it had been called in our stead, once our symbols are ready
 * for what it binds. */
        .macro OPENING name
        .globl  \name
        .type   \name, @function
\name:
        .cfi_startproc
        endbr64
        pushq   %rdi
        .cfi_def_cfa_offset 16
        pushq   %rsi
        .cfi_def_cfa_offset 24
        pushq   %rdx
        .cfi_def_cfa_offset 32
        call    lapscope_before_\name
        popq    %rdx
        .cfi_def_cfa_offset 24
        popq    %rsi
        .cfi_def_cfa_offset 16
        popq    %rdi
        .cfi_def_cfa_offset 8
        jmp     *%rax
        .cfi_endproc
        .size   \name, . - \name
        .endm

#elif defined(__aarch64__)

/* On entry: the symbol's number in x17. */
        .type   first_call, %function
first_call:
        .cfi_startproc
        stp     x29, x30, [sp, #-224]!
        .cfi_def_cfa_offset 224
        .cfi_offset x29, -224
        .cfi_offset x30, -216
        mov     x29, sp
        stp     x0, x1, [sp, #16]
        stp     x2, x3, [sp, #32]
        stp     x4, x5, [sp, #48]
        stp     x6, x7, [sp, #64]
        str     x8, [sp, #80]
        stp     q0, q1, [sp, #96]
        stp     q2, q3, [sp, #128]
        stp     q4, q5, [sp, #160]
        stp     q6, q7, [sp, #192]
        mov     w0, w17
        bl      lapscope_resolve
        mov     x16, x0                 /* where to go */
        ldp     q6, q7, [sp, #192]
        ldp     q4, q5, [sp, #160]
        ldp     q2, q3, [sp, #128]
        ldp     q0, q1, [sp, #96]
        ldr     x8, [sp, #80]
        ldp     x6, x7, [sp, #64]
        ldp     x4, x5, [sp, #48]
        ldp     x2, x3, [sp, #32]
        ldp     x0, x1, [sp, #16]
        ldp     x29, x30, [sp], #224
        .cfi_def_cfa_offset 0
        br      x16
        .cfi_endproc
        .size   first_call, . - first_call

/* dlsym(handle, name): by_handle.c answers, or the next dlsym, as if it had been called in our stead. */
        .globl  dlsym
        .type   dlsym, %function
dlsym:
        .cfi_startproc
        hint    #34                     /* bti c */
        stp     x29, x30, [sp, #-32]!
        .cfi_def_cfa_offset 32
        .cfi_offset x29, -32
        .cfi_offset x30, -24
        stp     x0, x1, [sp, #16]
        mov     x2, x30                 /* the caller */
        bl      lapscope_by_handle
        mov     x2, x0
        ldp     x0, x1, [sp, #16]
        ldp     x29, x30, [sp], #32
        .cfi_def_cfa_offset 0
        cbz     x2, 1f
        cmn     x2, #1                  /* LAPSCOPE_NOWHERE */
        csel    x0, xzr, x2, eq
        ret
1:      adrp    x16, lapscope_next_dlsym
        ldr     x16, [x16, #:lo12:lapscope_next_dlsym]
        br      x16
        .cfi_endproc
        .size   dlsym, . - dlsym

/* dlopen(file, flags) and dlmopen(space, file, flags): the next one, as if it had been called in our stead, once our symbols are ready
 * for what it binds. */
        .macro OPENING name
        .globl  \name
        .type   \name, %function
\name:
        .cfi_startproc
        hint    #34                     /* bti c */
        stp     x29, x30, [sp, #-48]!
        .cfi_def_cfa_offset 48
        .cfi_offset x29, -48
        .cfi_offset x30, -40
        stp     x0, x1, [sp, #16]
        str     x2, [sp, #32]
        bl      lapscope_before_\name
        mov     x16, x0
        ldr     x2, [sp, #32]
        ldp     x0, x1, [sp, #16]
        ldp     x29, x30, [sp], #48
        .cfi_def_cfa_offset 0
        br      x16
        .cfi_endproc
        .size   \name, . - \name
        .endm

#endif

        OPENING dlopen
        OPENING dlmopen
        .section .note.GNU-stack, "", %progbits
