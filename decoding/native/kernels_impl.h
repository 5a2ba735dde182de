// The kernels, written once over `Simd` (16 lanes). Included by one source file per instruction set, inside an
// anonymous namespace, after its simd_*.h. No standard library templates here: a linker might keep the copy that
// was compiled for a newer machine than the one at hand.

// How far ahead weights are prefetched: 128 lines, a few hundred nanoseconds of work.
constexpr int kPrefetchBytes = 8192;

using F = Simd::F;
using I = Simd::I;

// Sums of R rows against one tile. The integer sum of a group is exact, so only the order of the groups matters, and
// that is the same for every R.
template <int R, bool kGrouped>
inline __attribute__((always_inline)) void multiply(const Matrix& m, int tile, const QuantisedRows& x, int row,
                                                    F (&sums)[R]) {
  const int groups = m.inputs / kGroup;
  const uint8_t* weights = m.weights + static_cast<ptrdiff_t>(tile) * m.inputs * kTile;
  const float* weight_scales = m.scales + static_cast<ptrdiff_t>(tile) * (kGrouped ? groups : 1) * kTile;
  const int8_t* values = x.values + static_cast<ptrdiff_t>(row) * m.inputs;
  const float* scales = x.scales + static_cast<ptrdiff_t>(row) * groups;
  const int32_t* starts = x.starts + static_cast<ptrdiff_t>(row) * groups;
  for (int r = 0; r < R; r++) sums[r] = Simd::zero();
  for (int g = 0; g < groups; g++) {
    I dots[R];
    for (int r = 0; r < R; r++) dots[r] = Simd::set(starts[r * groups + g]);
#pragma GCC unroll 4
    for (int k = 0; k < kGroup; k += 4, weights += 4 * kTile) {
      const Simd::W w = Simd::load_weights(weights);
      // One or two rows read as fast as memory delivers, and the hardware's own prefetching does best. More rows
      // compute while memory waits unless the next lines are asked for, into the second level, where many requests
      // fit: at first every fourth line, which the hardware takes as a hint (T(3), T(4) 4% less), then each.
      if (R >= Simd::kPrefetchRows || (R >= Simd::kPrefetchRows - 2 && k % 16 == 0))
        __builtin_prefetch(weights + kPrefetchBytes, 0, 2);
      for (int r = 0; r < R; r++) dots[r] = Simd::dot(dots[r], w, values + r * m.inputs + g * kGroup + k);
    }
    const F weight_scale = kGrouped ? Simd::load(weight_scales + g * kTile) : Simd::zero();
    for (int r = 0; r < R; r++) {
      const F scale = Simd::set(scales[r * groups + g]);
      sums[r] = Simd::fma(Simd::to_float(dots[r]), kGrouped ? Simd::mul(weight_scale, scale) : scale, sums[r]);
    }
  }
  if constexpr (!kGrouped)
    for (int r = 0; r < R; r++) sums[r] = Simd::mul(sums[r], Simd::load(weight_scales));
}

template <int R, bool kGrouped>
__attribute__((noinline)) void tile_rows(const Matrix& m, int tile, const QuantisedRows& x, int row, float* out,
                                         ptrdiff_t stride, bool accumulate) {
  F sums[R];
  multiply<R, kGrouped>(m, tile, x, row, sums);
  for (int r = 0; r < R; r++) {
    float* at = out + (row + r) * stride + tile * kTile;
    F result = m.bias ? Simd::add(sums[r], Simd::load(m.bias + tile * kTile)) : sums[r];
    if (accumulate) result = Simd::add(Simd::load(at), result);
    Simd::store(at, result);
  }
}

using TileRows = void (*)(const Matrix&, int, const QuantisedRows&, int, float*, ptrdiff_t, bool);

template <bool kGrouped>
TileRows tile_rows_for(int rows) {
  switch (rows) {
#define DRAFTWOOD_ROWS(R) \
  case R:                 \
    if constexpr (R <= Simd::kRows) return tile_rows<R, kGrouped>; else break;
    DRAFTWOOD_ROWS(1) DRAFTWOOD_ROWS(2) DRAFTWOOD_ROWS(3) DRAFTWOOD_ROWS(4) DRAFTWOOD_ROWS(5) DRAFTWOOD_ROWS(6)
    DRAFTWOOD_ROWS(7) DRAFTWOOD_ROWS(8) DRAFTWOOD_ROWS(9) DRAFTWOOD_ROWS(10) DRAFTWOOD_ROWS(11)
    DRAFTWOOD_ROWS(12) DRAFTWOOD_ROWS(13) DRAFTWOOD_ROWS(14)
#undef DRAFTWOOD_ROWS
  }
  return nullptr;
}

