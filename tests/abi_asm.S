/* SPDX-License-Identifier: MIT */
/*
 * abi_asm.S - what the compiler keeps to itself, for test_abi.c.
 *
 *   int px_abi_hold(int (*fn)(void *), void *arg, const uint64_t *marks);
 *       Fill every register that a call must keep with marks[0], marks[1], ...
 *       call fn(arg), and return a bit for each that has changed.
 *
 *   int px_abi_entry(void *arg);
 *       A fiber's body: store the stack pointer that it was entered with in
 *       *(uintptr_t *)arg, and return 0.
 */
#if defined(__x86_64__)

        .text
        .globl  px_abi_hold
        .type   px_abi_hold, @function
px_abi_hold:
        .cfi_startproc
        endbr64
        pushq   %rbx
        .cfi_adjust_cfa_offset 8
        .cfi_rel_offset %rbx, 0
        pushq   %rbp
        .cfi_adjust_cfa_offset 8
        .cfi_rel_offset %rbp, 0
        pushq   %r12
        .cfi_adjust_cfa_offset 8
        .cfi_rel_offset %r12, 0
        pushq   %r13
        .cfi_adjust_cfa_offset 8
        .cfi_rel_offset %r13, 0
        pushq   %r14
        .cfi_adjust_cfa_offset 8
        .cfi_rel_offset %r14, 0
        pushq   %r15
        .cfi_adjust_cfa_offset 8
        .cfi_rel_offset %r15, 0
        subq    $24, %rsp
        .cfi_adjust_cfa_offset 24
        movq    %rdx, (%rsp)
        movq    0(%rdx), %rbx
        movq    8(%rdx), %rbp
        movq    16(%rdx), %r12
        movq    24(%rdx), %r13
        movq    32(%rdx), %r14
        movq    40(%rdx), %r15
        movq    %rdi, %rax
        movq    %rsi, %rdi
        call    *%rax
        movq    (%rsp), %rdx
        xorl    %eax, %eax
        cmpq    0(%rdx), %rbx
        je      1f
        orl     $1, %eax
1:      cmpq    8(%rdx), %rbp
        je      2f
        orl     $2, %eax
2:      cmpq    16(%rdx), %r12
        je      3f
        orl     $4, %eax
3:      cmpq    24(%rdx), %r13
        je      4f
        orl     $8, %eax
4:      cmpq    32(%rdx), %r14
        je      5f
        orl     $16, %eax
5:      cmpq    40(%rdx), %r15
        je      6f
        orl     $32, %eax
6:      addq    $24, %rsp
        .cfi_adjust_cfa_offset -24
        popq    %r15
        .cfi_adjust_cfa_offset -8
        .cfi_restore %r15
        popq    %r14
        .cfi_adjust_cfa_offset -8
        .cfi_restore %r14
        popq    %r13
        .cfi_adjust_cfa_offset -8
        .cfi_restore %r13
        popq    %r12
        .cfi_adjust_cfa_offset -8
        .cfi_restore %r12
        popq    %rbp
        .cfi_adjust_cfa_offset -8
        .cfi_restore %rbp
        popq    %rbx
        .cfi_adjust_cfa_offset -8
        .cfi_restore %rbx
        ret
        .cfi_endproc
        .size   px_abi_hold, . - px_abi_hold

        .globl  px_abi_entry
        .type   px_abi_entry, @function
px_abi_entry:
        .cfi_startproc
        endbr64
        movq    %rsp, (%rdi)
        xorl    %eax, %eax
        ret
        .cfi_endproc
        .size   px_abi_entry, . - px_abi_entry

#elif defined(__aarch64__)

        .text
        .globl  px_abi_hold
        .type   px_abi_hold, %function
px_abi_hold:
        .cfi_startproc
        stp     x29, x30, [sp, #-176]!
        .cfi_def_cfa_offset 176
        .cfi_rel_offset x29, 0
        .cfi_rel_offset x30, 8
        stp     x19, x20, [sp, #16]
        .cfi_rel_offset x19, 16
        .cfi_rel_offset x20, 24
        stp     x21, x22, [sp, #32]
        .cfi_rel_offset x21, 32
        .cfi_rel_offset x22, 40
        stp     x23, x24, [sp, #48]
        .cfi_rel_offset x23, 48
        .cfi_rel_offset x24, 56
        stp     x25, x26, [sp, #64]
        .cfi_rel_offset x25, 64
        .cfi_rel_offset x26, 72
        stp     x27, x28, [sp, #80]
        .cfi_rel_offset x27, 80
        .cfi_rel_offset x28, 88
        stp     d8, d9, [sp, #96]
        .cfi_rel_offset d8, 96
        .cfi_rel_offset d9, 104
        stp     d10, d11, [sp, #112]
        .cfi_rel_offset d10, 112
        .cfi_rel_offset d11, 120
        stp     d12, d13, [sp, #128]
        .cfi_rel_offset d12, 128
        .cfi_rel_offset d13, 136
        stp     d14, d15, [sp, #144]
        .cfi_rel_offset d14, 144
        .cfi_rel_offset d15, 152
        str     x2, [sp, #160]
        ldp     x19, x20, [x2, #0]
        ldp     x21, x22, [x2, #16]
        ldp     x23, x24, [x2, #32]
        ldp     x25, x26, [x2, #48]
        ldp     x27, x28, [x2, #64]
        ldr     x29, [x2, #80]
        ldp     d8, d9, [x2, #88]
        ldp     d10, d11, [x2, #104]
        ldp     d12, d13, [x2, #120]
        ldp     d14, d15, [x2, #136]
        mov     x9, x0
        mov     x0, x1
        blr     x9
        ldr     x2, [sp, #160]
        mov     w0, #0
        .macro  differs register, number
        ldr     x3, [x2, #(\number * 8)]
        cmp     x3, \register
        cset    w4, ne
        orr     w0, w0, w4, lsl #\number
        .endm
        .macro  differs_d register, number
        fmov    x5, \register
        differs x5, \number
        .endm
        differs x19, 0
        differs x20, 1
        differs x21, 2
        differs x22, 3
        differs x23, 4
        differs x24, 5
        differs x25, 6
        differs x26, 7
        differs x27, 8
        differs x28, 9
        differs x29, 10
        differs_d d8, 11
        differs_d d9, 12
        differs_d d10, 13
        differs_d d11, 14
        differs_d d12, 15
        differs_d d13, 16
        differs_d d14, 17
        differs_d d15, 18
        ldp     x19, x20, [sp, #16]
        ldp     x21, x22, [sp, #32]
        ldp     x23, x24, [sp, #48]
        ldp     x25, x26, [sp, #64]
        ldp     x27, x28, [sp, #80]
        ldp     d8, d9, [sp, #96]
        ldp     d10, d11, [sp, #112]
        ldp     d12, d13, [sp, #128]
        ldp     d14, d15, [sp, #144]
        ldp     x29, x30, [sp], #176
        .cfi_restore x29
        .cfi_restore x30
        .cfi_def_cfa_offset 0
        ret
        .cfi_endproc
        .size   px_abi_hold, . - px_abi_hold

        .globl  px_abi_entry
        .type   px_abi_entry, %function
px_abi_entry:
        .cfi_startproc
        mov     x9, sp
        str     x9, [x0]
        mov     w0, #0
        ret
        .cfi_endproc
        .size   px_abi_entry, . - px_abi_entry

#endif

        .section .note.GNU-stack, "", %progbits
