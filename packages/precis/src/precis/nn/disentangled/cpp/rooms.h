// Working memory of threads.
#pragma once

#include <algorithm>
#include <cstring>
#include <mutex>
#include <vector>

#include "problem.h"

namespace precis {
namespace {

// A head's packed keys and values, and products of its keys with the table: shared by its tiles. Below them the data
// of the backward pass: keys as rows, values as columns, gradients of keys and values (n, wide) and of those products.
struct HeadRoom {
  float *keys, *values, *of_key;
  float *key_rows, *key_pairs, *value_columns, *to_keys, *to_values, *by_key;
};

// A tile's products with the table, scores, mixed values, and its scaled queries for near and far keys;
// below, the same for gradients.
struct TileRoom {
  float *of_query, *scores, *mixed, *asking, *far, *paired;
  float *more, *dropped, *query_rows, *given_rows, *by_query, *query_pairs, *met_pairs, *ds_pairs;
};

// Working memory, reused from call to call: the system maps fresh pages one fault at a time. Small slabs
// are kept until the process ends.
class Slab {
 public:
  explicit Slab(int64_t count) {
    {
      const std::lock_guard guard(lock());
      auto& all = spare();
      const auto fits = [&](const Tensor& x) { return x.numel() >= count; };
      const auto found = std::find_if(all.begin(), all.end(), fits);
      if (found != all.end()) {
        memory_ = *found;
        all.erase(found);
      }
    }
    if (!memory_.defined()) memory_ = at::empty({count}, at::kFloat);
  }
  ~Slab() {
    if (memory_.numel() > kSpareNumbers) return;
    const std::lock_guard guard(lock());
    auto& all = spare();
    if (all.size() == kSpares) all.erase(std::min_element(all.begin(), all.end(), smaller));
    all.push_back(memory_);
  }
  Slab(const Slab&) = delete;
  Slab& operator=(const Slab&) = delete;
  float* data() const { return memory_.data_ptr<float>(); }

 private:
  static constexpr int64_t kSpareNumbers = 4 << 20;  // 16 MiB
  static constexpr size_t kSpares = 4;
  static bool smaller(const Tensor& a, const Tensor& b) { return a.numel() < b.numel(); }
  static std::mutex& lock() {
    static std::mutex only;
    return only;
  }
  static std::vector<Tensor>& spare() {
    static auto* all = new std::vector<Tensor>;  // never destroyed: torch's allocator may be destroyed first
    return *all;
  }
  Tensor memory_;
};

// Several rooms on one slab.
template <typename Room>
class Rooms {
 public:
  Rooms(int64_t many, const std::vector<int64_t>& counts) : places_(begins(counts)), slab_(many * places_.back()) {}

  Room at(int64_t index) const {
    static_assert(sizeof(Room) % sizeof(float*) == 0);
    float* parts[sizeof(Room) / sizeof(float*)];
    for (size_t i = 0; i + 1 < places_.size(); ++i) parts[i] = slab_.data() + index * places_.back() + places_[i];
    Room room;
    std::memcpy(&room, parts, sizeof(room));
    return room;
  }

 private:
  static std::vector<int64_t> begins(const std::vector<int64_t>& counts) {
    std::vector<int64_t> places{0};
    for (int64_t count : counts) places.push_back(places.back() + up(count, 16));  // separate cache lines
    places.back() += 16;
    return places;
  }
  std::vector<int64_t> places_;
  Slab slab_;
};

Rooms<HeadRoom> head_rooms(const Problem& p, int64_t many, bool learning) {
  const int64_t products = p.has_p2c() ? p.padded() * p.skewed() : 0, rows = p.padded() * p.wide();
  const int64_t columns = p.padded() * p.width;
  if (!learning) return {many, {columns, rows, products, 0, 0, 0, 0, 0, 0}};
  return {many, {columns, rows, products, rows, p.halves ? rows / 2 : 0, columns, rows, rows, products}};
}

Rooms<TileRoom> tile_rooms(const Problem& p, int64_t many, int64_t block, bool learning) {
  const int64_t products = p.has_c2p() ? kRows * p.skewed() : 0, rows = kRows * p.wide(), strip = kRows * kPanel;
  const int64_t strips = (block + kPanel - 1) / kPanel * strip, queries = kRows * p.width;
  const int64_t paired = p.halves ? strips / 2 + kRows * kSkew : 0;
  if (!learning) return {many, {products, strips, rows, queries, queries, paired, 0, 0, 0, 0, 0, 0, 0, 0}};
  const int64_t half_strip = p.halves ? strip / 2 : 0, half_rows = p.halves ? rows / 2 : 0;
  return {many, {products, strip, rows, queries, queries, paired, strips, strip, rows, rows, products, half_rows,
                 half_strip, half_strip}};
}

}  // namespace
}  // namespace precis
