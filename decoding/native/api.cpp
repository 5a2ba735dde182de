#include "api.h"

#include <new>

using draftwood::Cache;
using draftwood::Model;

int32_t draftwood_abi() { return 2; }
const char* draftwood_isa() { return draftwood::best_kernels()->name; }

Model* draftwood_model_create(const draftwood::ModelWeights* weights, const char* isa, int32_t threads) {
  const draftwood::Kernels* kernels = isa ? draftwood::kernels_by_name(isa) : draftwood::best_kernels();
  if (!kernels) return nullptr;
  try {
    return new Model(*weights, *kernels, threads);
  } catch (const std::bad_alloc&) {
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
