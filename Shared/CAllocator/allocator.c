#include "allocator.h"

const char *malloc_conf = "narenas:2,dirty_decay_ms:500,tcache_max:4096";
