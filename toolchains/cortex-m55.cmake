# Cortex-M55 with Helium, for integers only: its vectors of floats flush subnormal numbers to zero.
set(FOVEA_CPU_FLAGS -mcpu=cortex-m55+nomve.fp)
set(FOVEA_MACHINE mps3-an547)
set(FOVEA_BOARD mps3)
set(FOVEA_BOARD_MHZ 32)
include(${CMAKE_CURRENT_LIST_DIR}/cortex-m.cmake)
