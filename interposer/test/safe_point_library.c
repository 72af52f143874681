/* A library of one function, compiled under several names: test_safe_point.c asks for the address of each. */
__attribute__((visibility("default"))) int NAME(void);

#ifdef NEEDS
int NEEDS(void);
#endif

int NAME(void)
{
#ifdef NEEDS
    return NEEDS() + 1;
#else
    return 1;
#endif
}

#ifdef ALLOCATES
#include <stddef.h>

void *__libc_memalign(size_t alignment, size_t bytes);
__attribute__((visibility("default"))) void *memalign(size_t alignment, size_t bytes);

/* Everybody's. */
void *memalign(size_t alignment, size_t bytes)
{
    return __libc_memalign(alignment, bytes);
}
#endif
