// A barrier whose threads wait awake only as long as that has helped lately, and then sleep.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "vectors.h"

namespace precis {
namespace {

// GNU's barrier waits awake for a fixed time. Alone that should be long: waking a thread costs more than the wait. Beside
// other work it should be short: the thread that is late may need the core of the one that waits.
class Barrier {
 public:
  // Waits until all `threads` have come.
  void meet(int64_t threads) {
    const uint32_t round = round_.load();
    if (came_.fetch_add(1) + 1 == threads) {
      came_.store(0);
      round_.store(round + 1);
      round_.notify_all();
      return;
    }
    const int looks = looks_.load(std::memory_order_relaxed);
    for (int i = 0; i < looks; ++i) {
      if (round_.load(std::memory_order_acquire) != round) {
        looks_.store(std::min(2 * looks, kMostLooks), std::memory_order_relaxed);
        return;
      }
      pause();
    }
    looks_.store(std::max(looks / 2, kFewestLooks), std::memory_order_relaxed);
    while (round_.load() == round) round_.wait(round);
  }

 private:
  static constexpr int kMostLooks = 2048, kFewestLooks = 32;
  static void pause() {
#if defined(__AVX2__)
    _mm_pause();
#endif
  }
  static inline std::atomic<int> looks_{kMostLooks};  // of all steps of the process
  std::atomic<int64_t> came_{0};
  std::atomic<uint32_t> round_{0};
};

}  // namespace
}  // namespace precis
