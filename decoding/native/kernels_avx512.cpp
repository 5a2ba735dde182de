// AVX-512 with VNNI: Intel from Ice Lake on, AMD from Zen 4 on.
#include "kernels.h"

#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,fma,f16c"))), \
                             apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,fma,f16c")
#endif
namespace draftwood {
namespace {
#include "simd_avx512.h"
#include "kernels_impl.h"
constexpr Kernels kKernels = make_kernels("avx512-vnni");
}  // namespace
const Kernels* avx512_kernels() { return &kKernels; }
}  // namespace draftwood
#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
#else
namespace draftwood {
const Kernels* avx512_kernels() { return nullptr; }
}  // namespace draftwood
#endif
