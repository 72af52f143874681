/* What is kept out of a recording, and what is not. */
#include "check.h"

#include "../recorder/base/secrets.h"

#include <string.h>

static char text[4096];

/* As in /proc/self/cmdline: words that end with a zero, given here with | for it. */
static const char *hidden(const char *words)
{
    char copy[1024];
    size_t bytes = strlen(words);
    for (size_t i = 0; i <= bytes; i++)
        copy[i] = words[i] == '|' ? '\0' : words[i];
    size_t length = secrets_hide(copy, bytes, '\0', text, sizeof text);
    CHECK_EQUAL(length, strlen(text));
    return text;
}

static void test_names(void)
{
    static const char *const secret[] = {"SLURM_JWT",   "FI_AUTH_KEY",   "I_MPI_HYDRA_PASSWORD", "aws_secret_access_key",
                                         "GitHub_Token", "--credentials", "PASSPHRASE"};
    static const char *const plain[] = {"OMPI_MCA_btl", "UCX_TLS", "KMP_AFFINITY", "--input", "n"};
    for (size_t i = 0; i < sizeof secret / sizeof secret[0]; i++)
        CHECK(secrets_in_name(secret[i], strlen(secret[i])));
    for (size_t i = 0; i < sizeof plain / sizeof plain[0]; i++)
        CHECK(!secrets_in_name(plain[i], strlen(plain[i])));
}

static void test_which_variables(void)
{
    static const char *const taken[] = {"OMPI_MCA_btl_tcp_eager_limit", "UCX_TLS", "I_MPI_FABRICS", "MPIR_CVAR_ASYNC_PROGRESS",
                                        "SLURM_NTASKS", "OMP_NUM_THREADS", "LD_PRELOAD", "CUDA_INJECTION64_PATH"};
    static const char *const left[] = {"SLURM_JWT", "OMPI_MCA_orte_hnp_uri", "I_MPI_HYDRA_PASSWORD", "PMIX_SERVER_URI", "HOME",
                                       "AWS_SECRET_ACCESS_KEY", "OMPI_MCA_ess_base_jobid", "PATH", "HYDRA_PROXY_STRING"};
    for (size_t i = 0; i < sizeof taken / sizeof taken[0]; i++)
        CHECK(secrets_may_record(taken[i], strlen(taken[i])));
    for (size_t i = 0; i < sizeof left / sizeof left[0]; i++)
        CHECK(!secrets_may_record(left[i], strlen(left[i])));
}

static void test_command_lines(void)
{
    CHECK_TEXT(hidden("./app|-n|4|input.dat|"), "./app -n 4 input.dat");
    CHECK_TEXT(hidden("./app|--password=geheim|-n|4"), "./app --password=(withheld) -n 4");
    CHECK_TEXT(hidden("./app|--password|geheim|-n|4|"), "./app --password (withheld) -n 4");
    CHECK_TEXT(hidden("./app|--bearer|geheim|--psk|geheim|--sas|geheim|--mfa|geheim|x|"),
               "./app --bearer (withheld) --psk (withheld) --sas (withheld) --mfa (withheld) x");
    CHECK_TEXT(hidden("./app|Bearer geheim|Password is geheim|PASSWORD|geheim|x"),
               "./app Bearer (withheld) Password is (withheld) PASSWORD (withheld) x");
    CHECK_TEXT(hidden("./app|/PW geheim|--pass\tgeheim|x?password%3Dgeheim"), "./app /PW (withheld) --pass\t(withheld) x?password%3D(withheld)");
    CHECK_TEXT(hidden("./app|token 12|/path/to/token|file.txt|the tokenizer x"), "./app token 12 /path/to/token file.txt the tokenizer x");
    CHECK_TEXT(hidden("./app|--api-key|-geheim|x|"), "./app --api-key (withheld) x");
    CHECK_TEXT(hidden("./app|TOKEN=geheim"), "./app TOKEN=(withheld)");
    CHECK_TEXT(hidden("./app|--opt|host=a,password=geheim,b"), "./app --opt host=a,password=(withheld)");
    CHECK_TEXT(hidden("./app|{\"api_key\":\"geheim\"}|"), "./app {\"api_key\":(withheld)");
    CHECK_TEXT(hidden("./app|--out|s3://me:geheim@host/b?x=y|https://h/p@q"),
               "./app --out s3://(withheld)@host/b?x=y https://h/p@q");
    CHECK_TEXT(hidden("./app||x|"), "./app  x");
    CHECK_TEXT(hidden(""), "");
    CHECK_TEXT(hidden("./app|--token"), "./app --token");
}

