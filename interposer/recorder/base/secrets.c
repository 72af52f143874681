#define _GNU_SOURCE
#include "secrets.h"

#include <string.h>
#include <strings.h>

static const char *const secret_words[] = {"KEY", "TOKEN", "PASS", "SECRET", "AUTH", "JWT", "CRED"};

#define LENGTH(array) (sizeof(array) / sizeof(array)[0])

int secrets_in_name(const char *name, size_t bytes)
{
    for (size_t i = 0; i < LENGTH(secret_words); i++) {
        size_t length = strlen(secret_words[i]);
        for (size_t at = 0; at + length <= bytes; at++)
            if (!strncasecmp(name + at, secret_words[i], length))
                return 1;
    }
    return 0;
}

/* --- the environment ---------------------------------------------------------------------------------------------- */

/* By how they begin: what chooses and tunes transports, algorithms, progress, where ranks and threads are put. What
 * launchers tell their ranks of a job, its addresses and credentials, is not among them. */
static const char *const recorded[] = {
    "FI_", "GOMP_", "HYDRA_BINDLIB", "HYDRA_TOPOLIB", "I_MPI_ADJUST", "I_MPI_ASYNC_PROGRESS", "I_MPI_COLL", "I_MPI_CBWR",
    "I_MPI_DEBUG", "I_MPI_EAGER", "I_MPI_EXTRA_FILESYSTEM", "I_MPI_FABRICS", "I_MPI_INTRANODE", "I_MPI_MULTIRAIL",
    "I_MPI_OFFLOAD", "I_MPI_OFI", "I_MPI_PIN", "I_MPI_PLATFORM", "I_MPI_SHM", "I_MPI_SPAWN", "I_MPI_SPIN", "I_MPI_THREAD",
    "I_MPI_TUNING", "I_MPI_WAIT_MODE", "KMP_", "LAPSCOPE_", "LD_PRELOAD", "MPICH_ALL", "MPICH_ASYNC", "MPICH_BCAST", "MPICH_CH4",
    "MPICH_COLL", "MPICH_CPUMASK", "MPICH_GATHER", "MPICH_GNI_", "MPICH_GPU", "MPICH_MAX_THREAD", "MPICH_MPIIO",
    "MPICH_NEMESIS", "MPICH_NO_LOCAL", "MPICH_OFI_", "MPICH_OPTIMIZED", "MPICH_RANK_REORDER", "MPICH_RMA", "MPICH_SHARED",
    "MPICH_SMP_", "MPICH_UCX_", "MPICH_USE_", "MPIR_CVAR_", "MPI_", "MV2_", "OMPI_COMM_WORLD_LOCAL_SIZE", "OMPI_MCA_bml",
    "OMPI_MCA_btl", "OMPI_MCA_coll", "OMPI_MCA_fbtl", "OMPI_MCA_fcoll", "OMPI_MCA_hwloc_base_binding",
    "OMPI_MCA_hwloc_base_mem", "OMPI_MCA_io", "OMPI_MCA_mpi_", "OMPI_MCA_mpool", "OMPI_MCA_mtl", "OMPI_MCA_opal_", "OMPI_MCA_op_",
    "OMPI_MCA_osc", "OMPI_MCA_pml", "OMPI_MCA_rcache", "OMPI_MCA_rmaps_base", "OMPI_MCA_smsc", "OMPI_MCA_topo",
    "OMPI_MCA_vprotocol", "OMP_", "PRTE_MCA_hwloc", "PRTE_MCA_rmaps", "PSM2_", "PSM3_", "PSM_", "SLURM_CLUSTER_NAME",
    "SLURM_CPUS_", "SLURM_CPU_BIND", "SLURM_DISTRIBUTION", "SLURM_GTIDS", "SLURM_HINT", "SLURM_JOB_ID", "SLURM_JOB_NUM_NODES",
    "SLURM_JOB_PARTITION", "SLURM_MEM_BIND", "SLURM_MPI_TYPE", "SLURM_NNODES", "SLURM_NPROCS", "SLURM_NTASKS",
    "SLURM_STEP_ID", "SLURM_TASKS_PER_NODE", "SLURM_THREADS", "UCX_"};

int secrets_may_record(const char *name, size_t bytes)
{
    for (size_t i = 0; i < LENGTH(recorded); i++) {
        size_t length = strlen(recorded[i]);
        if (length <= bytes && !strncmp(name, recorded[i], length))
            return 1;
    }
    return 0;
}

/* --- words -------------------------------------------------------------------------------------------------------- */

struct text {
    char *at;
    size_t room; /* what is left, without the final zero */
};

/* All of it or, where `whole` is set and there is no room, nothing. */
static void append(struct text *text, const char *from, size_t bytes, int whole)
{
    if (bytes > text->room) {
        bytes = whole ? 0 : text->room;
        text->room = bytes;
    }
    memcpy(text->at, from, bytes);
    text->at += bytes;
    text->room -= bytes;
}

static void withhold(struct text *text)
{
    append(text, SECRETS_WITHHELD, strlen(SECRETS_WITHHELD), 1);
}

/* Where the part of a word begins that is kept back to its end: behind the first = or : that a secret name stands
 * before. */
static size_t secret_begins(const char *word, size_t bytes)
{
    for (size_t at = 0; at < bytes; at++)
        if ((word[at] == '=' || word[at] == ':') && secrets_in_name(word, at))
            return at + 1;
    return bytes;
}

/* Appends with "user:password@" of addresses withheld, wherever they stand in it. */
static void append_addresses(struct text *text, const char *word, size_t bytes)
{
    const char *end = word + bytes;
    while (word < end) {
        const char *scheme = memmem(word, (size_t)(end - word), "//", 2);
        const char *host = scheme ? scheme + 2 : end, *stop = host;
        while (stop < end && !strchr("/?# ,;\"'", *stop))
            stop++;
        const char *at = scheme ? memrchr(host, '@', (size_t)(stop - host)) : NULL;
        append(text, word, (size_t)(host - word), 0);
        if (at)
            withhold(text);
        append(text, at ? at : host, (size_t)(stop - (at ? at : host)), 0);
        word = stop;
    }
}

static void append_word(struct text *text, const char *word, size_t bytes)
{
    size_t secret = secret_begins(word, bytes);
    append_addresses(text, word, secret);
    if (secret < bytes)
        withhold(text);
}

size_t secrets_hide(const char *words, size_t bytes, char separator, char *out, size_t out_bytes)
{
    struct text text = {out, out_bytes - 1};
    int is_secret = 0; /* the word, by what stands before it */
    for (size_t at = 0; at < bytes;) {
        const char *word = words + at, *end = memchr(word, separator, bytes - at);
        size_t length = end ? (size_t)(end - word) : bytes - at;
        if (at)
            append(&text, " ", 1, 0);
        if (is_secret)
            withhold(&text);
        else
            append_word(&text, word, length);
        is_secret = !is_secret && length > 1 && *word == '-' && !memchr(word, '=', length) && secrets_in_name(word, length);
        at += length + 1;
    }
    *text.at = '\0';
    return (size_t)(text.at - out);
}

size_t secrets_hide_value(const char *name, const char *value, char *out, size_t out_bytes)
{
    struct text text = {out, out_bytes - 1};
    if (secrets_in_name(name, strlen(name)))
        withhold(&text);
    else
        append_word(&text, value, strlen(value));
    *text.at = '\0';
    return (size_t)(text.at - out);
}
