#include "model.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <new>

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace draftwood {
namespace {

// Bytes of weights that one thread takes at a time. Small enough that a phase ends evenly and that a stalled
// thread holds little; large enough that handing out is free.
constexpr int kChunkBytes = 32 * 1024;
// Up to this many rows, attention is split over chunks of keys (a token at long context keeps every thread busy);
// above, each task takes whole rows.
constexpr int kSplitRows = 16;
constexpr int kSplitBlock = 8;  // rows of one split task
constexpr int kWholeBlock = 4;  // rows of one whole task
constexpr int kChunkBlocks = kKeyChunk / kKeyBlock;

int divide_up(int a, int b) { return (a + b - 1) / b; }

// 64-byte aligned, and zero pages until touched.
template <class T>
struct Aligned {
  struct Free {
    void operator()(T* memory) const { std::free(memory); }
  };
  std::unique_ptr<T[], Free> memory;
  explicit Aligned(size_t count) {
    const size_t bytes = (count * sizeof(T) + 63) / 64 * 64;
    memory.reset(static_cast<T*>(std::aligned_alloc(64, std::max<size_t>(bytes, 64))));
    if (!memory) throw std::bad_alloc();
  }
  T* get() const { return memory.get(); }
};

struct QuantisedBuffer {
  Aligned<int8_t> values;
  Aligned<float> scales;
  Aligned<int32_t> starts;
  int inputs;
  QuantisedBuffer(int rows, int width)
      : values(static_cast<size_t>(rows) * width),
        scales(static_cast<size_t>(rows) * width / kGroup),
        starts(static_cast<size_t>(rows) * width / kGroup),
        inputs(width) {}
  QuantisedRows rows() const { return {values.get(), scales.get(), starts.get()}; }
  int8_t* values_at(int row, int group) const { return values.get() + static_cast<size_t>(row) * inputs + group * kGroup; }
  float* scale_at(int row, int group) const { return scales.get() + static_cast<size_t>(row) * (inputs / kGroup) + group; }
  int32_t* start_at(int row, int group) const { return starts.get() + static_cast<size_t>(row) * (inputs / kGroup) + group; }
};

}  // namespace

// ---------------------------------------------------------------------------------------------------- cache

// Huge pages, zero until touched: on virtual machines a walk through small ones costs more than the data itself.
Halves::Halves(size_t count) : count_(count) {
#if defined(__linux__)
  void* memory = mmap(nullptr, bytes(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  madvise(memory, bytes(), MADV_HUGEPAGE);
  data_ = static_cast<uint16_t*>(memory);
#else
  data_ = static_cast<uint16_t*>(std::calloc(count, sizeof(uint16_t)));
  if (!data_) throw std::bad_alloc();
#endif
}

Halves::~Halves() {
#if defined(__linux__)
  munmap(data_, bytes());
#else
  std::free(data_);
#endif
}

Cache::Cache(const ModelWeights& weights, int capacity)
    : layers_(weights.layers),
      kv_heads_(weights.kv_heads),
      head_dim_(weights.head_dim),
      capacity_(capacity),
      plane_size_(static_cast<size_t>(divide_up(capacity, kKeyBlock)) * kKeyBlock * weights.head_dim),
      keys_(plane_size_ * layers_ * kv_heads_),
      values_(plane_size_ * layers_ * kv_heads_) {}

void Cache::keep(int length, const int32_t* path, int count) {
  for (int i = 0; i < count; i++) {  // path[i] >= i: a row is read before its slot is overwritten
    const int from = length + path[i], to = length + i;
    if (from == to) continue;
    for (int layer = 0; layer < layers_; layer++) {
      for (int head = 0; head < kv_heads_; head++) {
        uint16_t* plane = keys(layer, head);
        uint16_t* source = plane + static_cast<size_t>(from / kKeyBlock) * kKeyBlock * head_dim_ + from % kKeyBlock;
        uint16_t* target = plane + static_cast<size_t>(to / kKeyBlock) * kKeyBlock * head_dim_ + to % kKeyBlock;
        for (int d = 0; d < head_dim_; d++) target[d * kKeyBlock] = source[d * kKeyBlock];
        uint16_t* rows = values(layer, head);
        std::memcpy(rows + static_cast<size_t>(to) * head_dim_, rows + static_cast<size_t>(from) * head_dim_,
                    sizeof(uint16_t) * head_dim_);
      }
    }
  }
}

// ----------------------------------------------------------------------------------------------------- pass

struct Model::Pass {
  Cache& cache;
  int length;
  Rows rows;
  int depths[kMaxRows];
  bool contiguous[kMaxRows];  // the row's ancestors are exactly the rows before it: nothing has to be gathered

  // Buffers hold the rows that this pass computes, and so do the indices below: row `first() + i` of the tree is i.
  int first() const { return rows.ready; }
  int count() const { return rows.count - rows.ready; }
  int keys_of(int i) const { return length + depths[first() + i] + 1; }
  int chunks_of(int i) const { return divide_up(keys_of(i), kKeyChunk); }
};

struct Model::Buffers {
  Aligned<float> x;       // [rows][hidden], the residual stream
  Aligned<float> qkv;     // [rows][qkv outputs]
  Aligned<float> cosine;  // [rows][head_dim / 2]
  Aligned<float> sine;
  QuantisedBuffer normed;    // [rows][hidden]
  QuantisedBuffer attended;  // [rows][heads * head_dim]
  QuantisedBuffer fed;       // [rows][feed]
  // Per thread: gathered tail blocks of one row, partials of one row, states of a block of rows, gates and ups.
  std::vector<Aligned<uint16_t>> tail_keys, tail_values;
  std::vector<Aligned<float>> partials, states, gates;
  std::vector<Aligned<float>> best;
  std::vector<Aligned<int32_t>> best_ids;
  std::vector<float> split;  // [rows][heads][chunks] partials of a split pass
  int partial_size;

  Buffers(const ModelWeights& w, int threads)
      : x(static_cast<size_t>(kMaxRows) * w.hidden),
        qkv(static_cast<size_t>(kMaxRows) * (w.heads + 2 * w.kv_heads) * w.head_dim),
        cosine(static_cast<size_t>(kMaxRows) * w.head_dim / 2),
        sine(static_cast<size_t>(kMaxRows) * w.head_dim / 2),
        normed(kMaxRows, w.hidden),
        attended(kMaxRows, w.heads * w.head_dim),
        fed(kMaxRows, w.feed),
        partial_size(kPartialHeader + w.head_dim) {
    const int group = w.heads / w.kv_heads;
    for (int t = 0; t < threads; t++) {
      tail_keys.emplace_back(static_cast<size_t>(kKeyChunk) * w.head_dim);
      tail_values.emplace_back(static_cast<size_t>(kKeyChunk) * w.head_dim);
      partials.emplace_back(static_cast<size_t>(group) * partial_size);
      states.emplace_back(static_cast<size_t>(kWholeBlock) * group * partial_size);
      gates.emplace_back(static_cast<size_t>(kMaxRows) * 2 * kGroup);
      best.emplace_back(static_cast<size_t>(kMaxRows) * kMaxTop);
      best_ids.emplace_back(static_cast<size_t>(kMaxRows) * kMaxTop);
    }
  }
};

Model::Model(const ModelWeights& weights, const Kernels& kernels, int threads)
    : weights_(weights),
      layers_(weights.layer, weights.layer + weights.layers),
      kernels_(kernels),
      pool_(threads),
      buffers_(std::make_unique<Buffers>(weights, threads)) {}

Model::~Model() = default;

bool Model::lay_out(Pass& pass) const {
  for (int row = 0; row < pass.rows.count; row++) {
    const int parent = pass.rows.parents[row];
    if (parent < -1 || parent >= row || (parent == -1) != (row == 0)) return false;
    if (pass.rows.tokens[row] < 0 || pass.rows.tokens[row] >= weights_.vocab) return false;
    pass.depths[row] = row == 0 ? 0 : pass.depths[parent] + 1;
    pass.contiguous[row] = pass.depths[row] == row;
  }
  return true;
}

Status Model::forward(Cache& cache, int length, const Rows& rows, const Scores* scores, CancelCheck cancelled) {
  if (rows.ready < 0 || rows.count <= rows.ready || rows.count > kMaxRows) return Status::kBadRows;
  if (scores && (scores->top < 1 || scores->top > kMaxTop)) return Status::kBadRows;
  if (length < 0 || length + rows.count > cache.capacity()) return Status::kNoRoom;
  Pass pass{cache, length, rows, {}, {}};
  if (!lay_out(pass)) return Status::kBadRows;
  std::lock_guard<std::mutex> lock(mutex_);
  struct Awake {
    ThreadPool& pool;
    explicit Awake(ThreadPool& p) : pool(p) { pool.begin(); }
    ~Awake() { pool.end(); }
  } awake(pool_);
  embed(pass);
  for (int layer = 0; layer < weights_.layers; layer++) {
    if (cancelled && cancelled()) return Status::kCancelled;
    attention(pass, layer);
    feed_forward(pass, layer);
  }
  if (scores) score(pass, *scores);
  return Status::kDone;
}

void Model::embed(const Pass& pass) {
  const int half = weights_.head_dim / 2;
  pool_.run(pass.count(), [&](int i, int) {
    const int row = pass.first() + i;
    kernels_.embed(weights_.embedding, pass.rows.tokens[row], buffers_->x.get() + static_cast<size_t>(i) * weights_.hidden);
    const float position = static_cast<float>(pass.length + pass.depths[row]);
    for (int d = 0; d < half; d++) {  // the angle is rounded to float, as the models were trained
      const double angle = static_cast<double>(position * weights_.rotary_frequencies[d]);
      buffers_->cosine.get()[i * half + d] = static_cast<float>(std::cos(angle));
      buffers_->sine.get()[i * half + d] = static_cast<float>(std::sin(angle));
    }
  });
}

void Model::matmul(const Matrix& matrix, const QuantisedRows& x, int rows, float* out, bool accumulate) {
  const int tiles = matrix.outputs / kTile;
  const int each = std::max(1, kChunkBytes / (matrix.inputs * kTile));
  pool_.run(divide_up(tiles, each), [&](int chunk, int) {
    const int first = chunk * each;
    kernels_.matmul(matrix, first, std::min(each, tiles - first), x, rows, out, matrix.outputs, accumulate);
  });
}

void Model::normalise(const float* weight, int rows) {
  const QuantisedBuffer& normed = buffers_->normed;
  pool_.run(rows, [&](int row, int) {
    kernels_.norm_quantise(buffers_->x.get() + static_cast<size_t>(row) * weights_.hidden, weight, weights_.norm_eps,
                           weights_.hidden, normed.values_at(row, 0), normed.scale_at(row, 0), normed.start_at(row, 0));
  });
}

// ------------------------------------------------------------------------------------------------ attention

void Model::attention(const Pass& pass, int layer) {
  const LayerWeights& w = layers_[layer];
  normalise(w.attention_norm, pass.count());
  matmul(w.qkv, buffers_->normed.rows(), pass.count(), buffers_->qkv.get(), false);
  project_heads(pass, layer);
  if (pass.count() <= kSplitRows)
    attend_split(pass, layer);
  else
    attend_whole(pass, layer);
  matmul(w.attention_output, buffers_->attended.rows(), pass.count(), buffers_->x.get(), true);
}

// Rotate queries and keys; put keys and values into the cache.
void Model::project_heads(const Pass& pass, int layer) {
  const int dim = weights_.head_dim, heads = weights_.heads, kv_heads = weights_.kv_heads;
  const float factor = 1.0f / std::sqrt(static_cast<float>(dim));
  pool_.run(pass.count(), [&](int i, int) {
    float* head = buffers_->qkv.get() + static_cast<size_t>(i) * (heads + 2 * kv_heads) * dim;
    const float* cosine = buffers_->cosine.get() + i * dim / 2;
    const float* sine = buffers_->sine.get() + i * dim / 2;
    const int slot = pass.length + pass.first() + i;
    for (int h = 0; h < heads; h++, head += dim) kernels_.rotate(head, cosine, sine, dim, factor);
    for (int h = 0; h < kv_heads; h++, head += dim) {
      kernels_.rotate(head, cosine, sine, dim, 1.0f);
      kernels_.store_key(head, pass.cache.keys(layer, h) + static_cast<size_t>(slot / kKeyBlock) * kKeyBlock * dim,
                         slot % kKeyBlock, dim);
    }
    for (int h = 0; h < kv_heads; h++, head += dim)
      kernels_.store_value(head, pass.cache.values(layer, h) + static_cast<size_t>(slot) * dim, dim);
  });
}

// Partials of all query heads that share `kv_head`, for one row and one chunk of its own keys: the prefix, then the
// ancestors from the root down, wherever they lie.
void Model::attend_chunk(const Pass& pass, int layer, int row, int kv_head, int chunk, int thread, float* partials,
                         ptrdiff_t stride) {
  const int dim = weights_.head_dim, group = weights_.heads / weights_.kv_heads;
  const int first = chunk * kKeyChunk, count = std::min(kKeyChunk, pass.keys_of(row) - first);
  const uint16_t* keys[kChunkBlocks];
  const uint16_t* values[kChunkBlocks];
  uint16_t* cached_keys = pass.cache.keys(layer, kv_head);
  uint16_t* cached_values = pass.cache.values(layer, kv_head);
  const size_t block_size = static_cast<size_t>(kKeyBlock) * dim;
  for (int b = 0; b < divide_up(count, kKeyBlock); b++) {
    const int block = first / kKeyBlock + b;
    keys[b] = cached_keys + block * block_size;
    values[b] = cached_values + block * block_size;
    const int end = std::min((block + 1) * kKeyBlock, pass.keys_of(row));
    if (pass.contiguous[pass.first() + row] || end <= pass.length) continue;
    uint16_t* tail_keys = buffers_->tail_keys[thread].get() + b * block_size;
    uint16_t* tail_values = buffers_->tail_values[thread].get() + b * block_size;
    std::memcpy(tail_keys, keys[b], block_size * sizeof(uint16_t));
    std::memcpy(tail_values, values[b], block_size * sizeof(uint16_t));
    int ancestor = pass.first() + row;  // walk up to the deepest ancestor of this block, then fill it from the back
    for (int skip = pass.keys_of(row) - end; skip > 0; skip--) ancestor = pass.rows.parents[ancestor];
    for (int key = end - 1; key >= std::max(block * kKeyBlock, pass.length); key--) {
      const int slot = pass.length + ancestor, lane = key % kKeyBlock;
      const uint16_t* source = cached_keys + static_cast<size_t>(slot / kKeyBlock) * block_size + slot % kKeyBlock;
      for (int d = 0; d < dim; d++) tail_keys[d * kKeyBlock + lane] = source[d * kKeyBlock];
      std::memcpy(tail_values + lane * dim, cached_values + static_cast<size_t>(slot) * dim, dim * sizeof(uint16_t));
      ancestor = pass.rows.parents[ancestor];
    }
    keys[b] = tail_keys;
    values[b] = tail_values;
  }
  const float* queries = buffers_->qkv.get() + static_cast<size_t>(row) * (weights_.heads + 2 * weights_.kv_heads) * dim +
                         static_cast<size_t>(kv_head) * group * dim;
  kernels_.attend(queries, group, keys, values, count, dim, partials, stride);
}

void Model::finish_row_head(int row, int head, const float* state, int thread) {
  const int dim = weights_.head_dim;
  float* out = buffers_->gates[thread].get();
  kernels_.finish(state, out, dim);
  for (int g = 0; g < dim / kGroup; g++) {
    const int group = head * (dim / kGroup) + g;
    const QuantisedBuffer& to = buffers_->attended;
    kernels_.quantise(out + g * kGroup, to.values_at(row, group), to.scale_at(row, group), to.start_at(row, group));
  }
}

// Few rows: tasks of (kv head, chunk of keys, block of rows); then each row merges its partials in key order.
void Model::attend_split(const Pass& pass, int layer) {
  const int heads = weights_.heads, group = heads / weights_.kv_heads, size = buffers_->partial_size;
  const int rows = pass.count(), row_blocks = divide_up(rows, kSplitBlock);
  int chunks = 0;
  for (int row = 0; row < rows; row++) chunks = std::max(chunks, pass.chunks_of(row));
  const size_t needed = static_cast<size_t>(rows) * heads * chunks * size;
  if (buffers_->split.size() < needed) buffers_->split.resize(needed);
  float* split = buffers_->split.data();
  const auto at = [=](int row, int head, int chunk) {
    return split + ((static_cast<size_t>(row) * heads + head) * chunks + chunk) * size;
  };
  pool_.run(weights_.kv_heads * chunks * row_blocks, [&](int task, int thread) {
    const int block = task % row_blocks, chunk = task / row_blocks % chunks, kv_head = task / row_blocks / chunks;
    for (int row = block * kSplitBlock; row < std::min(rows, (block + 1) * kSplitBlock); row++)
      if (chunk < pass.chunks_of(row))
        attend_chunk(pass, layer, row, kv_head, chunk, thread, at(row, kv_head * group, chunk),
                     static_cast<ptrdiff_t>(chunks) * size);
  });
  pool_.run(rows, [&](int row, int thread) {
    for (int head = 0; head < heads; head++) {
      float* state = at(row, head, 0);
      for (int chunk = 1; chunk < pass.chunks_of(row); chunk++)
        kernels_.merge(state, at(row, head, chunk), weights_.head_dim);
      finish_row_head(row, head, state, thread);
    }
  });
}

// Many rows: tasks of (kv head, block of rows), each over all its keys; the same arithmetic as above.
void Model::attend_whole(const Pass& pass, int layer) {
  const int group = weights_.heads / weights_.kv_heads, size = buffers_->partial_size;
  const int rows = pass.count(), row_blocks = divide_up(rows, kWholeBlock);
  pool_.run(weights_.kv_heads * row_blocks, [&](int task, int thread) {
    const int kv_head = task / row_blocks;
    const int first = task % row_blocks * kWholeBlock, end = std::min(rows, first + kWholeBlock);
    float* states = buffers_->states[thread].get();
    float* partials = buffers_->partials[thread].get();
    int chunks = 0;
    for (int row = first; row < end; row++) chunks = std::max(chunks, pass.chunks_of(row));
    for (int chunk = 0; chunk < chunks; chunk++) {
      for (int row = first; row < end; row++) {
        if (chunk >= pass.chunks_of(row)) continue;
        float* state = states + static_cast<size_t>(row - first) * group * size;
        attend_chunk(pass, layer, row, kv_head, chunk, thread, chunk == 0 ? state : partials, size);
        if (chunk > 0)
          for (int q = 0; q < group; q++) kernels_.merge(state + q * size, partials + q * size, weights_.head_dim);
      }
    }
    for (int row = first; row < end; row++)
      for (int q = 0; q < group; q++)
        finish_row_head(row, kv_head * group + q, states + (static_cast<size_t>(row - first) * group + q) * size, thread);
  });
}

// --------------------------------------------------------------------------------------- feed forward, head

void Model::feed_forward(const Pass& pass, int layer) {
  const LayerWeights& w = layers_[layer];
  const int rows = pass.count(), tiles = 2 * kGroup / kTile;
  normalise(w.feed_norm, rows);
  pool_.run(weights_.feed / kGroup, [&](int block, int thread) {
    float* gates = buffers_->gates[thread].get();  // [rows][64 gates, 64 ups]
    const QuantisedBuffer& fed = buffers_->fed;
    kernels_.matmul(w.gate_up, block * tiles, tiles, buffers_->normed.rows(), rows, gates - block * 2 * kGroup, 2 * kGroup,
                    false);
    for (int row = 0; row < rows; row++)
      kernels_.swiglu_quantise(gates + row * 2 * kGroup, gates + row * 2 * kGroup + kGroup, fed.values_at(row, block),
                               fed.scale_at(row, block), fed.start_at(row, block));
  });
  matmul(w.down, buffers_->fed.rows(), rows, buffers_->x.get(), true);
}

void Model::score(const Pass& pass, const Scores& scores) {
  const int rows = pass.count(), vocab = weights_.vocab, top = scores.top;
  const int tiles = vocab / kTile, each = std::max(1, 4 * kChunkBytes / (weights_.hidden * kTile));
  const float nothing = -std::numeric_limits<float>::infinity();
  for (int t = 0; t < pool_.size(); t++) {
    std::fill_n(buffers_->best[t].get(), static_cast<size_t>(rows) * top, nothing);
    std::fill_n(buffers_->best_ids[t].get(), static_cast<size_t>(rows) * top, 0);
  }
  normalise(weights_.final_norm, rows);
  pool_.run(divide_up(tiles, each), [&](int chunk, int thread) {
    const int first = chunk * each, count = std::min(each, tiles - first), first_id = first * kTile;
    kernels_.matmul(weights_.head, first, count, buffers_->normed.rows(), rows, scores.logits, vocab, false);
    for (int row = 0; row < rows; row++) {
      float* logits = scores.logits + static_cast<size_t>(row) * vocab + first_id;
      const int known = std::clamp(weights_.tokens - first_id, 0, count * kTile);
      std::fill(logits + known, logits + count * kTile, nothing);
      kernels_.top(logits, count * kTile, first_id, top, buffers_->best_ids[thread].get() + row * top,
                   buffers_->best[thread].get() + row * top);
    }
  });
  for (int row = 0; row < rows; row++) {
    std::vector<std::pair<float, int32_t>> all;
    for (int t = 0; t < pool_.size(); t++)
      for (int i = 0; i < top; i++)
        if (buffers_->best[t].get()[row * top + i] > nothing)
          all.emplace_back(-buffers_->best[t].get()[row * top + i], buffers_->best_ids[t].get()[row * top + i]);
    std::sort(all.begin(), all.end());
    for (int i = 0; i < top; i++) {
      const bool found = i < static_cast<int>(all.size());
      scores.top_ids[row * top + i] = found ? all[i].second : 0;
      scores.top_logits[row * top + i] = found ? -all[i].first : nothing;
    }
  }
}

}  // namespace draftwood