/* Keys that are known by what they look like, wherever they stand; and what only looks a little like them. */
static void test_forms(void)
{
    CHECK_TEXT(hidden("./app|ghp_0123456789abcdefghijABCDEFGHIJ012345|x"), "./app (withheld) x");
    CHECK_TEXT(hidden("./app|in:github_pat_11ABCDEFG0123456789_abc,out"), "./app in:(withheld),out");
    CHECK_TEXT(hidden("./app|glpat-0123456789abcdefghij"), "./app (withheld)");
    CHECK_TEXT(hidden("./app|--id=AKIAIOSFODNN7EXAMPLE"), "./app --id=(withheld)");
    CHECK_TEXT(hidden("./app|xoxb-123456789012-abcdef"), "./app (withheld)");
    CHECK_TEXT(hidden("./app|sk-0123456789abcdefghijklmn"), "./app (withheld)");
    CHECK_TEXT(hidden("./app|eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abc-_x|y"), "./app (withheld) y");
    CHECK_TEXT(hidden("./app|-----BEGIN RSA PRIVATE KEY-----\nMII\n-----END|x"), "./app (withheld) x");
    CHECK_TEXT(hidden("./app|--hub=hf_0123456789abcdefghijABCDEFGHIJ0123"), "./app --hub=(withheld)");
    CHECK_TEXT(hidden("./app|npm_0123456789abcdefghijABCDEFGHIJ012345"), "./app (withheld)");
    CHECK_TEXT(hidden("./app|AIza0123456789abcdefghijABCDEFGHIJ0123456"), "./app (withheld)");
    CHECK_TEXT(hidden("./app|https://hooks.slack.com/services/T0123/B0123/abcdefgh"), "./app https://(withheld)");
    CHECK_TEXT(hidden("./app|hf_model|npm_run|SG.|hooks.slack.com"), "./app hf_model npm_run SG. hooks.slack.com");
    CHECK_TEXT(hidden("./app|sk-1|AKIA|eyJ|mask-0123456789abcdefghijklmn"),
               "./app sk-1 AKIA eyJ mask-0123456789abcdefghijklmn");
}

