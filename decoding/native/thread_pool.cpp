#include "thread_pool.h"

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

ThreadPool::ThreadPool(int threads) {
  for (int i = 1; i < threads; i++) workers_.emplace_back([this, i] { work(i); });
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

bool ThreadPool::take_chunk(uint64_t& ticket, Call& call, const void*& context) {
  ticket = ticket_.load(std::memory_order_acquire);
  for (;;) {
    const Phase& phase = phases_[(ticket >> 32) & 1];
    call = phase.call.load(std::memory_order_relaxed);
    context = phase.context.load(std::memory_order_relaxed);
    if (static_cast<uint32_t>(ticket) >= phase.chunks.load(std::memory_order_relaxed)) return false;
    // Succeeds only while the phase is still the one that was read, so the slot cannot have been rewritten.
    if (ticket_.compare_exchange_weak(ticket, ticket + 1, std::memory_order_acquire, std::memory_order_acquire))
      return true;
  }
}

void ThreadPool::run_phase(Call call, const void* context, int chunks) {
  const uint64_t number = (ticket_.load(std::memory_order_relaxed) >> 32) + 1;
  Phase& phase = phases_[number & 1];
  phase.call.store(call, std::memory_order_relaxed);
  phase.context.store(context, std::memory_order_relaxed);
  phase.chunks.store(static_cast<uint32_t>(chunks), std::memory_order_relaxed);
  done_.store(0, std::memory_order_relaxed);
  ticket_.store(number << 32);
  if (sleepers_.load() > 0) wake();

  uint64_t ticket;
  uint32_t mine = 0;
  while (take_chunk(ticket, call, context)) {
    call(context, static_cast<int>(static_cast<uint32_t>(ticket)), 0);
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
  uint64_t ticket = 0;
  Call call;
  const void* context;
  int spins = 0;
  while (!stop_.load(std::memory_order_relaxed)) {
    if (take_chunk(ticket, call, context)) {
      call(context, static_cast<int>(static_cast<uint32_t>(ticket)), thread);
      done_.fetch_add(1, std::memory_order_acq_rel);
      spins = 0;
    } else if (awake_.load(std::memory_order_relaxed) && ++spins < kSpins) {
      pause();
    } else {
      sleep_until_work(ticket >> 32);
      spins = 0;
    }
  }
}

void ThreadPool::sleep_until_work(uint64_t seen) {
  std::unique_lock<std::mutex> lock(mutex_);
  sleepers_.fetch_add(1);
  // A phase that was published after `seen`, or the beginning of a pass, ends the sleep.
  const bool was_awake = awake_.load();
  wakeup_.wait(lock, [&] { return stop_ || (ticket_.load() >> 32) != seen || (awake_.load() && !was_awake); });
  sleepers_.fetch_sub(1);
}

}  // namespace draftwood
