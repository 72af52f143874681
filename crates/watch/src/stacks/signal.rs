//! Frames of handlers of signals: the kernel has put the registers of what was interrupted on the stack, and a handler returns to
//! a few instructions that give them back, rt_sigreturn(2).

use super::stop::Registers;

/// Whether these instructions end a handler: `mov $15, %eax; syscall`.
#[cfg(target_arch = "x86_64")]
pub fn is_return_from_handler(instructions: &[u8]) -> bool {
    const LONG: [u8; 9] = [0x48, 0xc7, 0xc0, 15, 0, 0, 0, 0x0f, 0x05];
    const SHORT: [u8; 7] = [0xb8, 15, 0, 0, 0, 0x0f, 0x05];
    instructions.starts_with(&LONG) || instructions.starts_with(&SHORT)
}

/// Whether these instructions end a handler: `mov x8, #139; svc #0`.
#[cfg(target_arch = "aarch64")]
pub fn is_return_from_handler(instructions: &[u8]) -> bool {
    instructions.starts_with(&[0x68, 0x11, 0x80, 0xd2, 0x01, 0x00, 0x00, 0xd4])
}

/// The registers that a handler's return gives back; `stack` as it is then: there `struct rt_sigframe` goes on with the context,
/// linux/arch/x86/include/asm/sigframe.h.
#[cfg(target_arch = "x86_64")]
pub fn interrupted(stack: u64, mut word: impl FnMut(u64) -> Option<u64>) -> Option<Registers> {
    const GENERAL: u64 = 40; // behind flags, link and uc_stack
    let mut register = |number: u64| word(stack.checked_add(GENERAL + 8 * number)?);
    let [r12, r13, r14, r15] = [register(4)?, register(5)?, register(6)?, register(7)?];
    let (rbp, rbx) = (register(10)?, register(11)?);
    Some(Registers {
        instruction: register(16)?,
        stack: register(15)?,
        frame: Some(rbp),
        link: 0,
        preserved: [rbx, rbp, r12, r13, r14, r15].map(Some),
    })
}

/// Likewise, linux/arch/arm64/kernel/signal.c: `siginfo` comes first.
#[cfg(target_arch = "aarch64")]
pub fn interrupted(stack: u64, mut word: impl FnMut(u64) -> Option<u64>) -> Option<Registers> {
    const GENERAL: u64 = 128 + 176 + 8;
    let mut register = |number: u64| word(stack.checked_add(GENERAL + 8 * number)?);
    Some(Registers {
        frame: Some(register(29)?),
        link: register(30)?,
        stack: register(31)?,
        instruction: register(32)?,
        preserved: [None; 6],
    })
}
