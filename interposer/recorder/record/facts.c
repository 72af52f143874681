#define _GNU_SOURCE
#include "facts.h"

#include "../base/accelerator.h"
#include "../base/config.h"
#include "../base/mpi_api.h"
#include "../base/process.h"
#include "../base/secrets.h"
#include "control_variables.h"
#include "counters.h"
#include "meter.h"
#include "modules.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#ifndef LAPSCOPE_VERSION
#error "LAPSCOPE_VERSION comes from the build"
#endif

static void write_environment(struct thread *t)
{
    static const char prefix[] = "environment.";
    char key[256 + sizeof prefix], value[4096];
    char ***environment = process_symbol("environ");
    for (char **variable = environment ? *environment : NULL; variable && *variable; variable++) {
        const char *equals = strchr(*variable, '=');
        if (!equals || equals - *variable > 255 || !secrets_may_record(*variable, (size_t)(equals - *variable)))
            continue;
        snprintf(key, sizeof key, "%s%.*s", prefix, (int)(equals - *variable), *variable);
        secrets_hide_value(key + strlen(prefix), equals + 1, value, sizeof value);
        spool_define_meta(&t->stream, key, value);
    }
}

static void write_options(struct thread *t)
{
    char key[128], text[4096 + 64];
    const char *value, *source, *name;
    for (unsigned i = 0; (name = config_describe(i, &value, &source)); i++) {
        snprintf(key, sizeof key, "option.%s", name);
        snprintf(text, sizeof text, "%.4000s\t%s", value, source);
        spool_define_meta(&t->stream, key, text);
    }
}

static void write_counters(struct thread *t)
{
    char key[32], text[sizeof(struct counter) + 8];
    const struct counter *counter;
    for (unsigned i = 0; (counter = counters_asked(i)); i++) {
        snprintf(key, sizeof key, "counter.%u", i);
        snprintf(text, sizeof text, "%s\t%s\t%s\t%s", counter->name, counter->unit, counter->problem, counter->description);
        spool_define_meta(&t->stream, key, text);
    }
}

void facts_write_counted(struct thread *t)
{
    int64_t values[SPOOL_MAX_COUNTERS] = {0};
    char key[32], text[32];
    const struct counter *counter;
    unsigned place = 0;
    int is_all = t->meter != NULL;
    for (unsigned i = 0; i < thread_count && is_all; i++)
        is_all = threads[i]->meter && meter_add_outside(threads[i]->meter, values);
    for (unsigned i = 0; is_all && (counter = counters_asked(i)); i++) {
        if (*counter->problem)
            continue;
        snprintf(key, sizeof key, "counted.%u", i);
        snprintf(text, sizeof text, "%lld", (long long)values[place++]);
        spool_define_meta(&t->stream, key, text);
    }
}

static void write_recorded(struct thread *t, const char *key, const char *value)
{
    char text[64];
    snprintf(text, sizeof text, "%s\trecorded", value);
    spool_define_meta(&t->stream, key, text);
}

/* Whether MPI takes buffers in memory of accelerators, and of whose, as far as it says so: functions that MPIs have beside the
 * standard. Only Open MPI's are asked, which tell how it was built: MPICH's end the process where it is not up, and an assertion in
 * some of its versions is the wrong way round. */
static void write_device_buffers(struct thread *t)
{
    static const char *const names[][2] = {{"cuda", "MPIX_Query_cuda_support"}, {"rocm", "MPIX_Query_rocm_support"},
                                           {"hip", "MPIX_Query_hip_support"}, {"ze", "MPIX_Query_ze_support"}};
    char text[32] = "";
    int is_known = 0;
    if (strcmp(mpi.abi, "openmpi") != 0)
        return;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        int (*query)(void) = (int (*)(void))mpi.lookup(names[i][1]);
        if (query && query() > 0)
            snprintf(text + strlen(text), sizeof text - strlen(text), "%s%s", *text ? "," : "", names[i][0]);
        is_known |= query != NULL;
    }
    if (is_known)
        write_recorded(t, "option.device_buffers", *text ? text : "none");
}

void facts_look(struct thread *t)
{
    static int is_written;
    const char *library = __atomic_load_n(&is_written, __ATOMIC_RELAXED) ? NULL : accelerator_seen();
    if (!library || __atomic_exchange_n(&is_written, 1, __ATOMIC_RELAXED))
        return;
    write_recorded(t, "option.accelerator", library);
    write_device_buffers(t);
}

/* Of a program that ends otherwise it is not known, as somebody may have initialised it until then. */
static int is_unused;

int facts_look_for_use(struct thread *t)
{
    facts_look(t);
    return !accelerator_library() || accelerator_may_be_used();
}

void facts_write_use(struct thread *t, int is_used)
{
    is_unused = !is_used;
    if (is_unused)
        write_recorded(t, "option.cuda", "unused");
}

void facts_take_use_back(struct thread *t)
{
    if (is_unused)
        write_recorded(t, "option.cuda", "not known");
    is_unused = 0;
}

void facts_command(char *text, size_t bytes)
{
    char words[16384];
    int fd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
    ssize_t length = fd >= 0 ? read(fd, words, sizeof words - 1) : 0;
    if (fd >= 0)
        close(fd);
    words[length > 0 ? length : 0] = '\0';
    if (!config.command_line)
        length = (ssize_t)strlen(words);
    secrets_hide(words, length > 0 ? (size_t)length : 0, '\0', text, bytes);
}

static void write_program(struct thread *t)
{
    char text[16384];
    ssize_t length = readlink("/proc/self/exe", text, sizeof text - 1);
    text[length > 0 ? length : 0] = '\0';
    spool_define_meta(&t->stream, "executable", text);
    facts_command(text, sizeof text);
    spool_define_meta(&t->stream, "command", text);
}

static void write_mpi(struct thread *t, const struct job *job)
{
    static char text[MPI_MAX_LIBRARY_VERSION_STRING + 1];
    char standard[32];
    int length = 0, version = 0, subversion = 0;
    mpi.Get_library_version(text, &length);
    text[strcspn(text, "\n")] = '\0';
    mpi.Get_version(&version, &subversion);
    snprintf(standard, sizeof standard, "%d.%d", version, subversion);
    spool_define_meta(&t->stream, "mpi_abi", mpi.abi);
    spool_define_meta(&t->stream, "mpi_library", text);
    spool_define_meta(&t->stream, "mpi_standard", standard);
    if (config.record != CONFIG_RECORD_JOB) /* whose user has asked for nothing */
        job_say_alone(job, mpi.abi, text);
    modules_define(t, &(uintptr_t){(uintptr_t)mpi.Get_library_version}, 1); /* which file it is, also without call paths */
}

void facts_write(struct thread *t, const struct job *job)
{
    write_program(t);
    write_mpi(t, job);
    spool_define_meta(&t->stream, "lapscope_version", LAPSCOPE_VERSION);
    spool_define_meta(&t->stream, "job", job->identity);
    write_options(t);
    write_counters(t);
    write_environment(t);
    control_variables_define(t);
}
