/*
 * When devices of a rank worked, as a plugin hands it over (preload/devices.h), goes into the spool at once: what a killed
 * rank's devices did is there.
 *
 * Intervals of a device and a kind of work become one where the pause between them is short, in place. How short doubles each time
 * that so many rows were written, so that a run of any length has a few of these times as many rows; how long the device
 * worked in a row is kept to the tick.
 */
#ifndef LAPSCOPE_RECORD_DEVICE_H
#define LAPSCOPE_RECORD_DEVICE_H

struct lapscope_devices;

/* Where plugins are met. */
void device_meet(struct lapscope_devices *devices);

/* Whether one has come: CUDA loads it when it starts. */
int device_has_plugin(void);

/* From now on their intervals are recorded. */
void device_start(void);

/* Has the plugin hand over what it has: for MPI_Finalize. */
void device_flush(void);

/* Nothing is taken any more; the second in a forked child, whose spool it is not. */
void device_stop(void);
void device_forget(void);

#endif
