/* SPDX-License-Identifier: MIT */
/*
 * context_x86_64.S - the switch for the System V ABI on x86-64.
 *
 * The saved frame, from low to high addresses:
 *    0 MXCSR   4 x87 control word   8 r15  16 r14  24 r13  32 r12  40 rbx
 *   48 rbp    56 return address
 *
 * How it leaves. After a switch the return predictor expects the leaver's
 * caller. Fibers that run the same loop return to the same address, so a plain
 * ret is predicted; fibers that do not would pay for a misprediction, and pop
 * and jump instead. Always jumping would unbalance the predictor for every
 * frame around the call. The leaver's return address (rcx) tells them apart.
 *
 * Only the control bits of MXCSR are compared: the sticky flags differ between
 * any two fibers that compute, and loading MXCSR costs more than the rest. Even
 * reading it takes its time (14 cycles on a Zen 4, which does so only when all
 * before it is done): it is stored first of all, into the red zone, where the
 * frame will be, and what it was is looked at as late as possible.
 */
#if defined(__x86_64__) && !defined(__ILP32__)

#ifdef __CET__
#define LANDING endbr64
#define JUMP notrack jmp
#else
#define LANDING
#define JUMP jmp
#endif

        .text
        .globl  px__context_switch
        .hidden px__context_switch
        .type   px__context_switch, @function
        .p2align 6
px__context_switch:
        .cfi_startproc
        LANDING
        stmxcsr -56(%rsp)
        fnstcw  -52(%rsp)
        movq    (%rsp), %rcx
        pushq   %rbp
        .cfi_adjust_cfa_offset 8
        .cfi_rel_offset rbp, 0
        pushq   %rbx
        .cfi_adjust_cfa_offset 8
        .cfi_rel_offset rbx, 0
        pushq   %r12
        .cfi_adjust_cfa_offset 8
        .cfi_rel_offset r12, 0
        pushq   %r13
        .cfi_adjust_cfa_offset 8
        .cfi_rel_offset r13, 0
        pushq   %r14
        .cfi_adjust_cfa_offset 8
        .cfi_rel_offset r14, 0
        pushq   %r15
        .cfi_adjust_cfa_offset 8
        .cfi_rel_offset r15, 0
        subq    $8, %rsp
        .cfi_adjust_cfa_offset 8
        movq    %rsp, (%rdi)
        movq    %rsp, %r10
        /* From here on the frame is the other one's, of the same layout. */
        movq    %rsi, %rsp
.Larrive:
        movl    (%r10), %r8d
        movzwl  4(%r10), %r9d
        xorl    (%rsp), %r8d
        testl   $0xffffffc0, %r8d
        jne     2f
        cmpw    4(%rsp), %r9w
        jne     2f
1:      addq    $8, %rsp
        .cfi_adjust_cfa_offset -8
        popq    %r15
        .cfi_adjust_cfa_offset -8
        .cfi_restore r15
        popq    %r14
        .cfi_adjust_cfa_offset -8
        .cfi_restore r14
        popq    %r13
        .cfi_adjust_cfa_offset -8
        .cfi_restore r13
        popq    %r12
        .cfi_adjust_cfa_offset -8
        .cfi_restore r12
        popq    %rbx
        .cfi_adjust_cfa_offset -8
        .cfi_restore rbx
        popq    %rbp
        .cfi_adjust_cfa_offset -8
        .cfi_restore rbp
        movl    %edx, %eax
        cmpq    %rcx, (%rsp)
        jne     3f
        ret
3:      popq    %rcx
        .cfi_adjust_cfa_offset -8
        .cfi_register rip, rcx
        JUMP    *%rcx
        /* Other control bits: not in another section, where the CFI of this
         * one would be lost. What the x87 has flagged goes first, or unmasking
         * would raise it here. */
        .cfi_def_cfa rsp, 64
        .cfi_offset rip, -8
        .cfi_offset rbp, -16
        .cfi_offset rbx, -24
        .cfi_offset r12, -32
        .cfi_offset r13, -40
        .cfi_offset r14, -48
        .cfi_offset r15, -56
