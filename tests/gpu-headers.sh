#!/bin/sh
# Holds interposer/gpu/cupti.h against NVIDIA's own headers of CUDA 12 and 13, of PyPI: they may not be passed on, and a build
# does without them.
set -eu
cd "$(dirname "$0")/.."
work=build/gpu-headers
mkdir -p "$work"

# headers NAME requirement...
headers() {
    name=$1
    shift
    [ "$(cat "$work/$name/ready" 2>/dev/null)" = "$*" ] && return
    python3 -m pip --disable-pip-version-check install -q --no-deps --target "$work/$name" --upgrade "$@"
    echo "$*" >"$work/$name/ready"
}

cat >"$work/hold.c" <<'EOF'
#include <cupti.h>
#define cupti_record ours
#include "../../interposer/gpu/cupti.h"
#define SAME(theirs, field, own) _Static_assert(offsetof(theirs, field) == offsetof(struct ours, own), #theirs "." #field)
#define KIND(theirs, own) _Static_assert((int)theirs == (int)own, #theirs)
#define RECORD(theirs) SAME(theirs, kind, kind); SAME(theirs, start, start); SAME(theirs, end, end)
RECORD(KERNEL); SAME(KERNEL, deviceId, kernel_device);
RECORD(MEMCPY); SAME(MEMCPY, deviceId, device); SAME(MEMCPY, copyKind, copy_kind);
RECORD(MEMSET); SAME(MEMSET, deviceId, device);
RECORD(PEER_MEMCPY); SAME(PEER_MEMCPY, deviceId, device);
_Static_assert(sizeof(((KERNEL *)0)->deviceId) == 4 && sizeof(((KERNEL *)0)->start) == 8 && sizeof(CUpti_ActivityKind) == 4, "sizes");
KIND(CUPTI_SUCCESS, CUPTI_OK); KIND(CUPTI_ERROR_MAX_LIMIT_REACHED, CUPTI_MAX_LIMIT_REACHED);
KIND(CUPTI_ERROR_INSUFFICIENT_PRIVILEGES, CUPTI_INSUFFICIENT_PRIVILEGES);
KIND(CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED, CUPTI_MULTIPLE_SUBSCRIBERS);
KIND(CUPTI_ERROR_VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES, CUPTI_VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES);
KIND(CUPTI_ACTIVITY_KIND_MEMCPY, CUPTI_OF_MEMCPY); KIND(CUPTI_ACTIVITY_KIND_MEMSET, CUPTI_OF_MEMSET);
KIND(CUPTI_ACTIVITY_KIND_MEMCPY2, CUPTI_OF_PEER_MEMCPY); KIND(CUPTI_ACTIVITY_KIND_KERNEL, CUPTI_OF_KERNEL); KIND(CUPTI_ACTIVITY_KIND_CONTEXT, CUPTI_OF_CONTEXT); KIND(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_OF_CONCURRENT_KERNEL);
KIND(CUPTI_ACTIVITY_MEMCPY_KIND_HTOD, CUPTI_COPY_TO_DEVICE); KIND(CUPTI_ACTIVITY_MEMCPY_KIND_DTOH, CUPTI_COPY_TO_HOST);
KIND(CUPTI_ACTIVITY_MEMCPY_KIND_HTOA, CUPTI_COPY_TO_ARRAY); KIND(CUPTI_ACTIVITY_MEMCPY_KIND_ATOH, CUPTI_COPY_FROM_ARRAY);
KIND(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED, CUPTI_FLUSH_FORCED);
/* functions: what is not the same is no redeclaration */
CUptiResult cuptiActivityRegisterCallbacks(void (*)(uint8_t **, size_t *, size_t *), void (*)(CUcontext, uint32_t, uint8_t *, size_t, size_t));
CUptiResult cuptiActivityRegisterTimestampCallback(uint64_t (*)(void));
CUptiResult cuptiActivityEnable(CUpti_ActivityKind);
CUptiResult cuptiActivityGetNextRecord(uint8_t *, size_t, CUpti_Activity **);
CUptiResult cuptiActivityGetNumDroppedRecords(CUcontext, uint32_t, size_t *);
CUptiResult cuptiActivityFlushAll(uint32_t);
EOF

# hold NAME KERNEL MEMCPY MEMSET PEER_MEMCPY INCLUDE...: versions of the records that this CUDA writes
hold() {
    name=$1
    definitions="-DKERNEL=CUpti_Activity$2 -DMEMCPY=CUpti_Activity$3 -DMEMSET=CUpti_Activity$4 -DPEER_MEMCPY=CUpti_Activity$5"
    shift 5
    # shellcheck disable=SC2086 # words
    ${CC:-cc} -std=gnu11 -fsyntax-only $definitions $(printf ' -isystem %s' "$@") "$work/hold.c"
    for symbol in $(sed -n 's/.*int (\*\(.*\))(.*/cupti\1/p' interposer/gpu/cupti.h); do
        if ! nm -D --defined-only "$work/$name"/nvidia/*/lib/libcupti.so.* | grep -qw "$symbol"; then
            echo "libcupti of $name has no $symbol" >&2
            exit 1
        fi
    done
    echo "$name: as interposer/gpu/cupti.h has it"
}

headers cuda12 nvidia-cuda-cupti-cu12==12.9.79 nvidia-cuda-runtime-cu12==12.9.79
headers cuda13 nvidia-cuda-cupti==13.0.85 nvidia-cuda-runtime==13.0.96 nvidia-cuda-crt==13.0.88
# what is missing of CUDA 12, the compiler's own headers, has no layout in it
hold cuda12 Kernel9 Memcpy6 Memset4 MemcpyPtoP4 "$work"/cuda12/nvidia/cuda_cupti/include "$work"/cuda12/nvidia/cuda_runtime/include "$work"/cuda13/nvidia/cu13/include
hold cuda13 Kernel10 Memcpy6 Memset4 MemcpyPtoP4 "$work"/cuda13/nvidia/cu13/include
