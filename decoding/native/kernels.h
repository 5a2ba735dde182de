// The arithmetic of one pass, as a table of functions per instruction set.
//
// Knows rows, tiles and blocks of numbers. Must not know threads, models or who calls it. Every function works on
// each row by itself, in an order that depends on that row alone: a row's result has the same bits whatever other
// rows are computed beside it.
#pragma once

#include <cstddef>
#include <cstdint>

namespace draftwood {

// Inputs are quantised in groups of this many values; every inner dimension is a multiple of it.
constexpr int kGroup = 64;
// Outputs are packed in tiles of this many: one 512-bit register of 32-bit sums.
constexpr int kTile = 16;
// Keys are stored in blocks of this many (transposed, so that one register holds one dimension of a block).
constexpr int kKeyBlock = 16;
// Attention over a longer sequence is computed per chunk of this many keys and merged in order.
constexpr int kKeyChunk = 128;

// int8 weights of a linear layer. `weights` is [outputs / 16][inputs / 4][16][4] bytes, each value plus 128;
// `scales` is float[outputs / 16][scale_groups][16] where scale_groups is 1 or inputs / kGroup.
struct Matrix {
  const uint8_t* weights;
  const float* scales;
  const float* bias;  // float[outputs] or null
  int32_t inputs;
  int32_t outputs;
  int32_t scale_groups;
};

// Rows of quantised activations: value = scale of its group * int8.
struct QuantisedRows {
  int8_t* values;   // [rows][inputs]
  float* scales;    // [rows][inputs / kGroup]
  int32_t* starts;  // [rows][inputs / kGroup]: what the integer sum of a group starts from (see Kernels::quantise)
};

// A partial softmax-weighted sum over some keys: value = sum / weight, where weights are relative to exp(peak).
// Stored as floats: [0] peak, [1] weight, [2..2 + head_dim) sum.
constexpr int kPartialHeader = 16;  // floats before the sum, so that it stays aligned

struct Kernels {
  const char* name;

  // out[r * stride + o] (+)= row r of x times output o, for the outputs of tiles [first_tile, first_tile + tiles).
  void (*matmul)(const Matrix& matrix, int first_tile, int tiles, const QuantisedRows& x, int rows, float* out,
                 ptrdiff_t stride, bool accumulate);

  // Quantise one group of kGroup floats: scale = max|x| / 127.
  void (*quantise)(const float* x, int8_t* values, float* scale, int32_t* start);

  // Root-mean-square norm of x[size], times weight, quantised group by group.
  void (*norm_quantise)(const float* x, const float* weight, float eps, int size, int8_t* values, float* scales,
                        int32_t* starts);

  // gate = silu(gate) * up over kGroup values, quantised.
  void (*swiglu_quantise)(const float* gate, const float* up, int8_t* values, float* scale, int32_t* start);

  // Rotate one head in place: pairs (i, i + head_dim / 2), then multiply by `factor`.
  void (*rotate)(float* head, const float* cosine, const float* sine, int head_dim, float factor);

  // Store one key (transposed into its block, lane `lane`) or one value row, as halves.
  void (*store_key)(const float* key, uint16_t* block, int lane, int head_dim);
  void (*store_value)(const float* value, uint16_t* row, int head_dim);

  // Attention of `query_count` heads (float[query_count][head_dim], scaled) of one row over `count` <= kKeyChunk
  // keys, given as blocks of 16: keys[b] is [head_dim][16] halves, values[b] is [16][head_dim] halves. One partial
  // per query.
  void (*attend)(const float* queries, int query_count, const uint16_t* const* keys, const uint16_t* const* values,
                 int count, int head_dim, float* partials, ptrdiff_t partial_stride);

  // state = state merged with partial; a state begins as a copy of its first partial.
  void (*merge)(float* state, const float* partial, int head_dim);

  // out[head_dim] = sum / weight.
  void (*finish)(const float* state, float* out, int head_dim);

  // out[inputs] = row `output` of a matrix, dequantised.
  void (*embed)(const Matrix& matrix, int output, float* out);

  // Offer logits[count] with ids first_id.. to a list of the k best (best first; equal logits: lower id first).
  // Ids must be offered in ascending order.
  void (*top)(const float* logits, int count, int first_id, int k, int32_t* ids, float* best);
};

// The table of the best instruction set that this machine has, or of the named one; null where it has not.
const Kernels* best_kernels();
const Kernels* kernels_by_name(const char* name);

// One per source file; null where the file was compiled for another architecture.
const Kernels* avx512_kernels();
const Kernels* avx2_kernels();
const Kernels* neon_kernels();
const Kernels* portable_kernels();

}  // namespace draftwood
