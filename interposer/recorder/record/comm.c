#include "comm.h"

#include "../base/arena.h"
#include "../base/secrets.h"

#include <pthread.h>

enum { BUCKETS = 256 };

unsigned comm_generation __attribute__((visibility("hidden")));

static struct comm *buckets[BUCKETS];
static uint32_t comm_count;
static MPI_Group world_group;
static int have_world_group;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* How many communicators of an identity this rank has made. */
struct census {
    struct census *next;
    uint64_t identity;
    uint32_t made;
};
static struct census *census;

static struct comm **bucket_of(uint64_t key)
{
    return &buckets[(key * 0x9e3779b97f4a7c15u) >> 56];
}

static uint32_t next_ordinal(uint64_t identity)
{
    struct census *entry = census;
    while (entry && entry->identity != identity)
        entry = entry->next;
    if (!entry && (entry = arena_alloc(sizeof *entry))) {
        entry->identity = identity;
        entry->next = census;
        census = entry;
    }
    return entry ? entry->made++ : 0;
}

/* --- membership --------------------------------------------------------------------------------------------------- */

void comm_set_world(MPI_Group world)
{
    pthread_mutex_lock(&lock);
    world_group = world;
    have_world_group = world != mpi.group_null;
    pthread_mutex_unlock(&lock);
}

/* World ranks of a group's members; -1 outside MPI_COMM_WORLD. `own` has room for 2 * size. Returns 0 on failure. */
static int translate(MPI_Group group, int size, int32_t *world)
{
    int *ranks = world + size;
    for (int i = 0; i < size; i++)
        ranks[i] = i;
    if (mpi.Group_translate_ranks(group, size, ranks, world_group, world) != MPI_SUCCESS)
        return 0;
    for (int i = 0; i < size; i++)
        world[i] = world[i] == MPI_UNDEFINED ? -1 : world[i];
    return 1;
}

/* The groups behind a handle; returns 0 when it has none. */
static int groups_of(struct comm *comm, struct scope scope, MPI_Group *local, MPI_Group *remote)
{
    *remote = mpi.group_null;
    switch (scope.kind) {
    case SCOPE_COMM:
        mpi.Comm_test_inter(comm_of_key(scope.key), &comm->inter);
        if (comm->inter && mpi.Comm_remote_group(comm_of_key(scope.key), remote) != MPI_SUCCESS)
            return 0;
        return mpi.Comm_group(comm_of_key(scope.key), local) == MPI_SUCCESS;
    case SCOPE_WINDOW:
        return mpi.Win_get_group(win_of_key(scope.key), local) == MPI_SUCCESS;
    case SCOPE_FILE:
        return mpi.File_get_group(file_of_key(scope.key), local) == MPI_SUCCESS;
    case SCOPE_NONE:
        break;
    }
    return 0;
}

/* Fills sizes and members; returns them (also when they are the identity), or NULL. */
static int32_t *learn_members(struct comm *comm, struct scope scope)
{
    MPI_Group local, remote;
    comm->inter = comm->size = comm->remote_size = comm->rank = 0;
    if (!groups_of(comm, scope, &local, &remote))
        return NULL;
    mpi.Group_rank(local, &comm->rank);
    mpi.Group_size(local, &comm->size);
    if (comm->inter)
        mpi.Group_size(remote, &comm->remote_size);
    int32_t *world = have_world_group ? arena_alloc(sizeof *world * 2 * (size_t)(comm->size + comm->remote_size + 1)) : NULL;
    if (world && (!translate(local, comm->size, world) ||
                  (comm->inter && !translate(remote, comm->remote_size, world + comm->size))))
        world = NULL;
    mpi.Group_free(&local);
    if (comm->inter)
        mpi.Group_free(&remote);
    return world;
}

int comm_destinations(struct comm *comm, MPI_Comm handle)
{
    int topology = MPI_UNDEFINED, count = 0, ignored[2];
    if (!comm)
        return 0;
    if (comm->destinations >= 0)
        return comm->destinations;
    mpi.Topo_test(handle, &topology);
    if (topology == MPI_CART && mpi.Cartdim_get(handle, &count) == MPI_SUCCESS)
        count *= 2;
    else if (topology == MPI_GRAPH)
        mpi.Graph_neighbors_count(handle, comm->rank, &count);
    else if (topology == MPI_DIST_GRAPH)
        mpi.Dist_graph_neighbors_count(handle, &ignored[0], &count, &ignored[1]);
    return comm->destinations = count;
}

static uint64_t hash_ranks(uint64_t hash, const int32_t *ranks, int count)
{
    for (int i = 0; i < count; i++)
        hash = (hash ^ (uint32_t)ranks[i]) * 0x100000001b3u; /* FNV-1a, by rank instead of by byte */
    return hash;
}

/* The same on both sides of an inter-communicator, hence the sum of its groups' hashes. A parent takes part, with what
 * it is itself: threads that make communicators of equal members from different parents do so in any order. */
