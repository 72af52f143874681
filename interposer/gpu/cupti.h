/*
 * What the plugin needs of CUPTI's interface, cupti_activity.h of CUDA 12 and 13: NVIDIA's headers may not be passed on and are a
 * third of a megabyte, of which this is used. tests/gpu-headers.sh holds it against both of them.
 */
#ifndef LAPSCOPE_CUPTI_H
#define LAPSCOPE_CUPTI_H

#include <stddef.h>
#include <stdint.h>

enum { CUPTI_OK = 0 };
enum {
    CUPTI_OF_MEMCPY = 1,
    CUPTI_OF_MEMSET = 2,
    CUPTI_OF_KERNEL = 3,
    CUPTI_OF_CONTEXT = 9,
    CUPTI_OF_CONCURRENT_KERNEL = 10,
    CUPTI_OF_PEER_MEMCPY = 22
};
enum { CUPTI_COPY_TO_DEVICE = 1, CUPTI_COPY_TO_HOST = 2, CUPTI_COPY_TO_ARRAY = 3, CUPTI_COPY_FROM_ARRAY = 4 };
enum { CUPTI_FLUSH_FORCED = 1 };
enum {
    CUPTI_MAX_LIMIT_REACHED = 12,
    CUPTI_INSUFFICIENT_PRIVILEGES = 35,
    CUPTI_MULTIPLE_SUBSCRIBERS = 39,
    CUPTI_VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES = 40
};

/* CUpti_ActivityKernel, CUpti_ActivityMemcpy, CUpti_ActivityMemcpyPtoP and CUpti_ActivityMemset of any version, as far as they have
 * begun alike since CUDA 9. Times are 0 where they are not known. */
struct cupti_record {
    uint32_t kind;
    uint8_t copy_kind;          /* of copies */
    uint8_t other[11];
    uint64_t start, end;
    union {
        uint32_t device;        /* of copies, and of memory that is set */
        uint64_t completed;     /* of kernels */
    };
    uint32_t kernel_device;
};

typedef void cupti_requested(uint8_t **buffer, size_t *size, size_t *most_records);
typedef void cupti_completed(void *context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid);
typedef uint64_t cupti_timestamp(void);

struct cupti {
    int (*ActivityRegisterCallbacks)(cupti_requested *, cupti_completed *);
    int (*ActivityRegisterTimestampCallback)(cupti_timestamp *);
    int (*ActivityEnable)(int kind);
    int (*ActivityGetNextRecord)(uint8_t *buffer, size_t valid, struct cupti_record **record);
    int (*ActivityGetNumDroppedRecords)(void *context, uint32_t stream, size_t *dropped);
    int (*ActivityFlushAll)(uint32_t flag);
};

#endif
