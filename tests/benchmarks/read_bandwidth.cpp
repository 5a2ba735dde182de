// How fast threads can read memory once, in huge pages: read_bandwidth THREADS MEGABYTES -> one GB/s a line.
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sys/mman.h>
#include <thread>
#include <vector>

int main(int, char** arguments) {
  const int threads = std::atoi(arguments[1]);
  const size_t size = static_cast<size_t>(std::atoi(arguments[2])) << 20, words = size / sizeof(uint64_t);
  auto* data = static_cast<uint64_t*>(mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  madvise(data, size, MADV_HUGEPAGE);
  std::memset(data, 1, size);
  std::vector<uint64_t> sums(static_cast<size_t>(threads) * 8);
  for (int repeat = 0; repeat < 7; repeat++) {
    const auto start = std::chrono::steady_clock::now();
    std::vector<std::thread> workers;
    for (int t = 0; t < threads; t++) {
      workers.emplace_back([&, t] {
        uint64_t sum[8] = {};
        const uint64_t* at = data + words / threads * t;
        for (size_t i = 0; i + 8 <= words / threads; i += 8)
          for (int lane = 0; lane < 8; lane++) sum[lane] += at[i + lane];
        for (uint64_t part : sum) sums[static_cast<size_t>(t) * 8] += part;
      });
    }
    for (std::thread& worker : workers) worker.join();
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    std::printf("%.2f\n", static_cast<double>(size) / seconds / 1e9);
  }
  return sums[0] == 0;
}
