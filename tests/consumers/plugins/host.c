/* A program with a Fovea of its own, whose plugins see each other's symbols. A thread of it uses them, closes them and ends.
 *     host keep PLUGIN...   they stay loaded, for they have threads
 *     host close PLUGIN...  they may go, for a library that stays has the threads
 *     host end PLUGIN...    they end their threads and are unloaded */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "fovea/fovea.h"

static int ends_threads;

static void fail(const char* why) {
    fprintf(stderr, "%s\n", why);
    _Exit(1);
}

static void* use_plugins(void* arguments) {
    char** const paths = arguments;
    void* plugins[8] = {0};
    int n = 0;
    for (; n < 8 && paths[n]; ++n)
        if (!(plugins[n] = dlopen(paths[n], RTLD_NOW | RTLD_GLOBAL))) fail(dlerror());
    for (int i = 0; i < n; ++i) {
        int (*use)(int) = NULL;
        *(void**)&use = dlsym(plugins[i], "use_plugin");
        if (!use || !use(ends_threads)) fail("no plugin with three threads");
    }
    while (n) dlclose(plugins[--n]);
    nanosleep(&(struct timespec){.tv_nsec = 10 * 1000 * 1000}, NULL); /* until idle threads sleep */
    return NULL;
}

int main(int n, char** arguments) {
    pthread_t thread;
    if (n < 2) fail("usage: host keep|close|end PLUGIN...");
    ends_threads = strcmp(arguments[1], "end") == 0;
    if (pthread_create(&thread, NULL, use_plugins, arguments + 2) != 0) fail("no thread");
    pthread_join(thread, NULL);
    const int may_go = strcmp(arguments[1], "close") == 0;
    for (int i = 2; i < n && !may_go; ++i)
        if (!dlopen(arguments[i], RTLD_NOW | RTLD_NOLOAD) != ends_threads) fail(ends_threads ? "loaded" : "unloaded");
    printf("%s\n", fovea_version());
    return 0;
}
