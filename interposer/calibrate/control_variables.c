#include "module.h"

#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { TEXT_BYTES = 4096 };

struct variable {
    char name[TEXT_BYTES], doc[TEXT_BYTES];
    MPI_Datatype type;
    int bind;
};

/* One line a variable, whatever its text has in it. */
static void print_text(const char *text)
{
    for (; *text; text++)
        putchar(*text == '\n' || *text == '\t' || *text == '\r' ? ' ' : *text);
}

/* Nothing for a type that no known MPI has. */
static void print_value(MPI_Datatype type, const void *value)
{
    if (type == MPI_CHAR)
        print_text(value);
    else if (type == MPI_INT)
        printf("%d", *(const int *)value);
    else if (type == MPI_UNSIGNED)
        printf("%u", *(const unsigned *)value);
    else if (type == MPI_UNSIGNED_LONG)
        printf("%lu", *(const unsigned long *)value);
    else if (type == MPI_UNSIGNED_LONG_LONG)
        printf("%llu", *(const unsigned long long *)value);
    else if (type == MPI_COUNT)
        printf("%lld", (long long)*(const MPI_Count *)value);
    else if (type == MPI_INT32_T)
        printf("%ld", (long)*(const int32_t *)value);
    else if (type == MPI_INT64_T)
        printf("%lld", (long long)*(const int64_t *)value);
    else if (type == MPI_UINT32_T)
        printf("%lu", (unsigned long)*(const uint32_t *)value);
    else if (type == MPI_UINT64_T)
        printf("%llu", (unsigned long long)*(const uint64_t *)value);
    else if (type == MPI_C_BOOL)
        printf("%d", *(const _Bool *)value);
    else if (type == MPI_DOUBLE)
        printf("%g", *(const double *)value);
}

static int describe(int index, struct variable *variable)
{
    int name_length = TEXT_BYTES, doc_length = TEXT_BYTES, verbosity, scope;
    MPI_T_enum names;
    variable->name[0] = variable->doc[0] = '\0';
    return MPI_T_cvar_get_info(index, variable->name, &name_length, &verbosity, &variable->type, &names, variable->doc,
                               &doc_length, &variable->bind, &scope) == MPI_SUCCESS;
}

static void print_variable(int index)
{
    static struct variable variable;
    static union {
        char text[65536];
        uint64_t numbers[8];
    } value;
    MPI_T_cvar_handle handle;
    int count = 0;
    if (!describe(index, &variable) || variable.bind != MPI_T_BIND_NO_OBJECT)
        return;
    if (MPI_T_cvar_handle_alloc(index, NULL, &handle, &count) != MPI_SUCCESS)
        return;
    int elements = variable.type == MPI_CHAR ? (int)sizeof value.text - 1 : 8;
    memset(&value, 0, sizeof value.numbers);
    if (count <= elements && MPI_T_cvar_read(handle, &value) == MPI_SUCCESS) {
        value.text[variable.type == MPI_CHAR && count >= 0 ? count : (int)sizeof value.text - 1] = '\0';
        print_text(variable.name);
        putchar('\t');
        print_value(variable.type, &value);
        putchar('\t');
        print_text(variable.doc);
        putchar('\n');
    }
    MPI_T_cvar_handle_free(&handle);
}

int print_control_variables(void)
{
    int provided, count = 0;
    if (MPI_T_init_thread(MPI_THREAD_SINGLE, &provided) != MPI_SUCCESS || MPI_T_cvar_get_num(&count) != MPI_SUCCESS) {
        fprintf(stderr, "lapscope-calibrate: this MPI does not tell its control variables\n");
        return 1;
    }
    for (int i = 0; i < count; i++)
        print_variable(i);
    MPI_T_finalize();
    return fflush(stdout) || ferror(stdout) ? 1 : 0;
}
