// The demo model's file as it is, where the program's constants are. FOVEA_DEMO_FILE comes from tools/CMakeLists.txt.
#if defined(__APPLE__)  // C's names have a line before them there
#define BEGIN _fovea_demo_model_begin
#define END _fovea_demo_model_end
    .section __TEXT,__const
    .private_extern BEGIN
    .private_extern END
#else
#define BEGIN fovea_demo_model_begin
#define END fovea_demo_model_end
    .section .rodata.fovea_demo_model, "a"
    .hidden BEGIN
    .hidden END
#endif
    .globl BEGIN
    .globl END
    .balign 64
BEGIN:
    .incbin FOVEA_DEMO_FILE
END:
    .byte 0

#if defined(__ELF__)  // no code here needs a stack that can be executed
    .section .note.GNU-stack, "", %progbits
#endif
