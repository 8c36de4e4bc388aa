#pragma once

// Every function we call imports into Swift as it is: nothing in nghttp2 that we need is variadic or a macro.
#include <nghttp2/nghttp2.h>
