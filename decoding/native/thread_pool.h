// A few threads that run the chunks of one phase after another.
//
// Knows work items by number. Must not know what they compute. Every thread begins with its own range of chunks, in
// order (so that it reads memory in one stream), and then takes from the ranges of others. A phase ends when its
// chunks are done, not when every thread has arrived: a thread whose core was taken away holds up at most the chunk
// it is in, and the others take the rest. Threads spin for some tens of microseconds between the phases of a pass and sleep otherwise.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

namespace draftwood {

class ThreadPool {
 public:
  // `threads` counts the caller of run(), who works too.
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  // Ranges that chunks are divided into: one a thread.
  int size() const { return static_cast<int>(tickets_.size()); }

  // Between begin() and end() the workers are awake; end() lets them sleep at once.
  void begin();
  void end();

  // work(chunk, thread) for every chunk in [0, chunks), each exactly once; returns when all are done. What earlier
  // phases wrote is visible to later ones. Only one thread may call run() at a time.
  template <class Work>
  void run(int chunks, const Work& work) {
    if (chunks == 1 || workers_.empty()) {
      for (int chunk = 0; chunk < chunks; chunk++) work(chunk, 0);
      return;
    }
    run_phase([](const void* context, int chunk, int thread) { (*static_cast<const Work*>(context))(chunk, thread); },
              &work, chunks);
  }

 private:
  using Call = void (*)(const void*, int, int);
  struct Phase {  // atomics: a late worker may read a slot while it is rewritten, and then finds its ticket stale
    std::atomic<Call> call{nullptr};
    std::atomic<const void*> context{nullptr};
    std::atomic<uint32_t> chunks{0};
  };
  // High half: number of the phase; low half: the next chunk of one thread's range.
  struct alignas(64) Ticket {
    std::atomic<uint64_t> next{0};
  };

  void run_phase(Call call, const void* context, int chunks);
  bool take_chunk(int thread, int& chunk, Call& call, const void*& context);
  bool take_from(int owner, int& chunk, Call& call, const void*& context);
  uint32_t range_start(int owner, uint32_t chunks) const;
  void work(int thread);
  void sleep_until_work(uint32_t seen);
  void wake();

  Phase phases_[2];
  std::vector<Ticket> tickets_;
  alignas(64) std::atomic<uint32_t> phase_{0};
  alignas(64) std::atomic<uint32_t> done_{0};
  alignas(64) std::atomic<bool> awake_{false};
  std::atomic<int> sleepers_{0};
  std::atomic<bool> stop_{false};
  std::mutex mutex_;
  std::condition_variable wakeup_;
  std::vector<std::thread> workers_;
};

}  // namespace draftwood
