#pragma once

/// What jemalloc reads before its first allocation; `MALLOC_CONF` in the environment goes before it. See decision 66.
extern const char *malloc_conf;
