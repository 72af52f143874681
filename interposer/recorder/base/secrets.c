#define _GNU_SOURCE
#include "secrets.h"

#include <ctype.h>
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

static int is_name(const char *name, size_t bytes, const char *const *names)
{
    for (; *names; names++)
        if (strlen(*names) == bytes && !strncasecmp(name, *names, bytes))
            return 1;
    return 0;
}

/* Whether a secret follows this name, which may have other words before it: too short names are only meant as a whole. */
static int announces(const char *word, size_t bytes)
{
    static const char *const names[] = {"pwd", "pw", "sig", NULL};
    size_t begin = bytes;
    while (begin && isalnum((unsigned char)word[begin - 1]))
        begin--;
    return secrets_in_name(word, bytes) || is_name(word + begin, bytes - begin, names);
}

/* Where the part of a word begins that is kept back to its end: behind the first = or : that a secret name stands
 * before. */
static size_t secret_begins(const char *word, size_t bytes)
{
    for (size_t at = 0; at < bytes; at++)
        if ((word[at] == '=' || word[at] == ':') && announces(word, at))
            return at + 1;
    return bytes;
}

/* Keys that services give out so that scanners find them: by their first letters and their least length. What GitHub, GitLab,
 * Amazon, Slack and others publish of their tokens; of a JSON Web Token the begin of its header. */
static const struct { const char *begin; size_t least; } forms[] = {
    {"ghp_", 20},  {"gho_", 20},  {"ghu_", 20},  {"ghs_", 20}, {"ghr_", 20}, {"github_pat_", 20}, {"glpat-", 20}, {"AKIA", 20},
    {"ASIA", 20},  {"xoxa-", 14}, {"xoxb-", 14}, {"xoxe-", 14}, {"xoxp-", 14}, {"xoxr-", 14},     {"xoxs-", 14},  {"sk-", 20},
    {"eyJ", 20},   {"-----BEGIN ", 11}};

/* The length of a secret that begins here and is known by its form; 0: none does. */
static size_t form_at(const char *word, size_t bytes)
{
    size_t length = 0;
    while (length < bytes && (isalnum((unsigned char)word[length]) || strchr("_-.+/=", word[length])))
        length++;
    for (size_t i = 0; i < LENGTH(forms); i++) {
        size_t begin = strlen(forms[i].begin);
        if (begin <= bytes && !strncmp(word, forms[i].begin, begin) && (length >= forms[i].least || *word == '-'))
            return *word == '-' ? bytes : length; /* a block goes to its end */
    }
    return 0;
}

/* "user:password@" without a scheme before it: its length up to the @; 0: it does not begin so. */
static size_t account_at(const char *word, size_t bytes)
{
    const char *at = memchr(word, '@', bytes), *colon = memchr(word, ':', bytes);
    int is_one = at && colon && colon > word && colon + 1 < at && at + 1 < word + bytes && !memchr(word, '/', (size_t)(at - word));
    return is_one ? (size_t)(at - word) : 0;
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
    size_t secret = secret_begins(word, bytes), from = account_at(word, secret);
    if (from)
        withhold(text);
    for (size_t at = from; at < secret; at++) {
        size_t length = at == from || !isalnum((unsigned char)word[at - 1]) ? form_at(word + at, secret - at) : 0;
        if (length) {
            append_addresses(text, word + from, at - from);
            withhold(text);
            from = at + length;
            at = from - 1;
        }
    }
    append_addresses(text, word + from, secret - from);
    if (secret < bytes)
        withhold(text);
}

/* Whether an option's value, the word behind it, is a secret: by the option, or by both where programs use such options for other
 * things. */
static int is_value_secret(const char *option, size_t option_bytes, const char *value, size_t bytes)
{
    static const char *const accounts[] = {"u", "user", NULL}, *const passwords[] = {"p", NULL}, *const codes[] = {"pin", "otp", NULL};
    size_t dashes = 0, digits = 0;
    while (dashes < option_bytes && option[dashes] == '-')
        dashes++;
    if (!dashes || memchr(option, '=', option_bytes) || memchr(option, ' ', option_bytes))
        return 0;
    const char *name = option + dashes;
    size_t length = option_bytes - dashes;
    while (digits < bytes && isdigit((unsigned char)value[digits]))
        digits++;
    return announces(name, length) || (is_name(name, length, accounts) && memchr(value, ':', bytes)) ||
           (is_name(name, length, passwords) && bytes && digits < bytes) ||
           (is_name(name, length, codes) && digits == bytes && digits >= 4);
}

size_t secrets_hide(const char *words, size_t bytes, char separator, char *out, size_t out_bytes)
{
    struct text text = {out, out_bytes - 1};
    const char *before = NULL; /* the word before, where it may be an option */
    size_t before_bytes = 0;
    for (size_t at = 0; at < bytes;) {
        const char *word = words + at, *end = memchr(word, separator, bytes - at);
        size_t length = end ? (size_t)(end - word) : bytes - at;
        int is_secret = before && is_value_secret(before, before_bytes, word, length);
        if (at)
            append(&text, " ", 1, 0);
        if (is_secret)
            withhold(&text);
        else
            append_word(&text, word, length);
        before = is_secret ? NULL : word;
        before_bytes = length;
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
