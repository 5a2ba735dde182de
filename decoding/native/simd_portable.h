// 16 lanes of float and int32 as plain arrays: any C++17 compiler. Included inside an anonymous namespace.
inline float half_to_float(uint16_t half) {
  const uint32_t sign = static_cast<uint32_t>(half & 0x8000u) << 16;
  const uint32_t exponent = (half >> 10) & 31u;
  const uint32_t fraction = half & 1023u;
  uint32_t bits;
  if (exponent == 31) {
    bits = sign | 0x7f800000u | (fraction << 13);
  } else if (exponent != 0) {
    bits = sign | ((exponent + 112u) << 23) | (fraction << 13);
  } else {  // zero or subnormal: fraction * 2^-24, exact in float
    const float size = static_cast<float>(fraction) * 5.9604644775390625e-8f;
    return sign ? -size : size;
  }
  float out;
  __builtin_memcpy(&out, &bits, 4);
  return out;
}

// Round to nearest, ties to even; too large becomes infinity.
inline uint16_t float_to_half(float value) {
  uint32_t bits;
  __builtin_memcpy(&bits, &value, 4);
  const uint16_t sign = static_cast<uint16_t>((bits >> 16) & 0x8000u);
  bits &= 0x7fffffffu;
  if (bits > 0x7f800000u) return sign | 0x7e00u;
  if (bits >= 0x477ff000u) return sign | 0x7c00u;  // 65,520 and more
  if (bits < 0x38800000u) {                        // below 2^-14: subnormal half
    float size;
    __builtin_memcpy(&size, &bits, 4);
    size += 0.5f;  // the addition rounds to a multiple of 2^-24, ties to even
    __builtin_memcpy(&bits, &size, 4);
    return sign | static_cast<uint16_t>(bits - 0x3f000000u);
  }
  bits += 0xfffu + ((bits >> 13) & 1u);
  return sign | static_cast<uint16_t>((bits >> 13) - (112u << 10));
}

struct Simd {
  struct F { float v[16]; };
  struct I { int32_t v[16]; };
  struct W { int8_t v[64]; };
  static constexpr int kRows = 4;
  static constexpr int kPrefetchRows = 99;  // never
  static constexpr int kQueries = 4;
  static constexpr int kStartFactor = 0;

  template <class Op>
  static F each(Op op) {
    F out;
    for (int i = 0; i < 16; i++) out.v[i] = op(i);
    return out;
  }
  static F zero() { return set(0.0f); }
  static F set(float x) { return each([=](int) { return x; }); }
  static F load(const float* p) { return each([=](int i) { return p[i]; }); }
  static void store(float* p, const F& x) {
    for (int i = 0; i < 16; i++) p[i] = x.v[i];
  }
  static F load_half(const uint16_t* p) { return each([=](int i) { return half_to_float(p[i]); }); }
  static void store_half(uint16_t* p, const F& x) {
    for (int i = 0; i < 16; i++) p[i] = float_to_half(x.v[i]);
  }
  static F add(const F& x, const F& y) { return each([&](int i) { return x.v[i] + y.v[i]; }); }
  static F sub(const F& x, const F& y) { return each([&](int i) { return x.v[i] - y.v[i]; }); }
  static F mul(const F& x, const F& y) { return each([&](int i) { return x.v[i] * y.v[i]; }); }
  static F div(const F& x, const F& y) { return each([&](int i) { return x.v[i] / y.v[i]; }); }
  static F fma(const F& x, const F& y, const F& z) { return each([&](int i) { return x.v[i] * y.v[i] + z.v[i]; }); }
  static F max(const F& x, const F& y) { return each([&](int i) { return x.v[i] > y.v[i] ? x.v[i] : y.v[i]; }); }
  static F abs(const F& x) { return each([&](int i) { return __builtin_fabsf(x.v[i]); }); }
  static F first(int count, const F& x, const F& y) {
    return each([&](int i) { return i < count ? x.v[i] : y.v[i]; });
  }
  static bool any_above(const F& x, const F& y) {
    bool any = false;
    for (int i = 0; i < 16; i++) any |= x.v[i] > y.v[i];
    return any;
  }
  static float sum(const F& x) {
    float parts[4];
    for (int i = 0; i < 4; i++) parts[i] = (x.v[i] + x.v[i + 8]) + (x.v[i + 4] + x.v[i + 12]);
    return (parts[0] + parts[2]) + (parts[1] + parts[3]);
  }
  static float peak(const F& x) {
    float out = x.v[0];
    for (int i = 1; i < 16; i++) out = x.v[i] > out ? x.v[i] : out;
    return out;
  }
  static F to_float(const I& x) { return each([&](int i) { return static_cast<float>(x.v[i]); }); }
  static I round(const F& x) {
    I out;
    for (int i = 0; i < 16; i++) out.v[i] = static_cast<int32_t>(__builtin_rintf(x.v[i]));
    return out;
  }
  static F scale_by_power(const F& x, const I& power) {
    return each([&](int i) {
      uint32_t bits;
      __builtin_memcpy(&bits, &x.v[i], 4);
      bits += static_cast<uint32_t>(power.v[i]) << 23;
      float out;
      __builtin_memcpy(&out, &bits, 4);
      return out;
    });
  }
  static void store_bytes(int8_t* p, const I& x) {
    for (int i = 0; i < 16; i++) p[i] = static_cast<int8_t>(x.v[i] > 127 ? 127 : x.v[i] < -128 ? -128 : x.v[i]);
  }
  static int32_t sum(const I& x) {
    int32_t out = 0;
    for (int i = 0; i < 16; i++) out += x.v[i];
    return out;
  }
  static I add(const I& x, const I& y) {
    I out;
    for (int i = 0; i < 16; i++) out.v[i] = x.v[i] + y.v[i];
    return out;
  }
  static I set(int32_t x) {
    I out;
    for (int i = 0; i < 16; i++) out.v[i] = x;
    return out;
  }
  static W load_weights(const uint8_t* p) {
    W out;
    for (int i = 0; i < 64; i++) out.v[i] = static_cast<int8_t>(p[i] ^ 128);
    return out;
  }
  static I dot(I sum, const W& w, const int8_t* x) {
    for (int o = 0; o < 16; o++)
      for (int k = 0; k < 4; k++) sum.v[o] += static_cast<int32_t>(w.v[4 * o + k]) * x[k];
    return sum;
  }
};
