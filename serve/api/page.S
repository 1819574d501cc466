// The files of the page at "/" as they are, where the program's constants are. serve/CMakeLists.txt has the assembler search
// their folder.
#if defined(__APPLE__)  // C's names have a line before them there
#define PREFIX _fovea_
#define HIDDEN .private_extern
    .section __TEXT,__const
#else
#define PREFIX fovea_
#define HIDDEN .hidden
    .section .rodata.fovea_page, "a"
#endif
    .macro page_file symbol, name
    .globl PREFIX\symbol\()_begin
    .globl PREFIX\symbol\()_end
    HIDDEN PREFIX\symbol\()_begin
    HIDDEN PREFIX\symbol\()_end
PREFIX\symbol\()_begin:
    .incbin "\name"
PREFIX\symbol\()_end:
    .byte 0
    .endm

#define FOVEA_PAGE_FILE(symbol, name, type) page_file symbol, name
#include "serve/api/page_files.inc"

#if defined(__ELF__)  // no code here needs a stack that can be executed
    .section .note.GNU-stack, "", %progbits
#endif
