#include "api.h"

#include <cmath>
#include <new>
#include <system_error>

using draftwood::Cache;
using draftwood::kGroup;
using draftwood::kTile;
using draftwood::Model;

int32_t draftwood_abi() { return 1; }
const char* draftwood_isa() { return draftwood::best_kernels()->name; }
const draftwood::Kernels* draftwood_kernels(const char* name) { return draftwood::kernels_by_name(name); }

Model* draftwood_model_create(const draftwood::ModelWeights* weights, const char* isa, int32_t threads) {
  const draftwood::Kernels* kernels = isa ? draftwood::kernels_by_name(isa) : draftwood::best_kernels();
  if (!kernels) return nullptr;
  try {
    return new Model(*weights, *kernels, threads);
  } catch (const std::bad_alloc&) {
    return nullptr;
  } catch (const std::system_error&) {  // no more threads
    return nullptr;
  }
}

void draftwood_model_destroy(Model* model) { delete model; }
const char* draftwood_model_isa(const Model* model) { return model->kernels().name; }

Cache* draftwood_cache_create(const Model* model, int32_t capacity) {
  try {
    return new Cache(model->weights(), capacity);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

void draftwood_cache_destroy(Cache* cache) { delete cache; }

void draftwood_cache_keep(Cache* cache, int32_t length, const int32_t* path, int32_t count) {
  cache->keep(length, path, count);
}

int32_t draftwood_forward(Model* model, Cache* cache, int32_t length, const draftwood::Rows* rows,
                          const draftwood::Scores* scores, draftwood::CancelCheck cancelled) {
  try {
    return static_cast<int32_t>(model->forward(*cache, length, *rows, scores, cancelled));
  } catch (const std::bad_alloc&) {
    return static_cast<int32_t>(draftwood::Status::kNoMemory);
  }
}

int32_t draftwood_pack(const float* weights, int32_t outputs, int32_t inputs, int32_t scale_groups, uint8_t* packed,
                       float* scales) {
  const int32_t width = inputs / scale_groups;
  for (int32_t o = 0; o < outputs; o++) {
    const float* row = weights + static_cast<int64_t>(o) * inputs;
    uint8_t* tile = packed + static_cast<int64_t>(o / kTile) * kTile * inputs + o % kTile * 4;
    for (int32_t g = 0; g < scale_groups; g++) {
      float largest = 0.0f;
      for (int32_t k = g * width; k < (g + 1) * width; k++) {
        if (!std::isfinite(row[k])) return 0;
        largest = std::fmax(largest, std::fabs(row[k]));
      }
      const float inverse = largest > 0.0f ? 127.0f / largest : 0.0f;
      scales[(static_cast<int64_t>(o / kTile) * scale_groups + g) * kTile + o % kTile] = largest / 127.0f;
      for (int32_t k = g * width; k < (g + 1) * width; k++)
        tile[static_cast<int64_t>(k / 4) * 4 * kTile + k % 4] =
            static_cast<uint8_t>(static_cast<int32_t>(std::lrintf(row[k] * inverse)) + 128);
    }
  }
  return 1;
}
