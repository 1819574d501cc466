// The files of the page at "/" as they are, where the program's constants are. serve/CMakeLists.txt has the assembler search
// their folder.
    .macro page_file symbol, name
    .globl fovea_\symbol\()_begin
    .globl fovea_\symbol\()_end
    .hidden fovea_\symbol\()_begin
    .hidden fovea_\symbol\()_end
fovea_\symbol\()_begin:
    .incbin "\name"
fovea_\symbol\()_end:
    .byte 0
    .endm

    .section .rodata.fovea_page, "a"
#define FOVEA_PAGE_FILE(symbol, name, type) page_file symbol, name
#include "serve/api/page_files.inc"

// No code here needs a stack that can be executed.
    .section .note.GNU-stack, "", %progbits
