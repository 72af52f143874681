/* A program that completes requests which a library has made past whatever is preloaded. Its argument is the library. */
#include "check.h"

#include <dlfcn.h>

enum { BYTES = 1000, ROUNDS = 50 };

int main(int argc, char **argv)
{
    static char sent[BYTES], received[BYTES];
    int good = 0;
    MPI_Init(&argc, &argv);
    void *library = argc == 2 ? dlopen(argv[1], RTLD_NOW | RTLD_DEEPBIND) : NULL;
    CHECK(library);
    void (*post)(char *, char *, int, MPI_Request *);
    *(void **)&post = dlsym(library, "post");
    CHECK(post);
    for (int round = 0; round < ROUNDS; round++) {
        MPI_Request requests[2];
        fill(sent, BYTES, round);
        post(sent, received, BYTES, requests);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        good += holds(received, BYTES, round);
    }
    printf("%d of %d\n", good, ROUNDS);
    MPI_Finalize();
    return 0;
}
