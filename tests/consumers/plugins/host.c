/* A program with a Fovea of its own and plugins, whose symbols all see each other: host PLUGIN... */
#include <dlfcn.h>
#include <stdio.h>

#include "fovea/fovea.h"

int main(int n, char** paths) {
    for (int i = 1; i < n; ++i) {
        void* const plugin = dlopen(paths[i], RTLD_NOW | RTLD_GLOBAL);
        void (*describe)(void) = NULL;
        if (plugin) *(void**)&describe = dlsym(plugin, "describe_plugin");
        if (!describe) {
            fprintf(stderr, "%s\n", dlerror());
            return 1;
        }
        describe();
        fflush(stdout);
    }
    printf("%s\n", fovea_version());
    return 0;
}
