/* Python functions, each numbered as if it were an object file. */
#ifndef LAPSCOPE_PYTHON_FUNCTION_H
#define LAPSCOPE_PYTHON_FUNCTION_H

#include "code.h"

/* The address of a line of a code object's function. */
uintptr_t python_address_of(uintptr_t code, struct python_place place);

#endif
