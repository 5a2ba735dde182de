#include "thread_pool.h"

#include <system_error>

namespace draftwood {
namespace {

// About 50 microseconds of pauses on current machines: longer than any serial step inside a pass, shorter than
// what a user could notice on a battery.
constexpr int kSpins = 2000;

inline void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace

ThreadPool::ThreadPool(int threads) : tickets_(threads) {
  try {
    for (int i = 1; i < threads; i++) workers_.emplace_back([this, i] { work(i); });
  } catch (const std::system_error&) {
    // No more threads to be had: the others take the ranges of those that are missing.
  }
}

ThreadPool::~ThreadPool() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    stop_ = true;
  }
  wakeup_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

void ThreadPool::begin() {
  if (workers_.empty()) return;
  awake_ = true;
  wake();
}

void ThreadPool::end() { awake_ = false; }

void ThreadPool::wake() {
  // The empty critical section orders this after a sleeper's last look at the ticket.
  { std::lock_guard<std::mutex> lock(mutex_); }
  wakeup_.notify_all();
}

uint32_t ThreadPool::range_start(int owner, uint32_t chunks) const {
  return static_cast<uint32_t>(static_cast<uint64_t>(chunks) * owner / tickets_.size());
}

bool ThreadPool::take_from(int owner, int& chunk, Call& call, const void*& context) {
  std::atomic<uint64_t>& next = tickets_[owner].next;
  uint64_t ticket = next.load(std::memory_order_acquire);
  for (;;) {
    const Phase& phase = phases_[(ticket >> 32) & 1];
    call = phase.call.load(std::memory_order_relaxed);
    context = phase.context.load(std::memory_order_relaxed);
    chunk = static_cast<int>(static_cast<uint32_t>(ticket));
    if (static_cast<uint32_t>(ticket) >= range_start(owner + 1, phase.chunks.load(std::memory_order_relaxed))) return false;
    // Succeeds only while the phase is still the one that was read, so the slot cannot have been rewritten.
    if (next.compare_exchange_weak(ticket, ticket + 1, std::memory_order_acquire, std::memory_order_acquire)) return true;
  }
}

bool ThreadPool::take_chunk(int thread, int& chunk, Call& call, const void*& context) {
  for (int i = 0; i < size(); i++)
    if (take_from((thread + i) % size(), chunk, call, context)) return true;
  return false;
}

void ThreadPool::run_phase(Call call, const void* context, int chunks) {
  const uint32_t number = phase_.load(std::memory_order_relaxed) + 1;
  Phase& phase = phases_[number & 1];
  phase.call.store(call, std::memory_order_relaxed);
  phase.context.store(context, std::memory_order_relaxed);
  phase.chunks.store(static_cast<uint32_t>(chunks), std::memory_order_relaxed);
  done_.store(0, std::memory_order_relaxed);
  for (int i = 0; i < size(); i++)
    tickets_[i].next.store(static_cast<uint64_t>(number) << 32 | range_start(i, static_cast<uint32_t>(chunks)),
                           std::memory_order_release);
  phase_.store(number);
  if (sleepers_.load() > 0) wake();

  int chunk;
  uint32_t mine = 0;
  while (take_chunk(0, chunk, call, context)) {
    call(context, chunk, 0);
    mine++;
  }
  done_.fetch_add(mine, std::memory_order_acq_rel);
  for (int spins = 0; done_.load(std::memory_order_acquire) != static_cast<uint32_t>(chunks); spins++) {
    if (spins < kSpins)
      pause();
    else
      std::this_thread::yield();  // the thread that holds the last chunk may need this core
  }
}

void ThreadPool::work(int thread) {
  int chunk;
  Call call;
  const void* context;
  int spins = 0;
  while (!stop_.load(std::memory_order_relaxed)) {
    const uint32_t seen = phase_.load();
    if (take_chunk(thread, chunk, call, context)) {
      call(context, chunk, thread);
      done_.fetch_add(1, std::memory_order_acq_rel);
      spins = 0;
    } else if (awake_.load(std::memory_order_relaxed) && ++spins < kSpins) {
      pause();
    } else {
      sleep_until_work(seen);
      spins = 0;
    }
  }
}

void ThreadPool::sleep_until_work(uint32_t seen) {
  std::unique_lock<std::mutex> lock(mutex_);
  sleepers_.fetch_add(1);
  // A phase that was published after `seen`, or the beginning of a pass, ends the sleep.
  const bool was_awake = awake_.load();
  wakeup_.wait(lock, [&] { return stop_ || phase_.load() != seen || (awake_.load() && !was_awake); });
  sleepers_.fetch_sub(1);
}

}  // namespace draftwood
