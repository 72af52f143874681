/* Numbers that look random and are the same in every run. */
#ifndef DRAW_H
#define DRAW_H

#include <stdint.h>

static inline uint32_t draw(uint32_t below)
{
    static uint32_t state = 1;
    state = state * 1664525u + 1013904223u;
    return (state >> 8) % below;
}

#endif
