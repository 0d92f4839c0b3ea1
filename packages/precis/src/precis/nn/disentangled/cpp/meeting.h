// Work that threads share part by part: a thread that the machine keeps away for a while takes fewer parts.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "vectors.h"

namespace precis {
namespace {

// GNU's barrier waits awake for a fixed time. Alone that should be long: waking a thread costs more than the wait. Beside
// other work it should be short: the thread that is late may need the core of the one that waits.
class Meeting {
 public:
  // The next part that nobody has taken, or at least `parts` if there is none.
  int64_t take() { return taken_.fetch_add(1, std::memory_order_relaxed); }

  // Records that one of `parts` is done.
  void finish(int64_t parts) {
    if (done_.fetch_add(1) + 1 == parts) done_.notify_all();
  }

  // Waits until all `parts` are done.
  void wait(int64_t parts) {
    const int looks = looks_.load(std::memory_order_relaxed);
    for (int i = 0; i < looks; ++i) {
      if (done_.load(std::memory_order_acquire) == parts) {
        if (i) looks_.store(std::min(2 * looks, kMostLooks), std::memory_order_relaxed);
        return;
      }
      pause();
    }
    looks_.store(std::max(looks / 2, kFewestLooks), std::memory_order_relaxed);
    for (int64_t done; (done = done_.load()) != parts;) done_.wait(done);
  }

 private:
  static constexpr int kMostLooks = 2048, kFewestLooks = 32;
  static void pause() {
#if defined(__AVX2__)
    _mm_pause();
#endif
  }
  static inline std::atomic<int> looks_{kMostLooks};  // of all steps of the process
  std::atomic<int64_t> taken_{0};
  alignas(64) std::atomic<int64_t> done_{0};
};

// How many threads the next steps use. If the others took hardly any part, the machine has no core left for them: then
// some steps have one thread, since a step ends only when all its threads have come.
class Crew {
 public:
  static int64_t threads(int64_t most) {
    const int alone = alone_.load(std::memory_order_relaxed);
    if (alone) alone_.store(alone - 1, std::memory_order_relaxed);
    return alone ? 1 : most;
  }

  // Takes note of a step in which the first of `threads` took `first` of all parts.
  static void record(int64_t threads, int64_t first, int64_t all) {
    if (threads < 2) return;
    const bool is_alone = (all - first) * kShare < all;
    turns_ = is_alone ? std::min(2 * turns_ + 1, kMostTurns) : turns_ / 2;
    alone_.store(is_alone ? turns_.load() : 0, std::memory_order_relaxed);
  }

 private:
  static constexpr int64_t kShare = 8;  // the others took less than this part of the work
  static constexpr int kMostTurns = 15;
  static inline std::atomic<int> alone_{0}, turns_{0};
};

}  // namespace
}  // namespace precis
