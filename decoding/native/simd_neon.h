// 16 lanes of float and int32 as four NEON registers. Included inside an anonymous namespace.
struct Simd {
  struct F { float32x4_t v[4]; };
  struct I { int32x4_t v[4]; };
  struct W { int8x16_t v[4]; };
  static constexpr int kRows = 3;
  static constexpr int kPrefetchRows = 99;  // never
  static constexpr int kQueries = 4;
  static constexpr int kStartFactor = 0;

  template <class Op>
  static F each(Op op) {
    return {{op(0), op(1), op(2), op(3)}};
  }
  static F zero() { return set(0.0f); }
  static F set(float x) { return each([=](int) { return vdupq_n_f32(x); }); }
  static F load(const float* p) { return each([=](int i) { return vld1q_f32(p + 4 * i); }); }
  static void store(float* p, F x) {
    for (int i = 0; i < 4; i++) vst1q_f32(p + 4 * i, x.v[i]);
  }
  static F load_half(const uint16_t* p) {
    return each([=](int i) { return vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(p + 4 * i))); });
  }
  static void store_half(uint16_t* p, F x) {
    for (int i = 0; i < 4; i++) vst1_u16(p + 4 * i, vreinterpret_u16_f16(vcvt_f16_f32(x.v[i])));
  }
  static F add(F x, F y) { return each([&](int i) { return vaddq_f32(x.v[i], y.v[i]); }); }
  static F sub(F x, F y) { return each([&](int i) { return vsubq_f32(x.v[i], y.v[i]); }); }
  static F mul(F x, F y) { return each([&](int i) { return vmulq_f32(x.v[i], y.v[i]); }); }
  static F div(F x, F y) { return each([&](int i) { return vdivq_f32(x.v[i], y.v[i]); }); }
  static F fma(F x, F y, F z) { return each([&](int i) { return vfmaq_f32(z.v[i], x.v[i], y.v[i]); }); }
  static F max(F x, F y) { return each([&](int i) { return vmaxq_f32(x.v[i], y.v[i]); }); }
  static F abs(F x) { return each([&](int i) { return vabsq_f32(x.v[i]); }); }
  static F first(int count, F x, F y) {
    const int32_t lanes[4] = {0, 1, 2, 3};
    const int32x4_t lane = vld1q_s32(lanes);
    return each([&](int i) {
      return vbslq_f32(vcltq_s32(lane, vdupq_n_s32(count - 4 * i)), x.v[i], y.v[i]);
    });
  }
  static bool any_above(F x, F y) {
    uint32x4_t above = vcgtq_f32(x.v[0], y.v[0]);
    for (int i = 1; i < 4; i++) above = vorrq_u32(above, vcgtq_f32(x.v[i], y.v[i]));
    return vmaxvq_u32(above) != 0;
  }
  static float sum(F x) {
    return vaddvq_f32(vaddq_f32(vaddq_f32(x.v[0], x.v[1]), vaddq_f32(x.v[2], x.v[3])));
  }
  static float peak(F x) {
    return vmaxvq_f32(vmaxq_f32(vmaxq_f32(x.v[0], x.v[1]), vmaxq_f32(x.v[2], x.v[3])));
  }
  static F to_float(I x) { return each([&](int i) { return vcvtq_f32_s32(x.v[i]); }); }
  static I round(F x) {
    I out;
    for (int i = 0; i < 4; i++) out.v[i] = vcvtnq_s32_f32(x.v[i]);
    return out;
  }
  static F scale_by_power(F x, I power) {
    return each([&](int i) {
      return vreinterpretq_f32_s32(vaddq_s32(vreinterpretq_s32_f32(x.v[i]), vshlq_n_s32(power.v[i], 23)));
    });
  }
  static void store_bytes(int8_t* p, I x) {
    const int16x8_t low = vcombine_s16(vqmovn_s32(x.v[0]), vqmovn_s32(x.v[1]));
    const int16x8_t high = vcombine_s16(vqmovn_s32(x.v[2]), vqmovn_s32(x.v[3]));
    vst1q_s8(p, vcombine_s8(vqmovn_s16(low), vqmovn_s16(high)));
  }
  static int32_t sum(I x) {
    return vaddvq_s32(vaddq_s32(vaddq_s32(x.v[0], x.v[1]), vaddq_s32(x.v[2], x.v[3])));
  }
  static I add(I x, I y) {
    for (int i = 0; i < 4; i++) x.v[i] = vaddq_s32(x.v[i], y.v[i]);
    return x;
  }
  static I set(int32_t x) { return {{vdupq_n_s32(x), vdupq_n_s32(x), vdupq_n_s32(x), vdupq_n_s32(x)}}; }
  static W load_weights(const uint8_t* p) {
    const uint8x16_t flip = vdupq_n_u8(128);
    W out;
    for (int i = 0; i < 4; i++) out.v[i] = vreinterpretq_s8_u8(veorq_u8(vld1q_u8(p + 16 * i), flip));
    return out;
  }
  static I dot(I sum, W w, const int8_t* x) {
    int32_t four;
    __builtin_memcpy(&four, x, 4);
    const int8x16_t values = vreinterpretq_s8_s32(vdupq_n_s32(four));
    for (int i = 0; i < 4; i++) sum.v[i] = vdotq_s32(sum.v[i], w.v[i], values);
    return sum;
  }
};
