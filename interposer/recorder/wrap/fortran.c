#define _GNU_SOURCE
#include "wrap_fortran.h"

#include <dlfcn.h>
#include <pthread.h>

/* --- Fortran's constants: variables, known by their addresses ----------------------------------------------------- */

enum { MAX_ADDRESSES = 16 };

struct addresses {
    const void *at[MAX_ADDRESSES];
    int count;
};

static struct addresses ignored, in_place, in_place_described, bottoms;

/* Pointers that some MPIs fill at the first Fortran call, or when the module's variables are first used. */
static void *const *ignored_later[4], *const *in_place_later, *const *bottom_later;
static pthread_once_t found_once = PTHREAD_ONCE_INIT;

/* A symbol of MPI's Fortran library, which may have been loaded with local scope. */
static void *fortran_symbol(const char *name)
{
    void *found = dlsym(RTLD_DEFAULT, name);
    if (!found)
        found = mpi.lookup(name);
    for (int i = 0; !found && i < FUNCTION_COUNT; i++) {
        Dl_info info;
        void *library = next_functions[i] && dladdr(next_functions[i], &info) && info.dli_fname
                            ? dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD)
                            : NULL;
        if (library) {
            found = dlsym(library, name);
            dlclose(library);
        }
    }
    return found;
}

static void add(struct addresses *addresses, const void *address)
{
    if (address && addresses->count < MAX_ADDRESSES)
        addresses->at[addresses->count++] = address;
}

static void find_constants(void)
{
    static const char *const ignores[] = {
        /* Open MPI: common blocks under the mangling of its compiler, and without any in mpi_f08 */
        "mpi_fortran_status_ignore_", "mpi_fortran_status_ignore", "mpi_fortran_status_ignore__", "MPI_FORTRAN_STATUS_IGNORE",
        "mpi_fortran_statuses_ignore_", "mpi_fortran_statuses_ignore", "mpi_fortran_statuses_ignore__",
        "MPI_FORTRAN_STATUSES_IGNORE",
        /* MPICH and Intel MPI: variables of the mpi_f08 module */
        "MPIR_F08_MPI_STATUS_IGNORE_OBJ", "MPIR_F08_MPI_STATUSES_IGNORE_OBJ"};
    static const char *const in_places[] = {"mpi_fortran_in_place_", "mpi_fortran_in_place", "mpi_fortran_in_place__",
                                            "MPI_FORTRAN_IN_PLACE"};
    static const char *const bottom_names[] = {"mpi_fortran_bottom_", "mpi_fortran_bottom", "mpi_fortran_bottom__",
                                               "MPI_FORTRAN_BOTTOM", "MPIR_F08_MPI_BOTTOM"};
    static const char *const later[] = {"MPI_F_STATUS_IGNORE", "MPI_F_STATUSES_IGNORE", "MPI_F08_STATUS_IGNORE",
                                        "MPI_F08_STATUSES_IGNORE"};
    for (size_t i = 0; i < sizeof ignores / sizeof ignores[0]; i++)
        add(&ignored, fortran_symbol(ignores[i]));
    for (size_t i = 0; i < sizeof in_places / sizeof in_places[0]; i++)
        add(&in_place, fortran_symbol(in_places[i]));
    for (size_t i = 0; i < sizeof later / sizeof later[0]; i++)
        ignored_later[i] = fortran_symbol(later[i]);
    for (size_t i = 0; i < sizeof bottom_names / sizeof bottom_names[0]; i++)
        add(&bottoms, fortran_symbol(bottom_names[i]));
    bottom_later = fortran_symbol("MPIR_F_MPI_BOTTOM");
    in_place_later = fortran_symbol("MPIR_F_MPI_IN_PLACE");
    add(&in_place_described, fortran_symbol("MPIR_F08_MPI_IN_PLACE"));
}

static int holds(const struct addresses *addresses, const void *address)
{
    for (int i = 0; i < addresses->count; i++)
        if (addresses->at[i] == address)
            return 1;
    return 0;
}

