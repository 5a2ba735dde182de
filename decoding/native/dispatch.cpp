// Which kernels this machine can run.
#include "kernels.h"

#include <cstring>

#if defined(__aarch64__) && defined(__linux__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

namespace draftwood {
namespace {

bool has_avx512() {
#if defined(__x86_64__) && defined(__GNUC__)
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
         __builtin_cpu_supports("avx512vnni");
#else
  return false;
#endif
}

bool has_avx2() {
#if defined(__x86_64__) && defined(__GNUC__)
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c");
#else
  return false;
#endif
}

bool has_dot_product() {
#if defined(__aarch64__) && defined(__linux__)
  return (getauxval(AT_HWCAP) & HWCAP_ASIMDDP) != 0;
#elif defined(__aarch64__) && defined(__APPLE__)
  return true;  // every Apple silicon has it
#else
  return false;
#endif
}

}  // namespace

const Kernels* best_kernels() {
  if (has_avx512() && avx512_kernels()) return avx512_kernels();
  if (has_avx2() && avx2_kernels()) return avx2_kernels();
  if (has_dot_product() && neon_kernels()) return neon_kernels();
  return portable_kernels();
}

const Kernels* kernels_by_name(const char* name) {
  if (has_avx512() && avx512_kernels() && !std::strcmp(name, avx512_kernels()->name)) return avx512_kernels();
  if (has_avx2() && avx2_kernels() && !std::strcmp(name, avx2_kernels()->name)) return avx2_kernels();
  if (has_dot_product() && neon_kernels() && !std::strcmp(name, neon_kernels()->name)) return neon_kernels();
  return !std::strcmp(name, portable_kernels()->name) ? portable_kernels() : nullptr;
}

}  // namespace draftwood
