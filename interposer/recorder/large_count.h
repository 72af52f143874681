/*
 * The large-count forms of MPI-4 differ from the others in the types of counts and displacements and in a suffix. The
 * files of wrappers that have such forms are written once, with COUNT, OFFSET and SIZED(name), and compiled twice: by
 * themselves, and through large_count.c.
 */
#ifdef LARGE_COUNT
#define COUNT MPI_Count
#define OFFSET MPI_Aint
#define SIZED(name) name##_c
#else
#define COUNT int
#define OFFSET int
#define SIZED(name) name
#endif