static uint64_t identity_of(const struct comm *comm, const int32_t *world, const struct comm *parent, uint64_t salt)
{
    const uint64_t basis = 0xcbf29ce484222325u + (spool_header()->world - 1), prime = 0x100000001b3u; /* worlds differ */
    uint64_t identity = hash_ranks(basis, world, comm->size);
    if (comm->inter)
        identity += hash_ranks(basis, world + comm->size, comm->remote_size);
    if (parent)
        identity = ((identity ^ parent->identity) * prime ^ parent->ordinal) * prime;
    if (salt)
        identity = (identity ^ salt) * prime;
    return identity >> 1; /* SQLite integers are signed */
}

static int is_identity(const struct comm *comm, const int32_t *world)
{
    if (comm->inter)
        return 0;
    for (int i = 0; i < comm->size; i++)
        if (world[i] != i)
            return 0;
    return 1;
}

static void write_definition(struct thread *t, const struct comm *comm, const char *name)
{
    size_t members = comm->world_of ? (size_t)(comm->size + comm->remote_size) : 0;
    struct spool_comm head = {comm->id,          comm->identity, comm->ordinal,          (uint8_t)comm->inter, comm->size,
                              comm->remote_size, comm->rank,     (uint16_t)strlen(name), (uint32_t)members};
    if (!comm->is_known)
        head.members = UINT32_MAX;
    spool_define(&t->stream, SPOOL_COMM, &head, sizeof head, name, head.name_bytes, comm->world_of, members * sizeof *comm->world_of);
}

/* --- the table ---------------------------------------------------------------------------------------------------- */

static struct comm *insert(struct thread *t, struct scope scope, const char *name, const struct comm *parent, uint64_t salt)
{
    struct comm *comm = arena_alloc(sizeof *comm);
    if (!comm)
        return NULL;
    comm->key = scope.key;
    comm->id = ++comm_count;
    comm->destinations = -1;
    int32_t *world = learn_members(comm, scope);
    comm->is_known = world != NULL;
    comm->world_of = world && !is_identity(comm, world) ? world : NULL;
    comm->identity = world ? identity_of(comm, world, parent, salt + (scope.kind == SCOPE_COMM ? 0 : scope.kind)) : 0;
    comm->ordinal = next_ordinal(comm->identity);
    write_definition(t, comm, name);
    struct comm **bucket = bucket_of(comm->key);
    comm->next = *bucket;
    *bucket = comm;
    return comm;
}

static struct comm **find(uint64_t key)
{
    struct comm **link = bucket_of(key);
    while (*link && (*link)->key != key)
        link = &(*link)->next;
    return link;
}

/* It stays in memory: a persistent request may outlive its communicator's handle. */
static void remove_locked(uint64_t key)
{
    struct comm **link = find(key);
    if (!*link)
        return;
    struct comm *gone = *link;
    *link = gone->next;
    __atomic_store_n(&gone->key, COMM_GONE, __ATOMIC_RELAXED); /* the handle may come to mean another */
    __atomic_fetch_add(&comm_generation, 1, __ATOMIC_RELEASE);
}

static int is_null(struct scope scope)
{
    return scope.kind == SCOPE_NONE || (scope.kind == SCOPE_COMM && comm_of_key(scope.key) == mpi.comm_null) ||
           (scope.kind == SCOPE_WINDOW && win_of_key(scope.key) == mpi.win_null) ||
           (scope.kind == SCOPE_FILE && file_of_key(scope.key) == mpi.file_null);
}

void comm_define(struct thread *t, struct scope scope, const char *made_by, const struct comm *parent, uint64_t salt)
{
    if (is_null(scope))
        return;
    pthread_mutex_lock(&lock);
    remove_locked(scope.key); /* freed by a call that is not wrapped, and the handle used again */
    insert(t, scope, made_by, parent, salt);
    pthread_mutex_unlock(&lock);
}

void comm_named(struct thread *t, MPI_Comm handle)
{
    char given[MPI_MAX_OBJECT_NAME] = "", name[MPI_MAX_OBJECT_NAME];
    int length;
    struct comm *comm = comm_of(t, SCOPE(handle));
    if (!comm || mpi.Comm_get_name(handle, given, &length) != MPI_SUCCESS || !*given)
        return;
    secrets_hide_value("", given, name, sizeof name);
    pthread_mutex_lock(&lock);
    write_definition(t, comm, name); /* the last definition of an id counts */
    pthread_mutex_unlock(&lock);
}

void comm_forget(uint64_t key)
{
    pthread_mutex_lock(&lock);
    remove_locked(key);
    pthread_mutex_unlock(&lock);
}

struct comm *comm_lookup_slow(struct thread *t, struct scope scope)
{
    if (is_null(scope))
        return NULL;
    pthread_mutex_lock(&lock);
    struct comm *comm = *find(scope.key);
    if (!comm)
        comm = insert(t, scope, "made unseen", NULL, 0);
    pthread_mutex_unlock(&lock);
    return comm;
}

struct comm *comm_known_slow(uint64_t key)
{
    pthread_mutex_lock(&lock);
    struct comm *comm = *find(key);
    pthread_mutex_unlock(&lock);
    return comm;
}
