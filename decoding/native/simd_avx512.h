// 16 lanes of float and int32 as one AVX-512 register. Included inside an anonymous namespace.
struct Simd {
  using F = __m512;
  using I = __m512i;
  using W = __m512i;  // 16 outputs x 4 weights, unsigned
  static constexpr int kRows = 14;         // rows whose sums fit into registers beside one tile
  static constexpr int kPrefetchRows = 5;  // from this many rows on, weights are prefetched by instruction
  static constexpr int kQueries = 8;       // attention heads computed together
  static constexpr int kStartFactor = -128;  // weights are stored plus 128; the start value takes that back

  static F zero() { return _mm512_setzero_ps(); }
  static F set(float x) { return _mm512_set1_ps(x); }
  static F load(const float* p) { return _mm512_loadu_ps(p); }
  static void store(float* p, F x) { _mm512_storeu_ps(p, x); }
  static F load_half(const uint16_t* p) {
    return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
  }
  static void store_half(uint16_t* p, F x) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm512_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT));
  }
  static F add(F a, F b) { return _mm512_add_ps(a, b); }
  static F sub(F a, F b) { return _mm512_sub_ps(a, b); }
  static F mul(F a, F b) { return _mm512_mul_ps(a, b); }
  static F div(F a, F b) { return _mm512_div_ps(a, b); }
  static F fma(F a, F b, F c) { return _mm512_fmadd_ps(a, b, c); }
  static F max(F a, F b) { return _mm512_max_ps(a, b); }
  static F abs(F a) { return _mm512_abs_ps(a); }
  static F first(int count, F a, F b) {  // lanes below `count` from a, the rest from b
    return _mm512_mask_blend_ps(static_cast<__mmask16>((1u << count) - 1), b, a);
  }
  static bool any_above(F a, F b) { return _mm512_cmp_ps_mask(a, b, _CMP_GT_OQ) != 0; }
  static float sum(F a) { return _mm512_reduce_add_ps(a); }
  static float peak(F a) { return _mm512_reduce_max_ps(a); }
  static F to_float(I a) { return _mm512_cvtepi32_ps(a); }
  static I round(F a) { return _mm512_cvtps_epi32(a); }
  static F scale_by_power(F a, I power) {  // a * 2^power, for normal results
    return _mm512_castsi512_ps(_mm512_add_epi32(_mm512_castps_si512(a), _mm512_slli_epi32(power, 23)));
  }
  static void store_bytes(int8_t* p, I a) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm512_cvtsepi32_epi8(a));
  }
  static int32_t sum(I a) { return _mm512_reduce_add_epi32(a); }
  static I add(I a, I b) { return _mm512_add_epi32(a, b); }
  static I set(int32_t x) { return _mm512_set1_epi32(x); }
  static W load_weights(const uint8_t* p) { return _mm512_loadu_si512(p); }
  static I dot(I sum, W weights, const int8_t* x) {
    int32_t four;
    __builtin_memcpy(&four, x, 4);
    return _mm512_dpbusd_epi32(sum, weights, _mm512_set1_epi32(four));
  }
};
