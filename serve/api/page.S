// The page at "/" as it is, where the program's constants are. FOVEA_PAGE_FILE comes from serve/CMakeLists.txt.
    .section .rodata.fovea_page, "a"
    .globl fovea_page_begin
    .globl fovea_page_end
    .hidden fovea_page_begin
    .hidden fovea_page_end
fovea_page_begin:
    .incbin FOVEA_PAGE_FILE
fovea_page_end:
    .byte 0

// No code here needs a stack that can be executed.
    .section .note.GNU-stack, "", %progbits
