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

/* By how they begin: what chooses and tunes transports, algorithms, progress, where ranks and threads are put, and whom CUDA loads.
 * What launchers tell their ranks of a job, its addresses and credentials, is not among them. */
static const char *const recorded[] = {
    "CUDA_INJECTION64_PATH",
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

/* Where the last word of a name begins: names have other words before it. */
static size_t last_word(const char *name, size_t bytes)
{
    while (bytes && isalnum((unsigned char)name[bytes - 1]))
        bytes--;
    return bytes;
}

/* Whether a secret follows this name: too short names are only meant as a whole. */
static int announces(const char *name, size_t bytes)
{
    static const char *const names[] = {"pwd", "pw", "sig", "signature", "cookie", "bearer", "psk", "sas", "mfa", NULL};
    size_t begin = last_word(name, bytes);
    return secrets_in_name(name, bytes) || is_name(name + begin, bytes - begin, names);
}

/* Whether a value is a secret by its name and by itself, as programs use such names for other things, too: "user:password" of an
 * account, codes of four signs and more. */
static int is_secret_of(const char *name, size_t bytes, const char *value, size_t value_bytes)
{
    static const char *const accounts[] = {"u", "user", NULL}, *const codes[] = {"otp", NULL}, *const pins[] = {"pin", NULL};
    size_t begin = last_word(name, bytes), signs = 0, digits = 0;
    const char *colon = memchr(value, ':', value_bytes);
    for (; signs < value_bytes && isalnum((unsigned char)value[signs]); signs++)
        digits += isdigit((unsigned char)value[signs]) != 0;
    if (is_name(name + begin, bytes - begin, accounts))
        return *name == '-' && colon && colon + 1 < value + value_bytes && colon[1] != '/';
    return signs >= 4 && (is_name(name + begin, bytes - begin, codes) || (digits && is_name(name + begin, bytes - begin, pins)));
}

/* What programs take by -p and is no password: numbers, and names of files. */
static int is_plain(const char *value, size_t bytes)
{
    size_t digits = 0, ending = last_word(value, bytes);
    while (digits < bytes && isdigit((unsigned char)value[digits]))
        digits++;
    return digits == bytes || *value == '/' || *value == '.' || (ending > 1 && value[ending - 1] == '.' && bytes - ending <= 5);
}

/* Whether a word announces a secret without being an option: "Bearer x", "password is x". */
static int is_announcement(const char *word, size_t bytes)
{
    static const char *const names[] = {"bearer", "credentials", "passphrase", "passwd", "password", "secret", "token", NULL};
    return is_name(word, bytes, names);
}

/* -x, --x, and /x, which is no path. */
static int is_option(const char *word, size_t bytes)
{
    return bytes >= 2 && (*word == '-' || (*word == '/' && !memchr(word + 1, '/', bytes - 1)));
}

/* Whether what stands behind the option `option`, one of these words, is a secret. */
static int is_value_secret(const char *words, const char *option, size_t option_bytes, const char *value, size_t bytes)
{
    static const char makes[] = "mkdir -p";
    const char *making = option + 2 - strlen(makes);
    if (is_announcement(option, option_bytes))
        return !is_plain(value, bytes);
    if (!is_option(option, option_bytes) || memchr(option, '=', option_bytes) || memchr(option, ' ', option_bytes) ||
        memchr(option, '\t', option_bytes))
        return 0;
    if (option_bytes == 2 && option[1] == 'p')
        return !is_plain(value, bytes) && (making < words || strncmp(making, makes, strlen("mkdir")));
    return announces(option, option_bytes) || is_secret_of(option, option_bytes, value, bytes);
}

/* Where the part of an argument begins that is kept back to its end: behind the first = or : that a secret name stands
 * before, behind such an option of a command that is one argument, and behind the -u of "-uuser:password". */
static size_t secret_begins(const char *words, size_t bytes)
{
    const char *word = words;
    for (size_t at = 0; at < bytes; at++) {
        const char *value = words + at + 1;
        size_t length = (size_t)(words + at - word), rest = bytes - at - 1;
        int is_gap = words[at] == ' ' || words[at] == '\t';
        if (rest > 2 && words[at] == '%' && (!strncasecmp(value, "3d", 2) || !strncasecmp(value, "3a", 2)) && announces(words, at))
            return at + 3; /* = or : in an address */
        if ((words[at] == '=' || words[at] == ':') && announces(words, at))
            return at + 1;
        if (words[at] == '=' && is_secret_of(word, length, value, rest))
            return at + 1;
        if (words[at] == ':' && length > 2 && !strncmp(word, "-u", 2) && rest && *value != '/')
            return (size_t)(word - words) + 2;
        if (is_gap && is_value_secret(words, word, length, value, rest))
            return rest > 3 && !strncasecmp(value, "is ", 3) ? at + 4 : at + 1;
        if (is_gap)
            word = value;
    }
    return bytes;
}

/* Keys that services give out so that scanners find them: by their first letters and their least length. What the services
 * publish of their tokens; of a JSON Web Token the begin of its header. */
static const struct { const char *begin; size_t least; } forms[] = {
    {"-----BEGIN ", 11}, {"AIza", 39},   {"AKIA", 20},      {"ASIA", 20},    {"GOCSPX-", 30}, {"SG.", 60},    {"dckr_pat_", 25},
    {"dop_v1_", 60},     {"eyJ", 20},    {"ghp_", 20},      {"gho_", 20},    {"ghu_", 20},    {"ghs_", 20},   {"ghr_", 20},
    {"github_pat_", 20}, {"glpat-", 20}, {"glrt-", 20},     {"hf_", 30},     {"hvb.", 60},    {"hvs.", 60},
    {"hooks.slack.com/services/", 30},   {"npm_", 36},      {"pypi-AgE", 60}, {"rk_live_", 20}, {"shpat_", 30}, {"sk-", 20},
    {"sk_live_", 20},    {"sk_test_", 20}, {"xapp-", 14},   {"xoxa-", 14},   {"xoxb-", 14},   {"xoxe-", 14},  {"xoxp-", 14},
    {"xoxr-", 14},       {"xoxs-", 14},  {"ya29.", 30}};

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

size_t secrets_hide(const char *words, size_t bytes, char separator, char *out, size_t out_bytes)
{
    struct text text = {out, out_bytes - 1};
    const char *before = NULL; /* the word before, where it may be an option */
    size_t before_bytes = 0;
    for (size_t at = 0; at < bytes;) {
        const char *word = words + at, *end = memchr(word, separator, bytes - at);
        size_t length = end ? (size_t)(end - word) : bytes - at;
        int is_secret = before && is_value_secret(words, before, before_bytes, word, length);
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