static void test_options_of_accounts(void)
{
    CHECK_TEXT(hidden("./app|--pwd|geheim|x"), "./app --pwd (withheld) x");
    CHECK_TEXT(hidden("./app|/PW:geheim"), "./app /PW:(withheld)");
    CHECK_TEXT(hidden("curl|-u|me:geheim|x"), "curl -u (withheld) x");
    CHECK_TEXT(hidden("./app|-u|me"), "./app -u me");
    CHECK_TEXT(hidden("./app|me:geheim@host:5432/b"), "./app (withheld)@host:5432/b");
    CHECK_TEXT(hidden("./app|https://h/b?a=1&sig=geheim"), "./app https://h/b?a=1&sig=(withheld)");
    CHECK_TEXT(hidden("./app|--pin|1234|--otp|123456"), "./app --pin (withheld) --otp (withheld)");
    CHECK_TEXT(hidden("gmx|-pin|on|-p|8"), "gmx -pin on -p 8");
    CHECK_TEXT(hidden("./app|-p|geheim"), "./app -p (withheld)");
    CHECK_TEXT(hidden("./app|--pin=86420004|--otp=geheim|--otp|geheim"),
               "./app --pin=(withheld) --otp=(withheld) --otp (withheld)");
    CHECK_TEXT(hidden("./app|pin=1234|https://h/b?otp=123456"), "./app pin=(withheld) https://h/b?otp=(withheld)");
    CHECK_TEXT(hidden("curl|-ume:geheim|--user=me:geheim|-u=me:geheim"),
               "curl -u(withheld) --user=(withheld) -u=(withheld)");
    CHECK_TEXT(hidden("curl|--proxy-user|me:geheim|--cookie|session=geheim"),
               "curl --proxy-user (withheld) --cookie (withheld)");
    CHECK_TEXT(hidden("./app|https://h/b?X-Amz-Signature=geheim"), "./app https://h/b?X-Amz-Signature=(withheld)");
    CHECK_TEXT(hidden("sh|-c|sshpass -p geheim ssh h|x"), "sh -c sshpass -p (withheld) x");
    CHECK_TEXT(hidden("sh|-c|./app --password my geheim|x"), "sh -c ./app --password (withheld) x");
    CHECK_TEXT(hidden("./app|--password|my geheim|x"), "./app --password (withheld) x");
    CHECK_TEXT(hidden("mkdir|-p|out"), "mkdir -p out");
    CHECK_TEXT(hidden("sh|-c|mkdir -p out && ./app -n 4"), "sh -c mkdir -p out && ./app -n 4");
    CHECK_TEXT(hidden("./app|-p|in.yaml|-p|./in|-p|/in|-p|8"), "./app -p in.yaml -p ./in -p /in -p 8");
    CHECK_TEXT(hidden("gmx|-pin|auto|-pinoffset|8|--user=me|-u|http://h:80"),
               "gmx -pin auto -pinoffset 8 --user=me -u http://h:80");
    CHECK_TEXT(hidden("./app|user=0:1|I_MPI_PIN=1|I_MPI_PIN=enable|spin=12345"),
               "./app user=0:1 I_MPI_PIN=1 I_MPI_PIN=enable spin=12345");
    CHECK_TEXT(hidden("./app|node:0@2|10:30@x/y"), "./app (withheld)@2 (withheld)@x/y");
}

static void test_lines_of_old_databases(void)
{
    static const char line[] = "./app --password geheim -n 4";
    secrets_hide(line, strlen(line), ' ', text, sizeof text);
    CHECK_TEXT(text, "./app --password (withheld) -n 4");
    static const char own[] = "sh -c mkdir -p out";
    secrets_hide(own, strlen(own), ' ', text, sizeof text);
    CHECK_TEXT(text, own);
}

static void test_values(void)
{
    secrets_hide_value("FI_AUTH_KEY", "geheim", text, sizeof text);
    CHECK_TEXT(text, SECRETS_WITHHELD);
    secrets_hide_value("OMPI_MCA_btl", "tcp,self", text, sizeof text);
    CHECK_TEXT(text, "tcp,self");
    secrets_hide_value("UCX_X", "tcp://me:geheim@node:80", text, sizeof text);
    CHECK_TEXT(text, "tcp://(withheld)@node:80");
    secrets_hide_value("OMPI_MCA_mpi_x", "--pin=86420004", text, sizeof text);
    CHECK_TEXT(text, "--pin=(withheld)");
    secrets_hide_value("UCX_X", "ghp_0123456789abcdefghijABCDEFGHIJ012345", text, sizeof text);
    CHECK_TEXT(text, SECRETS_WITHHELD);
}

/* Whatever the room, nothing of a secret comes out, and the text ends. */
static void test_little_room(void)
{
    static const char line[] = "./app\0--password\0geheim\0ftp://u:geheim@h\0token=geheim\0--out\0x";
    for (size_t room = 1; room < sizeof line + 40; room++) {
        char small[128];
        memset(small, '!', sizeof small);
        size_t length = secrets_hide(line, sizeof line - 1, '\0', small, room);
        CHECK(length < room && small[length] == '\0' && small[room] == '!');
        CHECK(!strstr(small, "geheim") && !strstr(small, "u:"));
    }
}

int main(void)
{
    test_names();
    test_which_variables();
    test_command_lines();
    test_forms();
    test_options_of_accounts();
    test_lines_of_old_databases();
    test_values();
    test_little_room();
    return check_summary();
}
