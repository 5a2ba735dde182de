// NEON with dot products (Armv8.2): Apple silicon, Graviton 2, Cortex-A76 and later.
#include "kernels.h"

#if defined(__aarch64__) && defined(__GNUC__)
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("dotprod"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("arch=armv8.2-a+dotprod")
#endif
#include <arm_neon.h>
namespace draftwood {
namespace {
#include "simd_neon.h"
#include "kernels_impl.h"
constexpr Kernels kKernels = make_kernels("neon-dotprod");
}  // namespace
const Kernels* neon_kernels() { return &kKernels; }
}  // namespace draftwood
#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
#else
namespace draftwood {
const Kernels* neon_kernels() { return nullptr; }
}  // namespace draftwood
#endif
