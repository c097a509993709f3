/* Plays VTune's collector library: writes each call of resume and pause into the file ITT_LOG.
 * With -DWITH_INIT it fills in the caller's table, as current collectors do, and hides the calls. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <pthread.h>

static void note(const char *what) {
    FILE *log = fopen(getenv("ITT_LOG"), "a");
    fprintf(log, "%s\n", what);
    fclose(log);
}

#ifdef WITH_INIT
#define CALL static
#else
#define CALL
#endif

CALL void __itt_resume(void) { note("resume"); }
CALL void __itt_pause(void) { note("pause"); }

#ifdef WITH_INIT
/* As documented in ittnotify_config.h. */
typedef struct {
    const char *name;
    void **func_ptr;
    void *init_func;
    void *null_func;
    int group;
} api_info;

typedef struct {
    unsigned char magic[8];
    unsigned long version_major, version_minor, version_build;
    volatile long api_initialized, mutex_initialized, atomic_counter;
    pthread_mutex_t mutex;
    void *lib;
    void *error_handler;
    const char **dll_path_ptr;
    api_info *api_list_ptr;
} global_info;

void __itt_api_init(global_info *global, int groups) {
    static const unsigned char magic[8] = {0xED, 0xAB, 0xAB, 0xEC, 0x0D, 0xEE, 0xDA, 0x30};
    int at;
    if (memcmp(global->magic, magic, sizeof magic) != 0 || global->lib == NULL || groups == 0) {
        note("wrong caller");
        return;
    }
    note("init");
    for (at = 0; global->api_list_ptr[at].name != NULL; ++at) {
        const api_info *call = &global->api_list_ptr[at];
        if (strcmp(call->name, "__itt_resume") == 0) {
            *call->func_ptr = (void *)__itt_resume;
        } else if (strcmp(call->name, "__itt_pause") == 0) {
            *call->func_ptr = (void *)__itt_pause;
        } else {
            *call->func_ptr = call->null_func;
        }
    }
}
#endif
