// As much of Arduino's interface as the sketch has.
#pragma once
#include <stddef.h>
#include <stdint.h>

struct Console {
    void begin(unsigned long) {}
    explicit operator bool() const { return true; }
    size_t write(const char* text, size_t n_bytes);
};
extern Console Serial;

unsigned long micros();
void setup();
void loop();
