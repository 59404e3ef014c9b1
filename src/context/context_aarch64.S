/* SPDX-License-Identifier: MIT */
/*
 * context_aarch64.S - the switch for the 64-bit Arm ABI.
 *
 * The saved frame, from low to high addresses:
 *    0 x19 x20   16 x21 x22   32 x23 x24   48 x25 x26   64 x27 x28
 *   80 x29 x30   96 d8 ... d15   160 FPCR   168 unused
 *
 * FPCR is written only when it differs: the write waits for every instruction
 * before it. No BTI note is claimed: a new context is entered by a return.
 */
#if defined(__aarch64__)

/* The first half of a switch: the frame, and where it is in *x0. x9: FPCR. */
        .macro  leave_frame
        sub     sp, sp, #176
        .cfi_def_cfa_offset 176
        stp     x19, x20, [sp, #0]
        stp     x21, x22, [sp, #16]
        stp     x23, x24, [sp, #32]
        stp     x25, x26, [sp, #48]
        stp     x27, x28, [sp, #64]
        stp     x29, x30, [sp, #80]
        stp     d8, d9, [sp, #96]
        stp     d10, d11, [sp, #112]
        stp     d12, d13, [sp, #128]
        stp     d14, d15, [sp, #144]
        .cfi_offset x19, -176
        .cfi_offset x20, -168
        .cfi_offset x21, -160
        .cfi_offset x22, -152
        .cfi_offset x23, -144
        .cfi_offset x24, -136
        .cfi_offset x25, -128
        .cfi_offset x26, -120
        .cfi_offset x27, -112
        .cfi_offset x28, -104
        .cfi_offset x29, -96
        .cfi_offset x30, -88
        mrs     x9, fpcr
        str     x9, [sp, #160]
        mov     x10, sp
        str     x10, [x0]
        .endm

        .text
        .globl  px__context_switch
        .hidden px__context_switch
        .type   px__context_switch, %function
        .p2align 6
px__context_switch:
        .cfi_startproc
        leave_frame
        /* From here on the frame is the other one's, of the same layout. */
        mov     sp, x1
.Larrive:
        ldr     x10, [sp, #160]
        cmp     x9, x10
        b.ne    2f
1:      ldp     x19, x20, [sp, #0]
        ldp     x21, x22, [sp, #16]
        ldp     x23, x24, [sp, #32]
        ldp     x25, x26, [sp, #48]
        ldp     x27, x28, [sp, #64]
        ldp     x29, x30, [sp, #80]
        ldp     d8, d9, [sp, #96]
        ldp     d10, d11, [sp, #112]
        ldp     d12, d13, [sp, #128]
        ldp     d14, d15, [sp, #144]
        .cfi_remember_state
        .cfi_restore x19
        .cfi_restore x20
        .cfi_restore x21
        .cfi_restore x22
        .cfi_restore x23
        .cfi_restore x24
        .cfi_restore x25
        .cfi_restore x26
        .cfi_restore x27
        .cfi_restore x28
        .cfi_restore x29
        .cfi_restore x30
        add     sp, sp, #176
        .cfi_def_cfa_offset 0
        mov     w0, w2
        ret
        .cfi_restore_state
2:      msr     fpcr, x10
        b       1b
        .cfi_endproc
        .size   px__context_switch, .-px__context_switch

/* x0: from (not needed), x1: to, w2: verdict. The second half of a switch. */
        .globl  px__context_leave
        .hidden px__context_leave
        .type   px__context_leave, %function
        .p2align 4
px__context_leave:
        .cfi_startproc
        mrs     x9, fpcr
        .cfi_undefined x30
        mov     sp, x1
        b       .Larrive
        .cfi_endproc
        .size   px__context_leave, .-px__context_leave

/* x0: save, x1: top, x2: low (not needed), x3: entry, x4: its argument, x5:
 * from (not needed). The first half of a switch, and px__context_entry. */
        .globl  px__context_launch
        .hidden px__context_launch
        .type   px__context_launch, %function
        .p2align 6
px__context_launch:
        .cfi_startproc
        leave_frame
        .cfi_undefined x30
        sub     sp, x1, #16
        mov     x0, x4
        mov     x29, xzr
        adr     x30, .Lentered
        br      x3
        .cfi_endproc
        .size   px__context_launch, .-px__context_launch

/* Where a new context begins: x19 is the entry, x20 its argument. The return
 * address is said to be undefined, and the frame pointer is zero: unwinders
 * and debuggers stop here. */
        .type   px__context_entry, %function
        .p2align 4
px__context_entry:
        .cfi_startproc
        .cfi_undefined x30
        mov     x0, x20
        mov     x29, xzr
        mov     x30, xzr
        blr     x19
.Lentered:
        brk     #1
        .cfi_endproc
        .size   px__context_entry, .-px__context_entry

/* x0: top, x1: low (not needed), x2: entry, x3: its argument. */
        .globl  px__context_make
        .hidden px__context_make
        .type   px__context_make, %function
        .p2align 4
px__context_make:
        .cfi_startproc
        sub     x0, x0, #192
        stp     x2, x3, [x0, #0]
        stp     xzr, xzr, [x0, #16]
        stp     xzr, xzr, [x0, #32]
        stp     xzr, xzr, [x0, #48]
        stp     xzr, xzr, [x0, #64]
        adr     x9, px__context_entry
        stp     xzr, x9, [x0, #80]
        stp     xzr, xzr, [x0, #96]
        stp     xzr, xzr, [x0, #112]
        stp     xzr, xzr, [x0, #128]
        stp     xzr, xzr, [x0, #144]
        mrs     x9, fpcr
        stp     x9, xzr, [x0, #160]
        stp     xzr, xzr, [x0, #176]
        ret
        .cfi_endproc
        .size   px__context_make, .-px__context_make

#endif

#if defined(__linux__) && defined(__ELF__)
        .section .note.GNU-stack, "", %progbits
#endif
