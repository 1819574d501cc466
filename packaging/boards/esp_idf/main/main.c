#include <stdio.h>

#include <esp_timer.h>
#include <freertos/FreeRTOS.h>
#include <freertos/task.h>
#include "start.h"

int run_demo(void);

void board_write(const char* text, size_t n_bytes) { fwrite(text, 1, n_bytes, stdout); }

uint64_t board_clock_ns(void) { return (uint64_t)esp_timer_get_time() * 1000; }

size_t board_stack_used(void) {
    const size_t all = CONFIG_ESP_MAIN_TASK_STACK_SIZE,
                 unused = uxTaskGetStackHighWaterMark(NULL) * sizeof(StackType_t);
    return unused < all ? all - unused : 0;  // 0: a simulator, whose stacks are others
}

void app_main(void) {
    run_demo();
    fflush(stdout);
}
