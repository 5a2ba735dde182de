// One pass of a LLaMA or Qwen2 decoder over the rows of a draft tree.
//
// Knows layers, rows and a key-value cache. Must not know files, tokenizers, sampling or Python.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "kernels.h"
#include "thread_pool.h"

namespace draftwood {

// Rows of one pass at most: a tree of 63 nodes and its root, or a chunk of prefill.
constexpr int kMaxRows = 256;
constexpr int kMaxTop = 64;

struct LayerWeights {
  const float* attention_norm;  // [hidden]
  const float* feed_norm;       // [hidden]
  Matrix qkv;                   // hidden -> heads * head_dim, then keys, then values
  Matrix attention_output;      // heads * head_dim -> hidden
  Matrix gate_up;               // hidden -> blocks of 64 gates and their 64 ups
  Matrix down;                  // feed -> hidden
};

struct ModelWeights {
  int32_t vocab;   // rows of the head, padded to whole tiles
  int32_t tokens;  // ids of the tokenizer; logits from here on are -inf
  int32_t hidden;
  int32_t layers;
  int32_t heads;
  int32_t kv_heads;
  int32_t head_dim;
  int32_t feed;
  float norm_eps;
  const float* rotary_frequencies;  // [head_dim / 2]
  const float* final_norm;          // [hidden]
  const LayerWeights* layer;        // [layers]
  Matrix embedding;
  Matrix head;
};

// Why a pass was refused, or that it was done.
enum class Status : int32_t { kDone = 0, kCancelled = 1, kBadRows = 2, kNoRoom = 3, kNoMemory = 4 };

// Memory of halves, zero at first (so that what lies beyond the last token is finite).
class Halves {
 public:
  explicit Halves(size_t count);
  ~Halves();
  Halves(const Halves&) = delete;
  Halves& operator=(const Halves&) = delete;
  uint16_t* data() const { return data_; }

 private:
  size_t bytes() const { return count_ * sizeof(uint16_t); }
  size_t count_;
  uint16_t* data_;
};

// Keys and values of one sequence as halves; slots from `length` on hold the rows of the last pass.
class Cache {
 public:
  Cache(const ModelWeights& weights, int capacity);
  int capacity() const { return capacity_; }
  // Keys of a head: blocks of [head_dim][16]; values of a head: [capacity][head_dim].
  uint16_t* keys(int layer, int kv_head) { return keys_.data() + plane(layer, kv_head); }
  uint16_t* values(int layer, int kv_head) { return values_.data() + plane(layer, kv_head); }
  // Move the rows path[0..count) of the last pass to the slots length, length + 1, ...
  void keep(int length, const int32_t* path, int count);

 private:
  size_t plane(int layer, int kv_head) const { return (static_cast<size_t>(layer) * kv_heads_ + kv_head) * plane_size_; }

  int layers_, kv_heads_, head_dim_, capacity_;
  size_t plane_size_;
  Halves keys_, values_;
};

// The rows of a pass: parents[i] < i is the row that row i continues, -1 for row 0. The first `ready` were computed by the
// last passes over this cache, where their keys and values wait; only the others are computed and scored.
struct Rows {
  const int32_t* tokens;
  const int32_t* parents;
  int32_t count;
  int32_t ready;
};

// Where the scores go: logits [rows computed][vocab] and the best `top` of each row.
struct Scores {
  float* logits;
  int32_t* top_ids;
  float* top_logits;
  int32_t top;
};

using CancelCheck = int32_t (*)();

class Model {
 public:
  Model(const ModelWeights& weights, const Kernels& kernels, int threads);
  ~Model();

  const Kernels& kernels() const { return kernels_; }
  const ModelWeights& weights() const { return weights_; }

  // Run the rows after the first `length` tokens of the cache. Without `scores`, only keys and values are wanted
  // (prefill). `cancelled` may be null; it is asked before every layer.
  Status forward(Cache& cache, int length, const Rows& rows, const Scores* scores, CancelCheck cancelled);

 private:
  struct Pass;
  struct Buffers;

  bool lay_out(Pass& pass) const;
  void embed(const Pass& pass);
  void attention(const Pass& pass, int layer);
  void attend_split(const Pass& pass, int layer);
  void attend_whole(const Pass& pass, int layer);
  void attend_chunk(const Pass& pass, int layer, int row, int kv_head, int chunk, int thread, float* partials,
                    ptrdiff_t stride);
  void project_heads(const Pass& pass, int layer);
  void finish_row_head(int row, int head, const float* state, int thread);
  void feed_forward(const Pass& pass, int layer);
  void score(const Pass& pass, const Scores& scores);
  void matmul(const Matrix& matrix, const QuantisedRows& x, int rows, float* out, bool accumulate);
  void normalise(const float* weight, int rows);

  ModelWeights weights_;
  std::vector<LayerWeights> layers_;
  const Kernels& kernels_;
  ThreadPool pool_;
  std::unique_ptr<Buffers> buffers_;
  std::mutex mutex_;
};

}  // namespace draftwood
