#define _GNU_SOURCE
#include "python.h"

#include "../base/config.h"
#include "../base/log.h"
#include "interpreter.h"
#include "layout.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int python_is_on;
struct python_interpreter python_interpreter;

static enum { LOOKING, PROVING, DECIDED } stage = DECIDED; /* under the lock */
static unsigned long long adds_seen;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static char interpreter_text[32];      /* "Python 3.11.2" */

static void decide_off(const char *why)
{
    stage = DECIDED;
    if (log_first_on_node())
        log_line("call paths have no lines of Python: %s (this is %s)", why, interpreter_text);
}

/* --- code objects that die ---------------------------------------------------------------------------------------- */

enum { KNOWN_BITS = 1 << 14, WORD_BITS = 64, TP_NAME = 24, TP_DEALLOC = 48 };
static uint64_t known[KNOWN_BITS / WORD_BITS]; /* may hold others, too: then paths are taken anew once more than needed */
static void (*deallocate)(void *code);

static unsigned bit_of(uintptr_t code)
{
    return (unsigned)(code * 0x9e3779b97f4a7c15u >> 50);
}
_Static_assert(KNOWN_BITS == 1 << (64 - 50), "bit_of");

void python_interpreter_knows(uintptr_t code)
{
    unsigned bit = bit_of(code);
    __atomic_fetch_or(&known[bit / WORD_BITS], (uint64_t)1 << bit % WORD_BITS, __ATOMIC_RELEASE);
}

/* In place of PyCode_Type's own. Paths of the old generation are none of the new one, so that all is known anew. */
static void code_dies(void *code)
{
    unsigned bit = bit_of((uintptr_t)code);
    if (__atomic_load_n(&known[bit / WORD_BITS], __ATOMIC_ACQUIRE) >> bit % WORD_BITS & 1) {
        for (unsigned i = 0; i < KNOWN_BITS / WORD_BITS; i++)
            __atomic_store_n(&known[i], 0, __ATOMIC_RELEASE);
        __atomic_fetch_add(&python_interpreter.generation, 1, __ATOMIC_ACQ_REL);
    }
    deallocate(code);
}

/* Whether the type is built as all before 3.13's without lock are: then we hear of deaths from now on. */
static int watch_deaths(char *type)
{
    const char *name;
    memcpy(&name, type + TP_NAME, sizeof name);
    memcpy(&deallocate, type + TP_DEALLOC, sizeof deallocate);
    Dl_info own, of_type;
    if (!dladdr((void *)(uintptr_t)deallocate, &own) || !dladdr(type, &of_type) || own.dli_fbase != of_type.dli_fbase ||
        !dladdr(name, &own) || own.dli_fbase != of_type.dli_fbase || strcmp(name, "code") != 0)
        return 0;
    __atomic_store_n((void (**)(void *))(void *)(type + TP_DEALLOC), code_dies, __ATOMIC_RELEASE);
    return 1;
}

/* --- finding it --------------------------------------------------------------------------------------------------- */

struct search {
    unsigned long long adds;
    void *library;             /* a handle to libpython, which may have been loaded with local scope */
    int is_pypy;
};

static int look_at(struct dl_phdr_info *object, size_t size, void *context)
{
    (void)size;
    struct search *search = context;
    const char *slash = strrchr(object->dlpi_name, '/'), *name = slash ? slash + 1 : object->dlpi_name;
    search->adds = object->dlpi_adds;
    search->is_pypy |= strncmp(name, "libpypy", 7) == 0;
    return 0;
}

static int count_adds(struct dl_phdr_info *object, size_t size, void *context)
{
    (void)size;
    *(unsigned long long *)context = object->dlpi_adds;
    return 1;
}

/* dlopen takes the loader's lock, as dl_iterate_phdr does: not within it. */
static void *library_named(const char *const *names, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        void *library = dlopen(names[i], RTLD_LAZY | RTLD_NOLOAD);
        if (library)
            return library;
    }
    return NULL;
}

static void *find(void *library, const char *name)
{
    void *found = dlsym(RTLD_DEFAULT, name);
    return found || !library ? found : dlsym(library, name);
}

static int keep_if_holding(struct dl_phdr_info *object, size_t size, void *context)
{
    (void)size;
    uintptr_t address = *(const uintptr_t *)context, begin = UINTPTR_MAX, end = 0;
    for (int i = 0; i < object->dlpi_phnum; i++) {
        uintptr_t at = object->dlpi_addr + object->dlpi_phdr[i].p_vaddr;
        if (object->dlpi_phdr[i].p_type != PT_LOAD)
            continue;
        begin = at < begin ? at : begin;
        end = at + object->dlpi_phdr[i].p_memsz > end ? at + object->dlpi_phdr[i].p_memsz : end;
    }
    if (address < begin || address >= end)
        return 0;
    python_interpreter.code.begin = begin;
    python_interpreter.code.end = end;
    return 1;
}

