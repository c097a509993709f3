# Boots from a CD without emulation: real mode, then long mode with every register state that the CPU
# has, then guest_main. Source: Intel SDM volume 3A, sections 9.8.5 (long mode) and 13.3 (XCR0).
    .set TABLES, 0x80000            # PML4, PDPT and PD, a page each

    .code16
    .section .text.start, "ax"
    .globl start
start:
    ljmp $0, $segments_known
segments_known:
    cli
    xorw %ax, %ax
    movw %ax, %ds
    movw %ax, %ss
    movw $0x7000, %sp
    movw $0x2401, %ax               # the BIOS opens address line 20
    int $0x15
    cli
    movw $(TABLES >> 4), %ax
    movw %ax, %es
    xorw %di, %di
    xorl %eax, %eax
    movw $(3 * 4096 / 4), %cx
    rep stosl
    movl $(TABLES + 0x1003), %es:0x0000
    movl $(TABLES + 0x2003), %es:0x1000
    movw $0x2000, %di
    movl $0x83, %eax                # present, writable, 2 MiB
next_page:
    movl %eax, %es:(%di)
    addl $0x200000, %eax
    addw $8, %di
    cmpw $0x3000, %di
    jne next_page
    movl $0x40620, %eax             # PAE OSFXSR OSXMMEXCPT OSXSAVE
    movl %eax, %cr4
    movl $TABLES, %eax
    movl %eax, %cr3
    movl $0xc0000080, %ecx          # EFER.LME
    rdmsr
    orl $0x100, %eax
    wrmsr
    lgdtl descriptors
    movl $0x80000033, %eax          # PG NE ET MP PE
    movl %eax, %cr0
    ljmpl $8, $in_long_mode

    .code64
in_long_mode:
    movw $16, %ax
    movw %ax, %ds
    movw %ax, %es
    movw %ax, %ss
    movl $0x700000, %esp
    movl $0xd, %eax
    xorl %ecx, %ecx
    cpuid
    andl $0x602e7, %eax             # x87 SSE AVX, AVX-512, tiles, as far as there are
    xorl %edx, %edx
    xorl %ecx, %ecx
    xsetbv
    movq $bss_begin, %rdi
    movq $bss_end, %rcx
    subq %rdi, %rcx
    xorl %eax, %eax
    rep stosb
    call guest_main
    movw $0x8900, %dx               # this word ends Bochs
    movq $ending, %rsi
    movl $8, %ecx
    rep outsb
stop:
    hlt
    jmp stop

ending:
    .ascii "Shutdown"
    .balign 8
table:
    .quad 0, 0x00af9a000000ffff, 0x00cf92000000ffff
descriptors:
    .word 23
    .long table
