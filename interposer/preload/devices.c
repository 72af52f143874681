#include "devices.h"

__attribute__((visibility("default"))) struct lapscope_devices lapscope_devices = {.version = LAPSCOPE_DEVICES_VERSION};