/* Where its code is, by one of its functions, and that of the one that runs frames. */
static int find_code(uintptr_t function, void *library)
{
    Dl_info info;
    const ElfW(Sym) *symbol = NULL;
    void *eval = find(library, "_PyEval_EvalFrameDefault");
    if (!eval || !dladdr1(eval, &info, (void **)&symbol, RTLD_DL_SYMENT) || !symbol)
        return 0;
    python_interpreter.code.eval_begin = (uintptr_t)eval;
    python_interpreter.code.eval_end = (uintptr_t)eval + symbol->st_size;
    return dl_iterate_phdr(keep_if_holding, &function);
}

/* Returns whether there is one that has all that is asked for. */
static int find_api(void *library)
{
    struct python_api *api = &python_interpreter.api;
    struct { void *to; const char *name; int may_lack; } const functions[] = {
        {&api->this_thread, "PyGILState_GetThisThreadState", 0}, {&api->has_lock, "PyGILState_Check", 0},
        {&api->is_ending, "_Py_IsFinalizing", 1},                {&api->is_ending, "Py_IsFinalizing", 1},
        {&api->frame, "PyEval_GetFrame", 0},                     {&api->line_number, "PyFrame_GetLineNumber", 0},
        {&api->code_of, "PyFrame_GetCode", 1},                   {&api->outer_of, "PyFrame_GetBack", 1},
        {&api->release, "Py_DecRef", 0},                         {&api->text_length, "PyUnicode_GetLength", 0},
        {&api->character, "PyUnicode_ReadChar", 0},              {&api->code_type, "PyCode_Type", 0},
        {&api->text_type, "PyUnicode_Type", 0},                  {&api->bytes_type, "PyBytes_Type", 0}};
    for (unsigned i = 0; i < sizeof functions / sizeof functions[0]; i++) {
        void *found = find(library, functions[i].name);
        if (found)
            memcpy(functions[i].to, &found, sizeof found);
        else if (!functions[i].may_lack)
            return 0;
    }
    return api->is_ending != NULL;
}

/* 0x030b0000 of "3.11.2 (main, ...". */
static unsigned version_of(const char *text)
{
    char *end;
    unsigned long major = strtoul(text, &end, 10), minor = *end == '.' ? strtoul(end + 1, NULL, 10) : 0;
    return (unsigned)(major << 24 | (minor & 0xff) << 16);
}

static void look_for_it(void)
{
    static const char *const names[] = {"libpython3.8.so.1.0",  "libpython3.9.so.1.0",  "libpython3.10.so.1.0",
                                        "libpython3.11.so.1.0", "libpython3.12.so.1.0", "libpython3.13.so.1.0",
                                        "libpython3.14.so.1.0"};
    struct search search = {0, NULL, 0};
    dl_iterate_phdr(look_at, &search);
    if (search.adds == adds_seen)
        return;
    adds_seen = search.adds;
    if (search.is_pypy) {
        snprintf(interpreter_text, sizeof interpreter_text, "PyPy");
        decide_off("CPython 3.8 to 3.14 are known");
        return;
    }
    void *library = dlsym(RTLD_DEFAULT, "Py_GetVersion") ? NULL : library_named(names, sizeof names / sizeof names[0]);
    const char *(*version)(void) = (const char *(*)(void))(uintptr_t)find(library, "Py_GetVersion");
    if (!version)
        return;
    snprintf(interpreter_text, sizeof interpreter_text, "Python %.*s", (int)strcspn(version(), " "), version());
    const char *problem = python_layout_of(version_of(version()), find(library, "_PyRuntime"), &python_layout);
    if (!problem && (!find_api(library) || !find_code((uintptr_t)version, library)))
        problem = "it has not all functions that are needed";
    if (problem) {
        decide_off(problem);
        return;
    }
    stage = PROVING;
}

static void prove_it(void)
{
    enum python_proof proof = python_prove(&python_interpreter.api);
    if (proof == PYTHON_NOT_YET)
        return;
    if (proof == PYTHON_DIFFERS) {
        decide_off("frames are not where its version has them");
        return;
    }
    if (!watch_deaths(python_interpreter.api.code_type)) {
        decide_off("its code objects are not what its version has");
        return;
    }
    stage = DECIDED;
    __atomic_store_n(&python_is_on, 1, __ATOMIC_RELEASE);
}

void python_configure(void)
{
    stage = config.callpath && config.callpath_python ? LOOKING : DECIDED;
}

void python_look(void)
{
    if (__atomic_load_n((int *)&stage, __ATOMIC_RELAXED) == DECIDED)
        return;
    unsigned long long adds = 0;
    dl_iterate_phdr(count_adds, &adds);
    if (pthread_mutex_trylock(&lock) != 0) /* another thread looks, or this one, and what it asked of Python ran a finalizer */
        return;
    if (stage == LOOKING && adds != adds_seen)
        look_for_it();
    if (stage == PROVING)
        prove_it();
    pthread_mutex_unlock(&lock);
}
