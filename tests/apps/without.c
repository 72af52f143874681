/*
 * without perf|debugging ERROR COMMAND...: runs the command with perf_event_open refused, or with what reads another process,
 * as containers and kernels do it: EPERM, EACCES, ENOSYS. Not an MPI program.
 */
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static int number_of(const char *error)
{
    return !strcmp(error, "EPERM") ? EPERM : !strcmp(error, "EACCES") ? EACCES : !strcmp(error, "ENOSYS") ? ENOSYS : 0;
}

static int refuse(unsigned call, unsigned other, int error)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 1, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, other, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (unsigned)error),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

int main(int argc, char **argv)
{
    int error = argc > 3 ? number_of(argv[2]) : 0, is_perf = argc > 3 && !strcmp(argv[1], "perf");
    if (!error || (!is_perf && strcmp(argv[1], "debugging") != 0)) {
        fputs("without perf|debugging EPERM|EACCES|ENOSYS COMMAND...\n", stderr);
        return 2;
    }
    if (!(is_perf ? refuse(SYS_perf_event_open, SYS_perf_event_open, error) : refuse(SYS_ptrace, SYS_process_vm_readv, error))) {
        perror("without");
        return 77;
    }
    execvp(argv[3], &argv[3]);
    perror(argv[3]);
    return 127;
}