template <bool kGrouped>
void matmul_tiles(const Matrix& m, int first_tile, int tiles, const QuantisedRows& x, int rows, float* out,
                  ptrdiff_t stride, bool accumulate) {
  const int passes = (rows + Simd::kRows - 1) / Simd::kRows;  // rows are shared out evenly: 16 = 8 + 8
  for (int tile = first_tile; tile < first_tile + tiles; tile++) {
    for (int pass = 0, row = 0; pass < passes; pass++) {
      const int count = (rows - row + passes - pass - 1) / (passes - pass);
      tile_rows_for<kGrouped>(count)(m, tile, x, row, out, stride, accumulate);
      row += count;
    }
  }
}

// Tiles are numbered in the matrix; out points at output 0 of the matrix.
void matmul(const Matrix& m, int first_tile, int tiles, const QuantisedRows& x, int rows, float* out,
            ptrdiff_t stride, bool accumulate) {
  (m.scale_groups == 1 ? matmul_tiles<false> : matmul_tiles<true>)(m, first_tile, tiles, x, rows, out, stride,
                                                                   accumulate);
}

inline void quantise_group(const F (&x)[4], int8_t* values, float* scale, int32_t* start) {
  const float largest =
      Simd::peak(Simd::max(Simd::max(Simd::abs(x[0]), Simd::abs(x[1])), Simd::max(Simd::abs(x[2]), Simd::abs(x[3]))));
  const F inverse = Simd::set(largest > 0.0f ? 127.0f / largest : 0.0f);
  I total = Simd::set(0);
  for (int i = 0; i < 4; i++) {
    const I rounded = Simd::round(Simd::mul(x[i], inverse));
    Simd::store_bytes(values + 16 * i, rounded);
    total = Simd::add(total, rounded);
  }
  *scale = largest / 127.0f;
  *start = Simd::kStartFactor * Simd::sum(total);
}

void quantise(const float* x, int8_t* values, float* scale, int32_t* start) {
  const F parts[4] = {Simd::load(x), Simd::load(x + 16), Simd::load(x + 32), Simd::load(x + 48)};
  quantise_group(parts, values, scale, start);
}

void norm_quantise(const float* x, const float* weight, float eps, int size, int8_t* values, float* scales,
                   int32_t* starts) {
  F squares[2] = {Simd::zero(), Simd::zero()};
  for (int i = 0; i < size; i += 32) {
    const F a = Simd::load(x + i), b = Simd::load(x + i + 16);
    squares[0] = Simd::fma(a, a, squares[0]);
    squares[1] = Simd::fma(b, b, squares[1]);
  }
  const float mean = Simd::sum(Simd::add(squares[0], squares[1])) / static_cast<float>(size);
  const F factor = Simd::set(1.0f / __builtin_sqrtf(mean + eps));
  for (int g = 0; g < size / kGroup; g++) {
    F parts[4];
    for (int i = 0; i < 4; i++) {
      const int at = g * kGroup + 16 * i;
      parts[i] = Simd::mul(Simd::mul(Simd::load(x + at), factor), Simd::load(weight + at));
    }
    quantise_group(parts, values + g * kGroup, scales + g, starts + g);
  }
}

// e^x for x <= 88, relative error below 4e-7; below -87 the result is about 1e-38. Range reduction by ln 2 in two
// parts, then the Taylor polynomial of degree 6 on [-ln2/2, ln2/2] (Muller, Elementary Functions, ch. 11).
inline F exponential(F x) {
  x = Simd::max(x, Simd::set(-87.0f));
  const I power = Simd::round(Simd::mul(x, Simd::set(1.44269504088896341f)));
  const F whole = Simd::to_float(power);
  F rest = Simd::fma(whole, Simd::set(-0.693145751953125f), x);
  rest = Simd::fma(whole, Simd::set(-1.42860682030941723e-6f), rest);
  F sum = Simd::set(1.0f / 720.0f);
  sum = Simd::fma(sum, rest, Simd::set(1.0f / 120.0f));
  sum = Simd::fma(sum, rest, Simd::set(1.0f / 24.0f));
  sum = Simd::fma(sum, rest, Simd::set(1.0f / 6.0f));
  sum = Simd::fma(sum, rest, Simd::set(0.5f));
  sum = Simd::fma(sum, rest, Simd::set(1.0f));
  sum = Simd::fma(sum, rest, Simd::set(1.0f));
  return Simd::scale_by_power(sum, power);
}

