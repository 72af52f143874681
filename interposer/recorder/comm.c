#include "comm.h"

#include "arena.h"

#include <pthread.h>

enum { BUCKETS = 256 };

unsigned comm_generation __attribute__((visibility("hidden")));

static struct comm *buckets[BUCKETS];
static struct comm *forgotten; /* to be used again */
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

/* Fills sizes and members; returns them (also when they are the identity), or NULL. */
static int32_t *learn_members(struct comm *comm, MPI_Comm handle)
{
    MPI_Group local, remote;
    int has_remote = 0;
    mpi.Comm_test_inter(handle, &comm->inter);
    mpi.Comm_rank(handle, &comm->rank);
    if (!have_world_group && mpi.Comm_group(mpi.comm_world, &world_group) == MPI_SUCCESS)
        have_world_group = 1;
    if (!have_world_group || mpi.Comm_group(handle, &local) != MPI_SUCCESS)
        return NULL;
    mpi.Group_size(local, &comm->size);
    comm->remote_size = 0;
    if (comm->inter && mpi.Comm_remote_group(handle, &remote) == MPI_SUCCESS) {
        has_remote = 1;
        mpi.Group_size(remote, &comm->remote_size);
    }
    int32_t *world = arena_alloc(sizeof *world * 2 * (size_t)(comm->size + comm->remote_size + 1));
    if (world && (!translate(local, comm->size, world) ||
                  (has_remote && !translate(remote, comm->remote_size, world + comm->size))))
        world = NULL;
    mpi.Group_free(&local);
    if (has_remote)
        mpi.Group_free(&remote);
    return world;
}

static uint64_t hash_ranks(uint64_t hash, const int32_t *ranks, int count)
{
    for (int i = 0; i < count; i++)
        hash = (hash ^ (uint32_t)ranks[i]) * 0x100000001b3u; /* FNV-1a, by rank instead of by byte */
    return hash;
}

/* The same on both sides of an inter-communicator, hence the sum of its groups' hashes. */
static uint64_t identity_of(const struct comm *comm, const int32_t *world)
{
    const uint64_t basis = 0xcbf29ce484222325u;
    uint64_t identity = hash_ranks(basis, world, comm->size);
    if (comm->inter)
        identity += hash_ranks(basis, world + comm->size, comm->remote_size);
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

static void write_definition(struct thread *t, const struct comm *comm, const int32_t *world, const char *name)
{
    uint64_t identity = world ? identity_of(comm, world) : 0;
    size_t members = comm->world_of ? (size_t)(comm->size + comm->remote_size) : 0;
    struct spool_comm head = {comm->id,          identity,   next_ordinal(identity), (uint8_t)comm->inter,  comm->size,
                              comm->remote_size, comm->rank, (uint16_t)strlen(name), (uint32_t)members};
    if (!world)
        head.members = UINT32_MAX;
    spool_define(&t->stream, SPOOL_COMM, &head, sizeof head, name, head.name_bytes, world, members * sizeof *world);
}

/* --- the table ---------------------------------------------------------------------------------------------------- */

static struct comm *insert(struct thread *t, MPI_Comm handle, const char *name)
{
    struct comm *comm = forgotten ? forgotten : arena_alloc(sizeof *comm);
    if (!comm)
        return NULL;
    if (comm == forgotten)
        forgotten = comm->next;
    comm->key = comm_key(handle);
    comm->id = ++comm_count;
    int32_t *world = learn_members(comm, handle);
    comm->world_of = world && !is_identity(comm, world) ? world : NULL;
    write_definition(t, comm, world, name);
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

static void remove_locked(uint64_t key)
{
    struct comm **link = find(key);
    struct comm *comm = *link;
    if (!comm)
        return;
    *link = comm->next;
    comm->next = forgotten;
    forgotten = comm;
    __atomic_fetch_add(&comm_generation, 1, __ATOMIC_RELEASE);
}

void comm_define(struct thread *t, MPI_Comm handle, const char *made_by)
{
    if (handle == mpi.comm_null)
        return;
    pthread_mutex_lock(&lock);
    remove_locked(comm_key(handle)); /* freed by a call that is not wrapped, and the handle used again */
    insert(t, handle, made_by);
    pthread_mutex_unlock(&lock);
}

void comm_forget(MPI_Comm handle)
{
    pthread_mutex_lock(&lock);
    remove_locked(comm_key(handle));
    pthread_mutex_unlock(&lock);
}

struct comm *comm_lookup_slow(struct thread *t, MPI_Comm handle)
{
    if (handle == mpi.comm_null)
        return NULL;
    pthread_mutex_lock(&lock);
    struct comm *comm = *find(comm_key(handle));
    if (!comm)
        comm = insert(t, handle, "made unseen");
    pthread_mutex_unlock(&lock);
    return comm;
}

struct comm *comm_known_slow(MPI_Comm handle)
{
    pthread_mutex_lock(&lock);
    struct comm *comm = *find(comm_key(handle));
    pthread_mutex_unlock(&lock);
    return comm;
}
