#pragma once

#include <curl/curl.h>

// Swift does not import variadic functions. Each wrapper below is one of them at one type of its last argument, named
// after the function and the type; none adds behaviour.

// curl_easy_setopt

static inline CURLcode shim_easy_setopt_long(CURL *handle, CURLoption option, long value) {
    return curl_easy_setopt(handle, option, value);
}

static inline CURLcode shim_easy_setopt_offset(CURL *handle, CURLoption option, curl_off_t value) {
    return curl_easy_setopt(handle, option, value);
}

static inline CURLcode shim_easy_setopt_string(CURL *handle, CURLoption option, const char *value) {
    return curl_easy_setopt(handle, option, value);
}

static inline CURLcode shim_easy_setopt_bytes(CURL *handle, CURLoption option, const void *value) {
    return curl_easy_setopt(handle, option, value);
}

static inline CURLcode shim_easy_setopt_pointer(CURL *handle, CURLoption option, void *value) {
    return curl_easy_setopt(handle, option, value);
}

static inline CURLcode shim_easy_setopt_list(CURL *handle, CURLoption option, struct curl_slist *value) {
    return curl_easy_setopt(handle, option, value);
}

/// The type that CURLOPT_WRITEFUNCTION and CURLOPT_HEADERFUNCTION share.
typedef size_t (*shim_data_callback)(char *data, size_t size, size_t count, void *context);

static inline CURLcode shim_easy_setopt_callback(CURL *handle, CURLoption option, shim_data_callback value) {
    return curl_easy_setopt(handle, option, value);
}

/// CURLOPT_OPENSOCKETFUNCTION.
static inline CURLcode shim_easy_setopt_opensocket(CURL *handle, curl_opensocket_callback value) {
    return curl_easy_setopt(handle, CURLOPT_OPENSOCKETFUNCTION, value);
}

// curl_easy_getinfo

static inline CURLcode shim_easy_getinfo_long(CURL *handle, CURLINFO info, long *value) {
    return curl_easy_getinfo(handle, info, value);
}

static inline CURLcode shim_easy_getinfo_pointer(CURL *handle, CURLINFO info, void **value) {
    return curl_easy_getinfo(handle, info, value);
}

// curl_multi_setopt

static inline CURLMcode shim_multi_setopt_long(CURLM *handle, CURLMoption option, long value) {
    return curl_multi_setopt(handle, option, value);
}

// CURLMsg holds a union whose member `result` has the meaning its message says.

static inline CURLcode shim_message_result(const CURLMsg *message) {
    return message->data.result;
}