// silu(g) = g / (1 + e^-g); -g is capped at 80 so that the exponential stays finite.
inline F silu(F gate) {
  const F minus = Simd::sub(Simd::zero(), gate);
  const F capped = Simd::sub(Simd::zero(), Simd::max(Simd::sub(Simd::zero(), minus), Simd::set(-80.0f)));
  return Simd::div(gate, Simd::add(Simd::set(1.0f), exponential(capped)));
}

void swiglu_quantise(const float* gate, const float* up, int8_t* values, float* scale, int32_t* start) {
  F parts[4];
  for (int i = 0; i < 4; i++) parts[i] = Simd::mul(silu(Simd::load(gate + 16 * i)), Simd::load(up + 16 * i));
  quantise_group(parts, values, scale, start);
}

void rotate(float* head, const float* cosine, const float* sine, int head_dim, float factor) {
  const int half = head_dim / 2;
  const F scale = Simd::set(factor);
  for (int i = 0; i < half; i += 16) {
    const F a = Simd::load(head + i), b = Simd::load(head + half + i);
    const F c = Simd::load(cosine + i), s = Simd::load(sine + i);
    Simd::store(head + i, Simd::mul(scale, Simd::sub(Simd::mul(a, c), Simd::mul(b, s))));
    Simd::store(head + half + i, Simd::mul(scale, Simd::fma(b, c, Simd::mul(a, s))));
  }
}

void store_key(const float* key, uint16_t* block, int lane, int head_dim) {
  for (int i = 0; i < head_dim; i += 16) {
    uint16_t halves[16];
    Simd::store_half(halves, Simd::load(key + i));
    for (int j = 0; j < 16; j++) block[(i + j) * kKeyBlock + lane] = halves[j];
  }
}

void store_value(const float* value, uint16_t* row, int head_dim) {
  for (int i = 0; i < head_dim; i += 16) Simd::store_half(row + i, Simd::load(value + i));
}

// Scores of Q queries against every block of keys; then weights = e^(score - peak), zero beyond `count`.
template <int Q>
inline void score(const float* queries, const uint16_t* const* keys, const uint16_t* const* values, int count, int head_dim,
                  float (*weights)[kKeyChunk], float* peaks, float* totals) {
  const int blocks = (count + kKeyBlock - 1) / kKeyBlock;
  F highest[Q];
  for (int q = 0; q < Q; q++) highest[q] = Simd::set(-3e38f);
  for (int b = 0; b < blocks; b++) {
    const uint16_t* block = keys[b];
    F sums[Q];
    for (int q = 0; q < Q; q++) sums[q] = Simd::zero();
    for (int d = 0; d < head_dim; d++) {
      const F key = Simd::load_half(block + d * kKeyBlock);
      if (d % 2 == 0) __builtin_prefetch(values[b] + d * kKeyBlock);  // the values of these keys are next
      for (int q = 0; q < Q; q++) sums[q] = Simd::fma(key, Simd::set(queries[q * head_dim + d]), sums[q]);
    }
    const int valid = count - b * kKeyBlock < kKeyBlock ? count - b * kKeyBlock : kKeyBlock;
    for (int q = 0; q < Q; q++) {
      const F kept = valid == kKeyBlock ? sums[q] : Simd::first(valid, sums[q], Simd::set(-3e38f));
      highest[q] = Simd::max(highest[q], kept);
      Simd::store(weights[q] + b * kKeyBlock, kept);
    }
  }
  for (int q = 0; q < Q; q++) {
    peaks[q] = Simd::peak(highest[q]);
    F total = Simd::zero();
    for (int b = 0; b < blocks; b++) {
      F weight = exponential(Simd::sub(Simd::load(weights[q] + b * kKeyBlock), Simd::set(peaks[q])));
      const int valid = count - b * kKeyBlock;
      if (valid < kKeyBlock) weight = Simd::first(valid, weight, Simd::zero());
      total = Simd::add(total, weight);
      Simd::store(weights[q] + b * kKeyBlock, weight);
    }
    totals[q] = Simd::sum(total);
  }
}

