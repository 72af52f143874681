#define _GNU_SOURCE
#include "control_variables.h"

#include "mpi_api.h"
#include "spool_definitions.h"

#include <stdio.h>
#include <string.h>

static void define(struct thread *t, const char *name, const char *value)
{
    char key[128];
    snprintf(key, sizeof key, "cvar.%s", name);
    spool_define_meta(&t->stream, key, value);
}

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
    for EACH(i, texts) {
        if ((value = find(texts[i])))
            define(t, texts[i], *(char *const *)value ? *(char *const *)value : "");
    }
}

#else

/* MPICH and its relatives: MPI's tools interface, whose start counts up a number there, as MPI_Init has made its tables. */
static const char *const names[] = {
    "MPIR_CVAR_CH3_EAGER_MAX_MSG_SIZE",     "MPIR_CVAR_NEMESIS_SHM_EAGER_MAX_SZ", "MPIR_CVAR_NEMESIS_SHM_READY_EAGER_MAX_SZ",
    "MPIR_CVAR_NEMESIS_NETMOD",             "MPIR_CVAR_CH4_NETMOD",               "MPIR_CVAR_CH4_SHM_POSIX_EAGER",
    "MPIR_CVAR_CH4_OFI_EAGER_MAX_MSG_SIZE", "MPIR_CVAR_CH4_OFI_EAGER_THRESHOLD",  "MPIR_CVAR_CH4_OFI_RNDV_PROTOCOL",
    "MPIR_CVAR_INTEL_SHM_EAGER_THRESHOLD",  "MPIR_CVAR_INTEL_SHM_EAGER_NUM",      "MPIR_CVAR_INTEL_ENABLE_RNDV_SSEND"};

enum { TEXT_BYTES = 1024 };

/* NULL in an MPI without them. */
static struct {
    __typeof__(&MPI_T_init_thread) init;
    __typeof__(&MPI_T_finalize) finalize;
    __typeof__(&MPI_T_cvar_get_index) get_index;
    __typeof__(&MPI_T_cvar_get_info) get_info;
    __typeof__(&MPI_T_cvar_handle_alloc) open;
    __typeof__(&MPI_T_cvar_read) read;
    __typeof__(&MPI_T_cvar_handle_free) close;
} tools;

static int find_tools(void)
{
#define FIND(field, name) (tools.field = (__typeof__(tools.field))mpi.lookup("PMPI_T_" #name))
    return FIND(init, init_thread) && FIND(finalize, finalize) && FIND(get_index, cvar_get_index) &&
           FIND(get_info, cvar_get_info) && FIND(open, cvar_handle_alloc) && FIND(read, cvar_read) &&
           FIND(close, cvar_handle_free);
#undef FIND
}

/* One value, or the text of a variable of characters, as text; 0 for what is neither. */
static int read_variable(int index, char *text, size_t bytes)
{
    union {
        char text[TEXT_BYTES];
        int integer;
    } value = {.text = ""};
    char name[128], description[8];
    int name_bytes = sizeof name, description_bytes = sizeof description, verbosity, bind, scope, count = 0;
    MPI_Datatype type;
    MPI_T_enum words;
    MPI_T_cvar_handle handle;
    if (tools.get_info(index, name, &name_bytes, &verbosity, &type, &words, description, &description_bytes, &bind, &scope) !=
            MPI_SUCCESS ||
        bind != MPI_T_BIND_NO_OBJECT || tools.open(index, NULL, &handle, &count) != MPI_SUCCESS)
        return 0;
    int is_text = type == MPI_CHAR, known = is_text ? count < TEXT_BYTES : type == MPI_INT && count == 1;
    known = known && tools.read(handle, &value) == MPI_SUCCESS;
    tools.close(&handle);
    if (is_text)
        snprintf(text, bytes, "%s", value.text);
    else
        snprintf(text, bytes, "%d", value.integer);
    return known;
}

void control_variables_define(struct thread *t)
{
    char text[TEXT_BYTES];
    int provided, index;
    if (!find_tools() || tools.init(MPI_THREAD_SINGLE, &provided) != MPI_SUCCESS)
        return;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (tools.get_index(names[i], &index) == MPI_SUCCESS && read_variable(index, text, sizeof text))
            define(t, names[i], text);
    tools.finalize();
}

#endif
