/* Whether an interpreter is built as its layout says. */
#ifndef LAPSCOPE_PYTHON_PROOF_H
#define LAPSCOPE_PYTHON_PROOF_H

#include <stdint.h>

/* Its functions and objects that are asked; NULL where it has none. */
struct python_api {
    void *(*this_thread)(void);            /* PyGILState_GetThisThreadState */
    int (*is_ending)(void);                /* Py_IsFinalizing, of older ones _Py_IsFinalizing */
    int (*has_lock)(void);                 /* PyGILState_Check */
    void *(*frame)(void);                  /* PyEval_GetFrame */
    int (*line_number)(void *frame);       /* PyFrame_GetLineNumber */
    void *(*code_of)(void *frame);         /* PyFrame_GetCode: 3.9 on */
    void *(*outer_of)(void *frame);        /* PyFrame_GetBack: 3.9 on */
    void (*release)(void *object);         /* Py_DecRef */
    intptr_t (*text_length)(void *text);   /* PyUnicode_GetLength */
    uint32_t (*character)(void *text, intptr_t at); /* PyUnicode_ReadChar */
    char *code_type, *text_type, *bytes_type; /* PyCode_Type, PyUnicode_Type, PyBytes_Type */
};

enum python_proof { PYTHON_PROVED, PYTHON_NOT_YET /* it runs nothing on this thread */, PYTHON_DIFFERS };

/* Reads by copies of the kernel's first, so that nothing crashes; then asks the interpreter, where this thread has its lock. */
enum python_proof python_prove(const struct python_api *api);

#endif
