/* Where CUPTI is: it is part of a CUDA toolkit, of a module of a cluster, or of PyPI's wheels, seldom in the loader's path. */
#ifndef LAPSCOPE_FIND_CUPTI_H
#define LAPSCOPE_FIND_CUPTI_H

/* Opens each that is found until `use` takes one, by returning other than 0; none is closed, as it may have begun something. Returns 0 where none is taken. */
int find_cupti(int (*use)(void *library, const char *path));

#endif
