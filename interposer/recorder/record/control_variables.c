#define _GNU_SOURCE
#include "control_variables.h"

#include "../base/mpi_api.h"
#include "../spool/definitions.h"

#include <stdio.h>

#ifdef OPEN_MPI

/*
 * Open MPI's own table of variables, which MPI_Init has filled: a look-up by name. MPI_T_init_thread would open every
 * framework first, 0.2 s and components that the application never asked for. The functions are exported by libopen-pal
 * (seen: 3.1 to 5.0), with these types; a variable of a component that is not in use is not found.
 */
enum { OPAL_SUCCESS = 0 };
typedef int find_fn(const char *full_name, int *index);
typedef int get_fn(int index, const void *storage, void *source, const char **file);

static const char *const sizes[] = {
    "btl_self_eager_limit",  "btl_self_rndv_eager_limit",  "btl_self_max_send_size",  "btl_vader_eager_limit",
    "btl_vader_rndv_eager_limit", "btl_vader_max_send_size", "btl_sm_eager_limit",    "btl_sm_rndv_eager_limit",
    "btl_sm_max_send_size",  "btl_tcp_eager_limit",        "btl_tcp_rndv_eager_limit", "btl_tcp_max_send_size",
    "btl_openib_eager_limit", "btl_openib_rndv_eager_limit", "btl_openib_max_send_size", "btl_uct_eager_limit",
    "btl_uct_rndv_eager_limit", "btl_uct_max_send_size",    "btl_ofi_eager_limit",     "btl_ofi_rndv_eager_limit",
    "btl_ofi_max_send_size"};
static const char *const integers[] = {"btl_tcp_sndbuf", "btl_vader_max_inline_send", "btl_sm_max_inline_send"};
static const char *const texts[] = {"btl", "pml", "mtl"};
static const char *const flags[] = {"opal_built_with_cuda_support", "opal_cuda_support", "opal_built_with_rocm_support"};

/* Where the value of a variable is; NULL: this process has none. */
static const void *find(const char *name)
{
    static find_fn *find_by_name;
    static get_fn *get_value;
    const void *storage = NULL;
    int index = -1;
    if (!find_by_name) {
        find_by_name = (find_fn *)mpi.lookup("mca_base_var_find_by_name");
        get_value = (get_fn *)mpi.lookup("mca_base_var_get_value");
    }
    if (!find_by_name || !get_value || find_by_name(name, &index) != OPAL_SUCCESS || index < 0)
        return NULL;
    return get_value(index, &storage, NULL, NULL) == OPAL_SUCCESS ? storage : NULL;
}

static void define(struct thread *t, const char *name, const char *value)
{
    char key[128];
    snprintf(key, sizeof key, "cvar.%s", name);
    spool_define_meta(&t->stream, key, value);
}

#define EACH(i, names) (size_t i = 0; i < sizeof names / sizeof names[0]; i++)

void control_variables_define(struct thread *t)
{
    char text[32];
    const void *value;
    for EACH(i, sizes) {
        if (!(value = find(sizes[i])))
            continue;
        snprintf(text, sizeof text, "%zu", *(const size_t *)value);
        define(t, sizes[i], text);
    }
    for EACH(i, integers) {
        if (!(value = find(integers[i])))
            continue;
        snprintf(text, sizeof text, "%d", *(const int *)value);
        define(t, integers[i], text);
    }
    for EACH(i, flags) {
        if ((value = find(flags[i])))
            define(t, flags[i], *(const _Bool *)value ? "true" : "false");
    }
    for EACH(i, texts) {
        if ((value = find(texts[i])))
            define(t, texts[i], *(char *const *)value ? *(char *const *)value : "");
    }
}

#else

/*
 * MPICH and its relatives: nothing. They take their variables from the environment alone, which is recorded anyway, and
 * the only way to ask is MPI's tools interface: in MPICH 4.0, whoever ends that leaves it broken for the application,
 * which crashes when it starts it again; and left open it would answer an application that has not started it.
 */
void control_variables_define(struct thread *t)
{
    (void)t;
}

#endif
