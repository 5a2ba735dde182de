// AVX2 with FMA and F16C: x86 from Haswell (2013) and Zen on.
#include "kernels.h"

#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,fma,f16c"))), \
                             apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2,fma,f16c")
#endif
namespace draftwood {
namespace {
#include "simd_avx2.h"
#include "kernels_impl.h"
constexpr Kernels kKernels = make_kernels("avx2");
}  // namespace
const Kernels* avx2_kernels() { return &kKernels; }
}  // namespace draftwood
#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
#else
namespace draftwood {
const Kernels* avx2_kernels() { return nullptr; }
}  // namespace draftwood
#endif
