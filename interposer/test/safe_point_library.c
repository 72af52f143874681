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
