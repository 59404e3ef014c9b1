/* SPDX-License-Identifier: MIT */
/* load_plugin.c - a program that knows nothing of fibers loads plugin.so. */
#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    void *plugin = argc == 2 ? dlopen(argv[1], RTLD_NOW) : NULL;
    int (*run)(int n) = NULL;

    if (plugin)
        *(void **)&run = dlsym(plugin, "plugin_run");
    if (!run) {
        fprintf(stderr, "%s\n", argc == 2 ? dlerror() : "which plugin?");
        return 1;
    }
    return run(1000) == 0 ? 0 : 1;
}
