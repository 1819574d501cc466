// A plugin for qemu's user mode that counts the instructions of a program, all threads together, and prints them at its
// end:
//     gcc -shared -fPIC -O2 bench/scripts/qemu_count.c -o count.so
//     qemu-aarch64 -plugin ./count.so -L /usr/aarch64-linux-gnu build/aarch64/fovea run -n 16 -p 'turn' --threads 1
// No package has qemu's header for plugins: what is used of version 1 of their interface is declared here.
#include <inttypes.h>
#include <stdio.h>

struct qemu_plugin_tb;
struct qemu_info_t;
void qemu_plugin_register_vcpu_tb_trans_cb(uint64_t id, void (*translated)(uint64_t id, struct qemu_plugin_tb* block));
void qemu_plugin_register_vcpu_tb_exec_inline(struct qemu_plugin_tb* block, int operation, void* counter, uint64_t n);
void qemu_plugin_register_atexit_cb(uint64_t id, void (*ended)(uint64_t id, void* data), void* data);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb* block);

int qemu_plugin_version = 1;
static uint64_t n_instructions;

static void count(uint64_t id, struct qemu_plugin_tb* block) {
    (void)id;
    qemu_plugin_register_vcpu_tb_exec_inline(block, 0, &n_instructions, qemu_plugin_tb_n_insns(block));  // 0: add
}

static void print(uint64_t id, void* data) {
    (void)id, (void)data;
    fprintf(stderr, "instructions %" PRIu64 "\n", n_instructions);
}

int qemu_plugin_install(uint64_t id, const struct qemu_info_t* info, int argc, char** argv) {
    (void)info, (void)argc, (void)argv;
    qemu_plugin_register_vcpu_tb_trans_cb(id, count);
    qemu_plugin_register_atexit_cb(id, print, 0);
    return 0;
}
