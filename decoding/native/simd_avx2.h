// 16 lanes of float and int32 as two AVX2 registers. Included inside an anonymous namespace.
struct Simd {
  struct F { __m256 a, b; };
  struct I { __m256i a, b; };
  struct W { __m256i size_a, sign_a, size_b, sign_b; };  // |weight| and the weight itself
  static constexpr int kRows = 3;
  static constexpr int kPrefetchRows = 99;  // never
  static constexpr int kQueries = 4;
  static constexpr int kStartFactor = 0;

  static F zero() { return {_mm256_setzero_ps(), _mm256_setzero_ps()}; }
  static F set(float x) { return {_mm256_set1_ps(x), _mm256_set1_ps(x)}; }
  static F load(const float* p) { return {_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)}; }
  static void store(float* p, F x) {
    _mm256_storeu_ps(p, x.a);
    _mm256_storeu_ps(p + 8, x.b);
  }
  static F load_half(const uint16_t* p) {
    return {_mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))),
            _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p + 8)))};
  }
  static void store_half(uint16_t* p, F x) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm256_cvtps_ph(x.a, _MM_FROUND_TO_NEAREST_INT));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p + 8), _mm256_cvtps_ph(x.b, _MM_FROUND_TO_NEAREST_INT));
  }
  static F add(F x, F y) { return {_mm256_add_ps(x.a, y.a), _mm256_add_ps(x.b, y.b)}; }
  static F sub(F x, F y) { return {_mm256_sub_ps(x.a, y.a), _mm256_sub_ps(x.b, y.b)}; }
  static F mul(F x, F y) { return {_mm256_mul_ps(x.a, y.a), _mm256_mul_ps(x.b, y.b)}; }
  static F div(F x, F y) { return {_mm256_div_ps(x.a, y.a), _mm256_div_ps(x.b, y.b)}; }
  static F fma(F x, F y, F z) { return {_mm256_fmadd_ps(x.a, y.a, z.a), _mm256_fmadd_ps(x.b, y.b, z.b)}; }
  static F max(F x, F y) { return {_mm256_max_ps(x.a, y.a), _mm256_max_ps(x.b, y.b)}; }
  static F abs(F x) {
    const __m256 mask = _mm256_castsi256_ps(_mm256_set1_epi32(0x7fffffff));
    return {_mm256_and_ps(x.a, mask), _mm256_and_ps(x.b, mask)};
  }
  static F first(int count, F x, F y) {
    const __m256i lanes = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    const __m256 a = _mm256_castsi256_ps(_mm256_cmpgt_epi32(_mm256_set1_epi32(count), lanes));
    const __m256 b = _mm256_castsi256_ps(_mm256_cmpgt_epi32(_mm256_set1_epi32(count - 8), lanes));
    return {_mm256_blendv_ps(y.a, x.a, a), _mm256_blendv_ps(y.b, x.b, b)};
  }
  static bool any_above(F x, F y) {
    return _mm256_movemask_ps(_mm256_or_ps(_mm256_cmp_ps(x.a, y.a, _CMP_GT_OQ),
                                           _mm256_cmp_ps(x.b, y.b, _CMP_GT_OQ))) != 0;
  }
  static float sum(F x) {
    const __m256 both = _mm256_add_ps(x.a, x.b);
    __m128 four = _mm_add_ps(_mm256_castps256_ps128(both), _mm256_extractf128_ps(both, 1));
    four = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(four, _mm_movehdup_ps(four)));
  }
  static float peak(F x) {
    const __m256 both = _mm256_max_ps(x.a, x.b);
    __m128 four = _mm_max_ps(_mm256_castps256_ps128(both), _mm256_extractf128_ps(both, 1));
    four = _mm_max_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_max_ss(four, _mm_movehdup_ps(four)));
  }
  static F to_float(I x) { return {_mm256_cvtepi32_ps(x.a), _mm256_cvtepi32_ps(x.b)}; }
  static I round(F x) { return {_mm256_cvtps_epi32(x.a), _mm256_cvtps_epi32(x.b)}; }
  static F scale_by_power(F x, I power) {
    return {_mm256_castsi256_ps(_mm256_add_epi32(_mm256_castps_si256(x.a), _mm256_slli_epi32(power.a, 23))),
            _mm256_castsi256_ps(_mm256_add_epi32(_mm256_castps_si256(x.b), _mm256_slli_epi32(power.b, 23)))};
  }
  static void store_bytes(int8_t* p, I x) {
    const __m256i words = _mm256_permute4x64_epi64(_mm256_packs_epi32(x.a, x.b), 0xd8);
    const __m128i bytes = _mm_packs_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p), bytes);
  }
  static int32_t sum(I x) {
    const __m256i both = _mm256_add_epi32(x.a, x.b);
    __m128i four = _mm_add_epi32(_mm256_castsi256_si128(both), _mm256_extracti128_si256(both, 1));
    four = _mm_add_epi32(four, _mm_shuffle_epi32(four, 0x4e));
    return _mm_cvtsi128_si32(_mm_add_epi32(four, _mm_shuffle_epi32(four, 0xb1)));
  }
  static I add(I x, I y) { return {_mm256_add_epi32(x.a, y.a), _mm256_add_epi32(x.b, y.b)}; }
  static I set(int32_t x) { return {_mm256_set1_epi32(x), _mm256_set1_epi32(x)}; }
  static W load_weights(const uint8_t* p) {
    const __m256i flip = _mm256_set1_epi8(-128);
    const __m256i a = _mm256_xor_si256(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)), flip);
    const __m256i b = _mm256_xor_si256(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p + 32)), flip);
    return {_mm256_abs_epi8(a), a, _mm256_abs_epi8(b), b};
  }
  // Weights and activations lie in [-127, 127]: a pair of products is at most 32,258 and never saturates.
  static I dot(I sum, W w, const int8_t* x) {
    int32_t four;
    __builtin_memcpy(&four, x, 4);
    const __m256i values = _mm256_set1_epi32(four);
    const __m256i ones = _mm256_set1_epi16(1);
    const __m256i a = _mm256_maddubs_epi16(w.size_a, _mm256_sign_epi8(values, w.sign_a));
    const __m256i b = _mm256_maddubs_epi16(w.size_b, _mm256_sign_epi8(values, w.sign_b));
    return {_mm256_add_epi32(sum.a, _mm256_madd_epi16(a, ones)),
            _mm256_add_epi32(sum.b, _mm256_madd_epi16(b, ones))};
  }
};