int fortran_ignores(const void *status)
{
    pthread_once(&found_once, find_constants);
    for (int i = 0; i < 4; i++)
        if (ignored_later[i] && *ignored_later[i] == status)
            return 1;
    return holds(&ignored, status);
}

static const void *address_of(const void *buffer, int descriptors)
{
    return descriptors && buffer ? *(void *const *)buffer : buffer; /* base_addr comes first in CFI_cdesc_t */
}

const void *fortran_base(const void *buffer, int descriptors)
{
    const void *address = address_of(buffer, descriptors);
    return fortran_is_bottom(address) ? NULL : address;
}

int fortran_in_place(const void *buffer, int descriptors)
{
    pthread_once(&found_once, find_constants);
    const void *address = address_of(buffer, descriptors);
    return (in_place_later && *in_place_later == address) || holds(&in_place, address) ||
           holds(&in_place_described, address);
}

int fortran_is_bottom(const void *address)
{
    pthread_once(&found_once, find_constants);
    return !address || (bottom_later && *bottom_later == address) || holds(&bottoms, address);
}

/* A choice buffer comes as the descriptor that the compiler itself uses, unless the MPI's interfaces are BIND(C). gfortran's own has
 * strides in elements. */
struct own_descriptor {
    void *base;
    size_t offset, element_bytes;
    int version;
    int8_t rank, type;
    int16_t attribute;
    ptrdiff_t span;
    struct {
        ptrdiff_t stride, lower, upper;
    } dimension[];
};

/* CFI_cdesc_t as compilers lay it out (Fortran 2018, 18.5.3; gfortran, ifx and flang agree). */
struct descriptor {
    void *base;
    size_t element_bytes;
    int version;
    int8_t rank, other;
    int16_t type;
    struct {
        ptrdiff_t lower, extent, stride; /* stride in bytes */
    } dimension[];
};

enum { MOST_DIMENSIONS = 15, LARGEST_ELEMENT = 1 << 20 };

static int is_plausible(int rank, size_t element_bytes)
{
    return rank >= 0 && rank <= MOST_DIMENSIONS && element_bytes > 0 && element_bytes <= LARGEST_ELEMENT;
}

/* Nothing else looks like it: where it has the size of an element, CFI_cdesc_t has a type, which is not 0, in the highest bytes. */
static int is_own(const struct own_descriptor *array)
{
    return is_plausible(array->rank, array->element_bytes) && array->version == 0 && array->span == (ptrdiff_t)array->element_bytes;
}

static int own_is_contiguous(const struct own_descriptor *array)
{
    ptrdiff_t elements = 1;
    for (int i = 0; i < array->rank; i++) {
        ptrdiff_t extent = array->dimension[i].upper - array->dimension[i].lower + 1;
        if (extent != 1 && array->dimension[i].stride != elements)
            return 0;
        if (extent < 1) /* none, or assumed size: the last dimension */
            break;
        elements *= extent;
    }
    return 1;
}

static int is_contiguous(const struct descriptor *array)
{
    if (is_own((const struct own_descriptor *)array))
        return own_is_contiguous((const struct own_descriptor *)array);
    if (!array->type || !is_plausible(array->rank, array->element_bytes))
        return 0; /* another compiler's own: not known */
    ptrdiff_t bytes = (ptrdiff_t)array->element_bytes;
    for (int i = 0; i < array->rank; i++) {
        if (array->dimension[i].extent > 1 && array->dimension[i].stride != bytes)
            return 0;
        if (array->dimension[i].extent < 0) /* assumed size: the last dimension */
            break;
        bytes *= array->dimension[i].extent;
    }
    return 1;
}

struct given_buffer fortran_buffer(const void *buffer, int descriptors, uint64_t count, MPI_Datatype type)
{
    const struct descriptor *array = buffer;
    if (!descriptors)
        return given_buffer(buffer, count, type);
    if (!array || !is_contiguous(array))
        return UNTOLD(DATATYPE);
    return given_buffer(array->base, count, type);
}