template <int Q>
void attend_queries(const float* queries, const uint16_t* const* keys, const uint16_t* const* values, int count,
                    int head_dim, float* partials, ptrdiff_t partial_stride) {
  alignas(64) float weights[Q][kKeyChunk];
  float peaks[Q], totals[Q];
  score<Q>(queries, keys, values, count, head_dim, weights, peaks, totals);
  for (int d = 0; d < head_dim; d += 32) {
    F sums[Q][2];
    for (int q = 0; q < Q; q++) sums[q][0] = sums[q][1] = Simd::zero();
    for (int key = 0; key < count; key++) {
      const uint16_t* value = values[key / kKeyBlock] + key % kKeyBlock * head_dim + d;
      const F a = Simd::load_half(value);
      const F b = Simd::load_half(value + 16);
      for (int q = 0; q < Q; q++) {
        const F weight = Simd::set(weights[q][key]);
        sums[q][0] = Simd::fma(a, weight, sums[q][0]);
        sums[q][1] = Simd::fma(b, weight, sums[q][1]);
      }
    }
    for (int q = 0; q < Q; q++) {
      Simd::store(partials + q * partial_stride + kPartialHeader + d, sums[q][0]);
      Simd::store(partials + q * partial_stride + kPartialHeader + d + 16, sums[q][1]);
    }
  }
  for (int q = 0; q < Q; q++) {
    partials[q * partial_stride] = peaks[q];
    partials[q * partial_stride + 1] = totals[q];
  }
}

void attend(const float* queries, int query_count, const uint16_t* const* keys, const uint16_t* const* values,
            int count, int head_dim, float* partials, ptrdiff_t stride) {
  const int passes = (query_count + Simd::kQueries - 1) / Simd::kQueries;
  for (int pass = 0, q = 0; pass < passes; pass++) {
    const int now = (query_count - q + passes - pass - 1) / (passes - pass);
    const float* from = queries + q * head_dim;
    float* to = partials + q * stride;
    switch (now) {
#define DRAFTWOOD_QUERIES(Q)                                                                \
  case Q:                                                                                   \
    if constexpr (Q <= Simd::kQueries)                                                      \
      attend_queries<Q>(from, keys, values, count, head_dim, to, stride);                   \
    break;
      DRAFTWOOD_QUERIES(1) DRAFTWOOD_QUERIES(2) DRAFTWOOD_QUERIES(3) DRAFTWOOD_QUERIES(4)
      DRAFTWOOD_QUERIES(5) DRAFTWOOD_QUERIES(6) DRAFTWOOD_QUERIES(7) DRAFTWOOD_QUERIES(8)
#undef DRAFTWOOD_QUERIES
    }
    q += now;
  }
}

void merge(float* state, const float* partial, int head_dim) {
  const float peak = state[0] > partial[0] ? state[0] : partial[0];
  const F old_factor = exponential(Simd::set(state[0] - peak));
  const F new_factor = exponential(Simd::set(partial[0] - peak));
  alignas(64) float factors[32];
  Simd::store(factors, old_factor);
  Simd::store(factors + 16, new_factor);
  state[1] = state[1] * factors[0] + partial[1] * factors[16];
  state[0] = peak;
  for (int d = kPartialHeader; d < kPartialHeader + head_dim; d += 16) {
    const F scaled = Simd::mul(Simd::load(state + d), old_factor);
    Simd::store(state + d, Simd::fma(Simd::load(partial + d), new_factor, scaled));
  }
}

void finish(const float* state, float* out, int head_dim) {
  const F inverse = Simd::set(1.0f / state[1]);
  for (int d = 0; d < head_dim; d += 16)
    Simd::store(out + d, Simd::mul(Simd::load(state + kPartialHeader + d), inverse));
}

void embed(const Matrix& m, int output, float* out) {
  const int tile = output / kTile, lane = output % kTile;
  const uint8_t* weights = m.weights + static_cast<ptrdiff_t>(tile) * m.inputs * kTile + lane * 4;
  const float* scales = m.scales + static_cast<ptrdiff_t>(tile) * m.scale_groups * kTile + lane;
  for (int k = 0; k < m.inputs; k++) {
    const float scale = scales[m.scale_groups == 1 ? 0 : k / kGroup * kTile];
    const int value = weights[static_cast<ptrdiff_t>(k / 4) * 4 * kTile + k % 4] - 128;
    out[k] = scale * static_cast<float>(value);
  }
}

void top(const float* logits, int count, int first_id, int k, int32_t* ids, float* best) {
  for (int i = 0; i < count; i += 16) {
    if (!Simd::any_above(Simd::load(logits + i), Simd::set(best[k - 1]))) continue;
    for (int j = i; j < i + 16; j++) {
      const float logit = logits[j];
      int at = k;
      while (at > 0 && logit > best[at - 1]) at--;
      if (at == k) continue;
      for (int move = k - 1; move > at; move--) {
        best[move] = best[move - 1];
        ids[move] = ids[move - 1];
      }
      best[at] = logit;
      ids[at] = first_id + j;
    }
  }
}

constexpr Kernels make_kernels(const char* name) {
  return {name,      matmul,      quantise,    norm_quantise, swiglu_quantise, rotate, store_key,
          store_value, attend, merge, finish,      embed,         top};
}
