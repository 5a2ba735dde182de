// The C interface of the kernels and of the model: what Python calls. Pointers stay owned by the caller unless a
// function's name says create. No exception leaves it: a null pointer means that memory ran out.
#pragma once

#include <cstdint>

#include "model.h"

#if defined(_WIN32)
#define DRAFTWOOD_API extern "C" __declspec(dllexport)
#else
#define DRAFTWOOD_API extern "C" __attribute__((visibility("default")))
#endif

// Changes with any struct or signature below; the caller refuses a library of another version.
DRAFTWOOD_API int32_t draftwood_abi();
DRAFTWOOD_API const char* draftwood_isa();

// `isa` null: the best of this machine; another name that it lacks: null is returned.
DRAFTWOOD_API draftwood::Model* draftwood_model_create(const draftwood::ModelWeights* weights, const char* isa,
                                                       int32_t threads);
DRAFTWOOD_API void draftwood_model_destroy(draftwood::Model* model);
DRAFTWOOD_API const char* draftwood_model_isa(const draftwood::Model* model);
DRAFTWOOD_API draftwood::Cache* draftwood_cache_create(const draftwood::Model* model, int32_t capacity);
DRAFTWOOD_API void draftwood_cache_destroy(draftwood::Cache* cache);
DRAFTWOOD_API void draftwood_cache_keep(draftwood::Cache* cache, int32_t length, const int32_t* path, int32_t count);
DRAFTWOOD_API int32_t draftwood_forward(draftwood::Model* model, draftwood::Cache* cache, int32_t length,
                                        const draftwood::Rows* rows, const draftwood::Scores* scores,
                                        draftwood::CancelCheck cancelled);
