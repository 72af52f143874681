/* Asks by a weak symbol whether its MPI has a function, which that has not got, and by another one, which it has. */
extern int MPI_Session_init(void) __attribute__((weak));
extern int MPI_Init(void) __attribute__((weak));

int has_too_much(void);

int has_too_much(void)
{
    return MPI_Session_init || !MPI_Init;
}
