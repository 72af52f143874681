/* What hit watched words: when, how much of it inside MPI, by which instruction. */
#ifndef LAPSCOPE_TOUCH_H
#define LAPSCOPE_TOUCH_H

#include "watcher.h"

/* All words that were hit since the last call: `inside` MPI, which the thread entered at watcher->entered, or before. */
void touch_read_all(struct watcher *watcher, int inside);

/* Fills in who touched from the registers of the hit. */
void touch_find_frames(struct touch *touch);

#endif