2:      ldmxcsr (%rsp)
        fnclex
        fldcw   4(%rsp)
        jmp     1b
        .cfi_endproc
        .size   px__context_switch, .-px__context_switch

/* rdi: from, rsi: to, edx: verdict. The second half of a switch. */
        .globl  px__context_leave
        .hidden px__context_leave
        .type   px__context_leave, @function
        .p2align 4
px__context_leave:
        .cfi_startproc
        LANDING
        leaq    -8(%rsp), %r10
        stmxcsr (%r10)
        fnstcw  4(%r10)
        movq    %rdi, %rcx
        .cfi_undefined rip
        movq    %rsi, %rsp
        jmp     .Larrive
        .cfi_endproc
        .size   px__context_leave, .-px__context_leave

/* rdi: save, rsi: top, rdx: low (not needed), rcx: entry, r8: its argument,
 * r9: from. The first half of a switch, and what px__context_entry does; but
 * the entry is jumped to, with the return address that a call would have left.
 * The return predictor does not see it then: a body that never parked finds its
 * starter's call on top of it, to leave by ret. */
        .globl  px__context_launch
        .hidden px__context_launch
        .type   px__context_launch, @function
        .p2align 6
px__context_launch:
        .cfi_startproc
        LANDING
        stmxcsr -56(%rsp)
        fnstcw  -52(%rsp)
        movq    (%rsp), %rax
        movq    %rbp, -8(%rsp)
        movq    %rbx, -16(%rsp)
        movq    %r12, -24(%rsp)
        movq    %r13, -32(%rsp)
        movq    %r14, -40(%rsp)
        movq    %r15, -48(%rsp)
        leaq    -56(%rsp), %r10
        movq    %r10, (%rdi)
        movq    %rax, (%r9)
        leaq    .Lentered(%rip), %rax
        .cfi_undefined rip
        leaq    -24(%rsi), %rsp
        movq    %rax, (%rsp)
        movq    %r8, %rdi
        xorl    %ebp, %ebp
        JUMP    *%rcx
        .cfi_endproc
        .size   px__context_launch, .-px__context_launch

/* Where a new context begins: rbx is the entry, r12 its argument. The return
 * address is said to be undefined, and the frame pointer is zero: unwinders
 * and debuggers stop here. */
        .type   px__context_entry, @function
        .p2align 4
px__context_entry:
        .cfi_startproc
        .cfi_undefined rip
        LANDING
        movq    %r12, %rdi
        xorl    %ebp, %ebp
        call    *%rbx
.Lentered:
        ud2
        .cfi_endproc
        .size   px__context_entry, .-px__context_entry

/* rdi: top, rsi: low (not needed), rdx: entry, rcx: its argument. */
        .globl  px__context_make
        .hidden px__context_make
        .type   px__context_make, @function
        .p2align 4
px__context_make:
        .cfi_startproc
        LANDING
        leaq    -80(%rdi), %rax
        stmxcsr (%rax)
        fnstcw  4(%rax)
        xorl    %r8d, %r8d
        movq    %r8, 8(%rax)
        movq    %r8, 16(%rax)
        movq    %r8, 24(%rax)
        movq    %rcx, 32(%rax)
        movq    %rdx, 40(%rax)
        movq    %r8, 48(%rax)
        leaq    px__context_entry(%rip), %r9
        movq    %r9, 56(%rax)
        movq    %r8, 64(%rax)
        movq    %r8, 72(%rax)
        ret
        .cfi_endproc
        .size   px__context_make, .-px__context_make

/* Not SHSTK: the switch does not switch shadow stacks, so it must not claim
 * to. IBT only where it was built with landing pads. */
#ifdef __CET__
        .section .note.gnu.property, "a", @note
        .p2align 3
        .long   4, 16, 5
        .asciz  "GNU"
        .long   0xc0000002, 4, 1, 0
#endif
#endif

#if defined(__linux__) && defined(__ELF__)
        .section .note.GNU-stack, "", %progbits
#endif
