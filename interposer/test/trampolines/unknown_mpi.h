/*
 * An MPI that lapscope does not know, with prototypes of its own: what the trampolines must carry unharmed, also on the
 * very first call, when they find the MPI and fill their slots.
 */
#ifndef UNKNOWN_MPI_H
#define UNKNOWN_MPI_H

struct wide {
    double values[4];
};

int MPI_Init(int *argc, char ***argv);
/* eight integer registers' worth and more on the stack */
long MPI_Alltoallw(long a, long b, long c, long d, long e, long f, long g, long h, long i, long j, long k);
/* all registers for floating-point arguments, and more on the stack */
double MPI_Scan(double a, float b, double c, double d, double e, double f, double g, double h, double i, int n);
/* a result returned in memory: its address is a hidden argument */
struct wide MPI_Exscan(struct wide in, int n);
/* variable arguments */
int MPI_Pcontrol(int level, ...);
void mpi_barrier__(int *value);

#endif
