// The demo's model in flash answers three prompts. "logits @HASH@" are a desktop's, bit by bit.
#include <Fovea.h>

extern "C" int run_demo(void);

#ifdef ESP32
SET_LOOP_TASK_STACK_SIZE(12 * 1024);
#endif

void setup() {
    Serial.begin(115200);
    while (!Serial) {
    }
    run_demo();
}

void loop() {}
