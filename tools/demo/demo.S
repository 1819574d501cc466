// The demo model's file as it is, where the program's constants are. FOVEA_DEMO_FILE comes from tools/CMakeLists.txt.
    .section .rodata.fovea_demo_model, "a"
    .balign 64
    .globl fovea_demo_model_begin
    .globl fovea_demo_model_end
    .hidden fovea_demo_model_begin
    .hidden fovea_demo_model_end
fovea_demo_model_begin:
    .incbin FOVEA_DEMO_FILE
fovea_demo_model_end:
    .byte 0

// No code here needs a stack that can be executed.
    .section .note.GNU-stack, "", %progbits
