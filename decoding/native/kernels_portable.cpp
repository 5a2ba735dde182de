// Plain C++: every machine that has none of the others.
#include "kernels.h"

namespace draftwood {
namespace {
#include "simd_portable.h"
#include "kernels_impl.h"
constexpr Kernels kKernels = make_kernels("portable");
}  // namespace
const Kernels* portable_kernels() { return &kKernels; }
}  // namespace draftwood
